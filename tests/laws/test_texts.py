"""Texts that a run writes keep all laws: the same bits in any cohort, worker, stack and fork, and logs that replay."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.arms import Arm, Fork
from skg_bench.core.batch import ADD, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool, cosine
from skg_bench.core.types import Observation, Query, Router, Shortlist, Skillbooks
from skg_bench.core.world import Reaction, World
from skg_bench.curator.everything import Everything
from skg_bench.embedder.hashing import Hashing
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.skillbook.skillbook import rebuild
from tests.arms import changed
from tests.laws import world
from tests.laws.test_replay import logged
from tests.laws.writing import FewWords, check_cohorts, shards
from tests.simulator.logs.logs import recorded, turn, write_csv

USERS, FEW, HASHING = 24, 4, Hashing(384, 0)


@dataclass(frozen=True)
class Noting:
    """Captures each answer of the LLM under a note, which is its example and its name."""

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = Everything.reasons

    def start(self, n: int) -> None:
        return None

    def offers(self, seen: Observation, state: None) -> Bool:
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        _, batch = Everything().curate(seen, reaction, known, books, None)
        text, added = batch.text.copy(), batch.op == ADD
        said = seen.context.texts.read(batch.text[added], batch.row[added])
        text[added] = seen.context.texts.add([f"note: {words}" for words in said])
        return None, replace(batch, text=text, name=np.where(added, text, -1).astype(np.int32))


def noting(arm: Arm) -> Arm:
    """The arm with this curator, unless it captures nothing."""
    curator = Noting() if components(arm).curator.reasons else components(arm).curator
    return changed(arm, curator=curator, fork=arm.fork and replace(arm.fork, arm=noting(arm.fork.arm)))


def plan(*arms: str, users: int = USERS) -> Plan:
    """The dense world, in few words, with hashed vectors and arms that write notes."""
    made = world.plan(users, arms)
    simulator = cast("World[Any]", replace(cast(AssistantUsers, made.simulator), corpus=FewWords()))
    arms_of_notes = tuple(map(noting, made.arms))
    return replace(made, seed=world.EVEN, simulator=simulator, embedder=HASHING, arms=arms_of_notes)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One arm that writes notes, in one cohort."""
    return world.carry_out(plan("skg"), tmp_path_factory.mktemp("notes") / "run", USERS, 1000)


def test_a_note_is_example_and_name_in_words(notes: Run) -> None:
    turns = notes.turns("skg", ["user", "turn", "message", "matched_skill"])
    at = {(row["user"], row["turn"]): row for row in turns.to_pylist()}
    added = [row for row in notes.updates("skg").to_pylist() if row["op"] == "ADD"]
    assert len(added) > 100
    for row in added:
        assert row["message"] == row["name"] == "note: " + at[row["user"], row["turn"]]["message"]
    matched = {row["matched_skill"] for row in at.values()} - {None}
    assert matched
    assert matched <= {row["name"] for row in added}


def test_a_note_has_the_vector_of_its_words(notes: Run) -> None:
    """The largest similarity of a turn, from the log: of the message and the notes that were active."""
    for user in range(6):
        operations = {row["turn"]: row for row in notes.updates("skg", users=[user]).to_pylist() if row["op"] == "ADD"}
        archived = [row for row in notes.updates("skg", users=[user]).to_pylist() if row["op"] == "REMOVE"]
        assert not archived
        examples: list[str] = []
        for row in notes.turns("skg", ["turn", "message", "max_sim"], users=[user]).to_pylist():
            vectors = HASHING.embed([row["message"], *examples]).astype(np.float64)
            nearest = cosine(vectors[1:] @ vectors[0]).max(initial=0.0)
            assert row["max_sim"] == np.float32(nearest)
            examples += [operations[row["turn"]]["message"]] if row["turn"] in operations else []
        assert len(examples) > 3


def test_the_log_rebuilds_books_of_notes(notes: Run) -> None:
    last = {row["user"]: row for row in notes.turns("skg", ["user", "book_hash", "book_version"]).to_pylist()}
    books = logged(notes, "skg")
    for user in range(USERS):
        book, batches = rebuild(books[user])  # which compares the hash after each batch
        assert batches > 0
        assert (book.hash, book.version) == (last[user]["book_hash"], last[user]["book_version"])


def test_notes_are_the_same_bits_in_any_cohort_stack_and_fork_looked_up_or_computed(tmp_path: Path, notes: Run) -> None:
    arms = ("skg", "bm25", "probe", "recipe", "centroid", "knn", "masked", "exp4", "as_before", "donor", "hindsight")
    check_cohorts(tmp_path, plan, arms, FEW, notes, looked_up=True)


def test_workers_change_no_byte_of_shards_of_notes(tmp_path: Path) -> None:
    """In each process other texts were written before, so that notes have other ids."""
    alone = shards(tmp_path, plan("skg"), USERS, workers=1)
    assert len(alone) == 4
    assert alone == shards(tmp_path, plan("skg"), USERS, workers=2)


def test_a_note_on_a_redacted_log_is_redacted_and_its_book_is_rebuilt_all_the_same(tmp_path: Path) -> None:
    log = write_csv(
        tmp_path / "log.csv", [turn("ann", f"2024-03-0{day}T09:00:00", f"tea {day}") for day in range(4, 9)]
    )
    made = replace(plan("skg", users=1), simulator=recorded(log, redact=True), weeks=1)
    run = world.carry_out(made, tmp_path / "run", 1, 1000)
    added = [row for row in run.updates("skg").to_pylist() if row["op"] == "ADD"]
    assert added
    for row in added:
        assert re.fullmatch("[0-9a-f]{16}", row["message"])
        assert row["name"] == row["message"]
    assert len({row["message"] for row in added} | set(run.turns("skg")["message"].to_pylist())) == 5 + len(added)
    rebuild(logged(run, "skg")[0])


def test_an_embedder_without_vectors_for_notes_is_refused(tmp_path: Path) -> None:
    made = plan("skg")
    precomputed = replace(made, embedder=world.plan(USERS, ("skg",)).embedder)
    with pytest.raises(UsageError, match=r"no vectors for texts that this run writes.*['\"]note: .*another embedder"):
        world.carry_out(precomputed, tmp_path / "run", USERS, 1000)


# --------------------------------------------------------------------------------------------------- beyond the end


@dataclass(frozen=True)
class Peering:
    """A router that looks beyond the end of each book."""

    inside: Any
    looked: set[int]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inside"], name)

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        beyond = np.arange(books.examples.text.shape[1]) >= books.examples.count[:, None]
        assert (books.examples.text[beyond] == -1).all()
        self.looked.add(int(beyond.sum()))
        shortlist: Shortlist = self.inside.route(query, books)
        return shortlist


def test_beyond_the_end_of_a_book_stands_the_same_whatever_the_texts_are(tmp_path: Path) -> None:
    looked = set[int]()

    def peering(arm: Arm) -> Arm:
        router = cast(Router, Peering(components(arm).router, looked))
        return changed(arm, router=router, fork=arm.fork and Fork(peering(arm.fork.arm), arm.fork.turn))

    made = world.plan(USERS, ("skg", "everything", "donor", "hindsight"))
    made = replace(made, arms=tuple(map(peering, made.arms)))
    world.carry_out(made, tmp_path / "run", USERS, 1000)
    assert len(looked) > 20
