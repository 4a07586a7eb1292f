"""Learning jobs of a run, replayed by processes: who learns together, and what is held against the documents."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.bench.locking.bursts import Learner, LoggedJob, batch_of, bursts, learners
from experiments.bench.locking.held import Held, held
from experiments.bench.locking.processes import Outcome, table
from experiments.bench.locking.writers import NOW, JobEnd, replay, writers
from skg_bench.app.api import run as simulate
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.store import Store
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.ace.book import AceBook
from skg_bench.skillbook.skillbook import Operation
from skg_bench.skillbook.storing import Rule, book_text, update, with_key
from skg_bench.store.memory import InMemory
from skg_bench.store.sqlite import SQLite


def row(
    turn: int, op: str, skill: int, about: int, rating: str | None = None, says: str | None = None
) -> dict[str, Any]:
    """A row of the update log."""
    return {
        "turn": turn, "op": op, "skill": skill, "time": 0, "name": None, "message": None, "source_turn": -1,
        "rating": rating, "uses": int(op == "TAG" and rating is None), "after": -1, "born": None, "reason": "",
        "about": about, "section": says and "context", "issue": says, "insight": None, "keywords": None,
    }  # fmt: skip


def add(skill: int, says: str = "Buys at night.") -> Operation:
    return Operation("ADD", skill, 0, content=Content("context", says, "Wait a day.", ("impulse",)))


def rewrite(skill: int, says: str) -> Operation:
    return Operation("UPDATE", skill, 0, content=Content("context", says, "Wait a day.", ("impulse",)))


def tag(skill: int, rating: str = "ok") -> Operation:
    return Operation("TAG", skill, 0, rating=rating)


def remove(skill: int) -> Operation:
    return Operation("REMOVE", skill, 0)


def told(*applied: Operation, burst: int = 0) -> JobEnd:
    return JobEnd("anna", burst, applied, 0, 0, 0, 0, 0)


def stored(jobs: Sequence[Sequence[Operation]]) -> tuple[Store, Learner]:
    """A store in which these jobs were stored one after the other, into an empty skillbook."""
    store = InMemory()
    learner = Learner(AceBook("v2"), ())
    store.swap("anna", 0, book_text(with_key(learner.book, "first")), "first")
    book = learner.book
    for nth, operations in enumerate(jobs):
        batch, _ = batch_of(LoggedJob(str(nth), tuple(operations)), book)
        update(store, "anna", batch, key=str(nth), now=NOW)
        book = replace(book, skills=_book(store).skills)
    return store, learner


def _book(store: Store) -> AceBook:
    from skg_bench.skillbook.storing import load

    kept = load(store, "anna", NOW)
    assert kept is not None
    return kept.book


def test_a_job_is_what_was_learned_from_one_turn_and_jobs_come_in_bursts() -> None:
    rows = [
        row(-1, "ADD", 0, -1, says="Seed."), row(3, "TAG", 0, 3), row(3, "TAG", 0, 1, "ok"),
        row(3, "TAG", 0, 3, "miss"), row(4, "TAG", 0, 4, "ok"), row(5, "UPDATE", 0, 5), row(6, "TAG", 0, 6, "partial"),
    ]  # fmt: skip
    made = bursts(rows, 3, "7")
    assert [[job.key for job in burst] for burst in made] == [["u7-t3-1", "u7-t3-3", "u7-t4-4"], ["u7-t6-6"]]
    assert [entry.rating for job in made[0] for entry in job.operations] == ["ok", "miss", "ok"]


def test_a_job_about_a_skill_that_the_burst_adds_waits_for_the_next_burst() -> None:
    rows = [
        row(1, "ADD", 4, 1, says="Buys at night."), row(2, "TAG", 0, 2, "ok"), row(3, "TAG", 4, 3, "ok"),
        row(4, "ADD", 5, 4, says="Buys twice."),
    ]  # fmt: skip
    keys = [[job.key for job in burst] for burst in bursts(rows, 8, "0")]
    assert keys == [["u0-t1-1", "u0-t2-2"], ["u0-t3-3", "u0-t4-4"]]


def test_a_rating_that_is_taken_back_is_refused() -> None:
    with pytest.raises(UsageError, match=r"ok taken back, which ACE cannot; take an arm with signs\.merge=sum"):
        bursts([row(1, "TAG", 0, 1, "ok taken back")], 8, "0")


def test_operations_on_skills_that_the_document_lacks_are_left_out() -> None:
    store, _ = stored([[add(0)]])
    job = LoggedJob("k", (tag(0, "miss"), tag(3), add(4, "Buys twice."), rewrite(0, "Buys late."), remove(5)))
    batch, possible = batch_of(job, _book(store))
    assert [entry.skill for entry in possible] == [0, 4, 0]
    assert [(entry["type"], entry.get("skill_id")) for entry in batch["operations"]] == [
        ("TAG", "context-00001"), ("ADD", None), ("UPDATE", "context-00001"),
    ]  # fmt: skip
    assert batch["operations"][0]["metadata"] == {"delta": -1}
    assert batch["operations"][1]["keywords"] == ["impulse", "run_4"]


WHOLE = [[add(0), add(1, "Buys twice.")], [tag(0), tag(0, "miss"), tag(1)], [rewrite(0, "Buys late."), remove(1)]]


def test_what_is_there_once_is_neither_lost_nor_doubled() -> None:
    store, learner = stored(WHOLE)
    ends = [told(*job, burst=nth) for nth, job in enumerate(WHOLE)]
    assert held(store, {"anna": learner}, ends) == Held({"ADD": 2, "TAG": 3, "UPDATE": 1, "REMOVE": 1}, {}, {})


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ([tag(0)], {"TAG": 1}),
        ([tag(1, "partial"), tag(7)], {"TAG": 2}),
        ([add(2, "Buys thrice.")], {"ADD": 1}),
        ([remove(0)], {"REMOVE": 1}),
        ([rewrite(0, "Buys in the morning.")], {"UPDATE": 1}),
    ],
)
def test_what_a_writer_was_told_and_no_document_has_is_lost(more: list[Operation], lost: dict[str, int]) -> None:
    store, learner = stored(WHOLE)
    ends = [told(*job, burst=nth) for nth, job in enumerate([*WHOLE, more])]
    result = held(store, {"anna": learner}, ends)
    assert (dict(result.lost), dict(result.doubled)) == (lost, {})


@pytest.mark.parametrize(("left_out", "doubled"), [(0, {"ADD": 2}), (1, {"TAG": 3})], ids=["additions", "ratings"])
def test_what_is_there_and_no_writer_was_told_of_is_doubled(left_out: int, doubled: dict[str, int]) -> None:
    store, learner = stored(WHOLE)
    ends = [told(*job, burst=nth) for nth, job in enumerate(WHOLE) if nth != left_out]
    result = held(store, {"anna": learner}, ends)
    assert (dict(result.lost), dict(result.doubled)) == ({}, doubled)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("locking") / "run"
    arms = "arms={live: [], frozen: [curator=none]}"
    return simulate(
        ["experiment=guardian", "profile=smoke", "users=3", arms, "contrasts=[]", f"out={out}"], progress=False
    )


@pytest.mark.parametrize("rule", ["rebase", "blind"])
@pytest.mark.req("P25", "P26", "P42")
def test_processes_learn_what_a_run_learned(rule: Rule, small: Run, tmp_path: Path) -> None:
    people = learners(small, "live", 3, 3)
    store = SQLite(str(tmp_path / "books.db"), 60.0)
    with writers(3) as pool:
        result = replay(pool, 3, store, people, rule)
    documents = held(store, people, result.ends)
    store.close()
    jobs = sum(len(burst) for learner in people.values() for burst in learner.bursts)
    assert len(result.ends) == jobs > 20
    assert not documents.doubled
    assert sum(documents.stored.values()) > 20
    assert bool(documents.lost) == (rule == "blind")  # three jobs of 8 ms that begin together always overlap


def test_a_run_with_fewer_users_is_refused(small: Run) -> None:
    with pytest.raises(UsageError, match=r"--store-users 9: .* has 3 users"):
        learners(small, "live", 9, 8)


def test_a_row_holds_what_was_lost_against_what_was_stored() -> None:
    ends = [JobEnd("anna", 0, (tag(0), tag(0)), 1, 2, 3, 4, 5), JobEnd("anna", 0, (), 0, 0, 0, 1, 2)]
    outcome = Outcome("SQLite", "replay", 20, ends, Held({"TAG": 2}, {"TAG": 1}, {}), 6, 7.4)
    row = table([outcome]).rows[0]
    assert row == ("SQLite", "replay", "20", "2", "1 (500 per 1,000)", "0", "1", "2", "3", "5", "7", "6", "7")
