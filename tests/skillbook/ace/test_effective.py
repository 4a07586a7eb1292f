"""A batch that a published engine half applies, said in strict changes: the same book comes out."""

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import AceBook, Era, dumps
from skg_bench.skillbook.ace.changes import Change, commit
from skg_bench.skillbook.ace.effective import effective
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.upkeep import embed
from tests.skillbook.ace.garbage import case
from tests.skillbook.ace.play import MODES, NOW, Player, observed
from tests.skillbook.ace.test_strict import ADD, TEXT_ADD, batch, book

ERAS: list[Era] = ["v1", "v09", "v2"]


@pytest.mark.req("U01")
@pytest.mark.parametrize("era", ERAS)
def test_effective_changes_give_the_book_that_the_published_engine_gives(era: Era) -> None:
    kinds: set[str] = set()
    for seed in range(400):
        random, player = case(seed, era), Player(era)
        player.load(random["initial"])
        for step in random["steps"]:
            if step["op"] == "apply":
                changes = effective(player.book, step["batch"], player.mode)
                theirs = apply_as_published(player.book, step["batch"], player.mode, NOW).book
                ours = commit(player.book, changes, NOW)
                assert ours == theirs, random["uid"]
                assert observed(dumps, ours) == observed(dumps, theirs), random["uid"]
                kinds |= {change.type for change in changes}
            player.step(step)
    assert kinds >= {"ADD", "UPDATE", "REMOVE"} | ({"TAG"} if era != "v09" else set())
    assert era == "v2" or "SKIP" in kinds


def test_the_operations_before_a_failing_one_are_kept_and_garbage_is_dropped() -> None:
    tag = {"type": "tag", "skill_id": "context-00001", "metadata": {"delta": "7"}}
    unknown = {"type": "REMOVE", "skill_id": "nope"}
    failing = {**ADD, "insight": " ", "section": "context"}
    changes = effective(book(), batch(tag, 3, unknown, failing, ADD), "compat-v2")
    assert changes == (Change("TAG", "context-00001", {"helpful_count": 1}),)


def test_what_a_failing_update_has_done_is_kept_without_its_time() -> None:
    ghost = {**ADD, "section": "harness"}
    ghost.pop("insight")
    before = apply_as_published(AceBook("v2"), batch({**ghost, "skill_id": "h"}), "compat-v2", NOW).book
    moved = apply_as_published(
        before, batch({"type": "UPDATE", "skill_id": "h", "issue": "new"}), "compat-v2", NOW
    ).book
    assert moved.skills["h"] != before.skills["h"]
    player = Player("v2")
    player.load({
        "schema_version": "2", "next_id": 1,
        "skills": {"c": {"id": "c", "section": "context", "keywords": ["k"], "issue": "old", "updated_at": "then"}},
    })  # fmt: skip
    update = batch({"type": "UPDATE", "skill_id": "c", "issue": "new"}, ADD)
    assert effective(player.book, update, "compat-v2") == (Change("UPDATE", "c", {"issue": "new"}, touches=False),)
    outcome = apply_as_published(player.book, update, "compat-v2", NOW)
    assert outcome.failure is not None
    assert outcome.failure.type == "ValueError"
    assert outcome.book.skills["c"].updated_at == "then"


def test_an_add_over_a_skill_and_a_number_without_a_skill_are_said() -> None:
    before = book("v1")
    over = {**TEXT_ADD, "skill_id": "math-00001", "metadata": {"helpful": 3, "status": 4}}
    changes = effective(before, batch(over, {**TEXT_ADD, "section": " "}, TEXT_ADD), "compat-v1")
    assert [change.type for change in changes] == ["ADD", "OVERWRITE", "SKIP"]
    assert (changes[0].replaces, changes[0].values["helpful"], dict(changes[1].values)) == (True, 3, {"status": 4})


def test_an_update_drops_the_embedding_in_both_ways_and_a_tag_keeps_it() -> None:
    before = embed(book(), {"context-00001": [1.0, 0.5], "harness-00002": [0.5, 1.0]})
    update = {"type": "UPDATE", "skill_id": "context-00001", "issue": "new"}
    tag = {"type": "TAG", "skill_id": "harness-00002", "metadata": {"delta": 1}}
    changes = effective(before, batch(update, tag), "compat-v2")
    assert [dict(change.values) for change in changes] == [{"issue": "new"}, {"helpful_count": 1}]
    after = commit(before, changes, NOW)
    assert after == apply_as_published(before, batch(update, tag), "compat-v2", NOW).book
    assert [skill.embedding for skill in after.skills.values()] == [None, (0.5, 1.0)]


def test_reasons_and_reflections_go_along() -> None:
    operation = {**ADD, "reason": "seen twice", "reflection_index": 2, "reflection_indices": [0, 2, "x"]}
    (change,) = effective(AceBook("v2"), batch(operation), "compat-v2")
    assert (change.reason, change.reflections) == ("seen twice", (2, 0))


@pytest.mark.parametrize("payload", [[], None, "text", batch({"type": "MERGE"}), batch(ADD, {"section": "context"})])
def test_nothing_is_left_of_a_batch_that_cannot_be_parsed(payload: object) -> None:
    before = book()
    assert effective(before, payload, "compat-v2") == ()
    outcome = apply_as_published(before, payload, "compat-v2", NOW)
    assert outcome.book == before
    assert outcome.failure is not None
    assert outcome.failure.stage == "parse"


def test_a_mode_takes_books_of_its_format_only() -> None:
    with pytest.raises(UsageError, match="mode=compat-v1 applies batches to books of v1; this book is of v2"):
        effective(book(), batch(), "compat-v1")
    with pytest.raises(UsageError, match="mode=compat-v2 applies batches to books of v2; this book is of v1"):
        apply_as_published(book("v1"), batch(), MODES["v2"], NOW)
    with pytest.raises(UsageError, match="mode=compat; valid: compat-v1, compat-v09, compat-v2"):
        apply_as_published(book("v1"), batch(), "compat", NOW)  # type: ignore[arg-type]
