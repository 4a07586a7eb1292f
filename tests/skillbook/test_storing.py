"""Updates of a stored skillbook under each conflict rule."""

from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.store import KEYS, StoreError
from skg_bench.skillbook.ace.checks import AceLimits
from skg_bench.skillbook.storing import TRIES, Rule, UpdateEnd, VersionedBook, load, update
from skg_bench.store.memory import InMemory
from skg_bench.store.sqlite import SQLite
from tests.store.writers import NOW, SKILL, add, batch, helpful, remove, rewrite, seed, tag


class Overtaken(InMemory):
    """A store in which another writer is first, so many times."""

    def __init__(self, times: int, *operations: dict[str, Any]) -> None:
        super().__init__()
        self.times, self.operations = 0, operations
        seed(self, ["anna"])
        self.times = times

    def swap(self, user: str, expected: int, document: str, key: str) -> bool:
        if self.times:
            self.times -= 1
            kept, self.times = self.times, 0
            update(self, user, batch(*self.operations), key=f"other-{kept}", now=NOW)
            self.times = kept
        return super().swap(user, expected, document, key)


def skills(store: InMemory) -> dict[str, Any]:
    stored = load(store, "anna", NOW)
    assert stored is not None
    return dict(stored.book.skills)


def learned(store: InMemory, rule: Rule, *operations: dict[str, Any]) -> UpdateEnd:
    return update(store, "anna", batch(*operations), rule, key="ours", now=NOW)


@pytest.mark.req("P25", "P26")
@pytest.mark.parametrize("rule", ["rebase", "replay"])
def test_a_conflict_is_resolved_by_reading_again(rule: Rule) -> None:
    store = Overtaken(2, tag())
    end = learned(store, rule, tag())
    assert (end.end, end.version, end.tries) == ("stored", 4, 3)
    assert helpful(store, "anna") == 3


@pytest.mark.req("P26")
def test_the_articles_rule_gives_up_after_three_tries() -> None:
    store = Overtaken(3, tag())
    assert learned(store, "replay", tag()).end == "given up"
    assert helpful(store, "anna") == 3
    store = Overtaken(TRIES["rebase"] - 1, tag())
    assert learned(store, "rebase", tag()).end == "stored"


@pytest.mark.req("P25")
def test_a_blind_write_loses_what_another_writer_learned() -> None:
    store = Overtaken(1, tag(), add("Buys at noon."))
    assert learned(store, "blind", tag()).end == "stored"
    assert helpful(store, "anna") == 1
    assert [*skills(store)] == [SKILL]


def test_what_two_writers_add_stands_there_once_by_rebase_and_twice_by_replay() -> None:
    for rule, count in (("rebase", 2), ("replay", 3)):
        store = Overtaken(1, add("Buys at noon."))
        end = update(store, "anna", batch(add("Buys at noon.")), rule, key="ours", now=NOW)  # type: ignore[arg-type]
        assert len(skills(store)) == count
        assert end.report[0].fate == ("merged" if rule == "rebase" else "applied")


def test_an_update_is_kept_aside_by_rebase_and_wins_by_replay() -> None:
    for rule, insight in (("rebase", "Theirs."), ("replay", "Ours.")):
        store = Overtaken(1, rewrite("Theirs."))
        update(store, "anna", batch(rewrite("Ours."), tag()), rule, key="ours", now=NOW)  # type: ignore[arg-type]
        assert skills(store)[SKILL].insight == insight
        assert helpful(store, "anna") == 1


def test_operations_on_what_was_removed_are_reported() -> None:
    store = Overtaken(1, remove())
    end = learned(store, "rebase", tag(), add("Buys at noon."))
    assert [operation.fate for operation in end.report] == ["misdirected", "applied"]
    assert helpful(store, "anna") == 0


@pytest.mark.req("P26")
def test_a_batch_that_is_repeated_counts_once_among_the_newest_keys() -> None:
    store = InMemory()
    seed(store, ["anna"])
    read = load(store, "anna", NOW)
    assert learned(store, "rebase", tag()).end == "stored"
    for i in range(KEYS - 1):
        update(store, "anna", batch(tag()), key=f"other-{i}", now=NOW)
    assert learned(store, "rebase", tag()).end == "stored before"
    assert update(store, "anna", batch(tag()), key="ours", now=NOW, read=read).end == "stored before"
    assert helpful(store, "anna") == KEYS
    stored = load(store, "anna", NOW)
    assert stored is not None
    assert len(stored.book.batches) == KEYS


@pytest.mark.req("P26")
def test_two_writers_with_one_key_count_once() -> None:
    store = Overtaken(1, tag())
    store.times = 0
    read = load(store, "anna", NOW)
    ends = [update(store, "anna", batch(tag()), key="ours", now=NOW, read=read).end for _ in range(2)]
    assert ends == ["stored", "stored before"]
    assert helpful(store, "anna") == 1


def test_the_first_batch_of_a_user_makes_a_skillbook() -> None:
    store = InMemory()
    assert learned(store, "rebase", add("Buys at noon.")) == UpdateEnd("stored", 1, 1, _report(store))
    assert [*skills(store)] == [SKILL]


def _report(store: InMemory) -> Any:
    return update(store, "bert", batch(add("Buys at noon.")), key="k", now=NOW).report


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (batch(tag(skill="context-00009")), "names skill 'context-00009', which the book does not have"),
        (batch({"type": "MERGE"}), "has the type 'MERGE'"),
        ("{", "no whole JSON"),
    ],
)
def test_a_batch_that_does_not_fit_what_was_read_is_refused_whole(given: Any, message: str) -> None:
    store = InMemory()
    seed(store, ["anna"])
    with pytest.raises(UsageError, match=message):
        update(store, "anna", given, key="ours", now=NOW)
    assert (store.load("anna") or ("", 0))[1] == 1


def test_a_skillbook_that_could_not_be_read_again_is_not_stored() -> None:
    store = InMemory()
    seed(store, ["anna"])
    sources = [{"trace_uid": f"t{i}"} for i in range(AceLimits().sources)]
    learned(store, "rebase", {**tag(), "insight_source": sources})
    with pytest.raises(
        UsageError, match=r"breaks its format, so nothing is stored: .*1,001 entries; at most 1,000 are taken"
    ):
        update(store, "anna", batch({**tag(), "insight_source": {"trace_uid": "more"}}), key="more", now=NOW)
    assert helpful(store, "anna") == 1


def test_an_unknown_rule_and_a_key_that_says_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="rule='merge'; valid: rebase, replay, blind"):
        update(InMemory(), "anna", batch(), "merge", key="k", now=NOW)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the key of the batch is ' '"):
        update(InMemory(), "anna", batch(), key=" ", now=NOW)


def test_a_store_that_fails_says_which_batch_is_not_stored_and_how_to_go_on() -> None:
    class Failing(InMemory):
        def swap(self, user: str, expected: int, document: str, key: str) -> bool:
            raise StoreError("books: nothing is stored: the disk is full")

    with pytest.raises(StoreError, match=r"batch 'ours' of user 'anna': .*; keep the batch and repeat"):
        learned(Failing(), "rebase", add("Buys at noon."))


def test_a_time_before_the_last_one_changes_nothing_but_times() -> None:
    store = InMemory()
    seed(store, ["anna"])
    assert update(store, "anna", batch(tag()), key="k", now="1999-01-01T00:00:00+00:00").end == "stored"
    assert helpful(store, "anna") == 1
    assert VersionedBook(*load(store, "anna", NOW)).version == 2  # type: ignore[misc]


@pytest.mark.parametrize("user", [None, float("nan"), 7, True, "a\0b", "\ud800"])
def test_a_name_that_a_store_would_not_find_again_is_refused(user: Any, tmp_path: Path) -> None:
    """SQLite kept a new row for None each time, which nobody could load: *stored*, and gone."""
    store = SQLite(str(tmp_path / "books.db"), 1.0)
    with pytest.raises(UsageError, match=r"user=.* (is no text|has a character that no store keeps)"):
        update(store, user, batch(tag()), key="k", now=NOW)
    with pytest.raises(UsageError, match="user="):
        load(store, user, NOW)
    assert list(store.users()) == []


def test_a_skillbook_of_another_user_is_no_base_of_an_update() -> None:
    """Of two users at one version, the skillbook of the one was written over that of the other."""
    store = InMemory()
    seed(store, ["anna", "bert"])
    read, before = load(store, "anna", NOW), store.load("bert")
    with pytest.raises(UsageError, match=r"skillbook of user 'anna', and not of 'bert'; hand over load\('bert'\)"):
        update(store, "bert", batch(tag()), key="k", now=NOW, read=read)
    for wrong in ("anna", read.book if read else None):
        with pytest.raises(UsageError, match="is no skillbook with its version"):
            update(store, "bert", batch(tag()), key="k", now=NOW, read=wrong)  # type: ignore[arg-type]
    assert store.load("bert") == before
