"""Failures of a published package are those that garbage explains; mistakes of ours are raised."""

from typing import Any

import pytest

from skg_bench.skillbook.ace.book import AceBook, Era
from skg_bench.skillbook.ace.consolidation import consolidate
from skg_bench.skillbook.ace.draft import Draft
from skg_bench.skillbook.ace.effective import effective
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.engine_failures import ERRORS, holds_garbage
from skg_bench.skillbook.ace.upkeep import soft_remove
from skg_bench.skillbook.proposals.parsing import steps_of
from tests.skillbook.ace.play import MODES, NOW, Player
from tests.skillbook.ace.test_strict import ADD, TEXT_ADD, batch, book
from tests.skillbook.proposals.proposing import LIMITS

ERAS: list[Era] = ["v1", "v09", "v2"]


def added(era: Era) -> dict[str, Any]:
    """A batch of one sensible ADD."""
    return batch(ADD if era == "v2" else TEXT_ADD)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("era", ERAS)
def test_a_mistake_of_ours_at_a_sensible_batch_is_no_failure_of_the_package(
    monkeypatch: pytest.MonkeyPatch, era: Era, error: type[Exception]
) -> None:
    def mistaken(self: Draft, section: str, key: str) -> None:
        raise error("ours")

    monkeypatch.setattr(Draft, "show", mistaken)
    with pytest.raises(error, match="ours"):
        apply_as_published(AceBook(era), added(era), MODES[era], NOW)
    with pytest.raises(error, match="ours"):
        effective(AceBook(era), added(era), MODES[era])


def test_a_mistake_of_ours_while_a_batch_of_a_model_is_read_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "show", lambda self, section: None)  # one argument too few
    with pytest.raises(TypeError, match="positional"):
        steps_of(added("v2"), (), LIMITS, "compat-v2")


def test_a_mistake_of_ours_beside_batches_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "soft_remove", lambda self, key: self.no_such_attribute)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        soft_remove(book(), "context-00001", NOW)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        consolidate(book(), [{"type": "DELETE", "skill_id": "context-00001"}], NOW)


@pytest.mark.parametrize(
    ("payload", "stage", "kind"),
    [
        (None, "parse", "AttributeError"),
        ({"operations": [{"section": "s"}]}, "parse", "KeyError"),
        ({"operations": [{**ADD, "metadata": {"delta": float("inf")}}]}, "parse", "OverflowError"),
        ({"operations": [{**ADD, "type": "RENAME"}]}, "parse", "ValueError"),
        ({"operations": [{**ADD, "issue": " "}]}, "apply", "ValueError"),
    ],
)
def test_garbage_in_a_batch_is_a_failure_of_the_package(payload: Any, stage: str, kind: str) -> None:
    failure = apply_as_published(book(), payload, "compat-v2", NOW).failure
    assert failure is not None
    assert (failure.stage, failure.type) == (stage, kind)


def test_garbage_in_a_book_is_a_failure_of_the_package() -> None:
    player = Player("v1")
    skill = {"id": "s-1", "section": "s", "content": "c", "helpful": "many"}
    player.load({"skills": {"s-1": skill}, "sections": {"s": ["s-1"]}, "next_id": 1})
    tag = {"type": "TAG", "section": "s", "skill_id": "s-1", "metadata": {"helpful": 1}}
    assert holds_garbage(player.book)
    failure = apply_as_published(player.book, batch(tag), "compat-v1", NOW).failure
    assert failure is not None
    assert failure.type == "TypeError"


@pytest.mark.parametrize("era", ERAS)
def test_a_whole_book_and_a_sensible_batch_hold_no_garbage(era: Era) -> None:
    after = apply_as_published(AceBook(era), added(era), MODES[era], NOW).book
    assert len(after.skills) == 1
    assert not holds_garbage(after, added(era))
