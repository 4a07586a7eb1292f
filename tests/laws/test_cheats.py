"""Cheats that read only what the seams hand out. Against an engine that hands out what it must not, each finds the
truth; against the real one they cannot be written, or find no more than chance.

Within one Python process nobody can be kept from reading the world's memory; this is about what the seams hand out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, cast, get_type_hints

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.core.batch import Batch
from skg_bench.core.content import Content, Contents
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, draw, fold, key, uniform
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F32, F64, I32, I64, U64, Bool
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.shortlist import ranked
from skg_bench.core.types import (
    BookExamples,
    BookSimilarity,
    BookWords,
    Curator,
    LearningContext,
    Observation,
    Query,
    Router,
    Shortlist,
    Skillbooks,
    TurnTruth,
    UseHistory,
    WrittenTexts,
)
from skg_bench.core.world import Draws, Reaction
from skg_bench.engine import cohort, execute
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.relabel import Relabelled
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.skillbook.terms_of_book import TermsOfBook
from tests.arms import changed
from tests.curator.altered import Altered
from tests.laws import world

USERS = 60
SEED = 7  # of the dense world
RIGHT = 0.9  # probability that its LLM is right


def test_a_policy_is_handed_no_draw_and_no_component_a_user() -> None:
    """The policy that read the world's draws, and the one that computed them from the user, cannot be written."""
    learns = [Candidates, Decision, KnownFeedback, Batch]
    hints = [(value, name, hint) for value in learns for name, hint in get_type_hints(value).items()]
    assert Draws not in {hint for _, _, hint in hints}
    keys = {(value, name) for value, name, hint in hints if hint == U64}
    assert keys == {(Batch, "content")}  # a hash of what a curator wrote, and no key of draws
    seen = {
        f.name
        for value in (*learns, Query, Observation, LearningContext, Skillbooks, BookExamples, UseHistory)
        for f in fields(value)
    }
    assert not seen & {"user", "luck", "draws", "seed"}


# ------------------------------------------------------------------------------ texts that the user has not said yet


def test_similarities_and_words_are_asked_for_by_place_in_the_own_book() -> None:
    """The router that compared a message with all texts of the corpus, said or not, cannot be written."""
    data: set[Any] = {int, F32, F64, I32, I64, U64, Bool, tuple[I64, I32]}
    seams = {BookSimilarity, BookWords}
    hints = set(get_type_hints(Observation).values()) - {LearningContext}
    assert hints <= data
    for value in (Query, LearningContext):
        hints = set(get_type_hints(value).values()) - {TurnTruth | None}
        assert BookSimilarity in hints
        # jobs go out to the log; kinds of feedback are known; what was said at the turn was said to its user
        learning = {WrittenTexts, Callable[[Jobs], None], Domain, Callable[[], list[str]]}
        says = {Contents}  # by keys of the own book, which nobody can guess
        assert hints <= data | seams | (learning if value is LearningContext else says)
    assert set(get_type_hints(TurnTruth).values()) <= data
    for seam in seams:
        for name, member in vars(seam).items():
            if not name.startswith("_"):
                asked = get_type_hints(member.fget if isinstance(member, property) else member)
                assert asked.pop("return") in data, name
                assert asked.items() <= {"row": I64, "place": I64}.items(), name
    assert {name for name in vars(WrittenTexts) if not name.startswith("_")} == {
        "add",
        "read",
        "embed",
        "contents",
        "recorded",
        "redacts",
    }
    methods = {name: member for name, member in vars(Contents).items() if not name.startswith("_")}
    assert set(methods) == {"add", "of", "shown", "check", "logged", "knows"}
    returned = {name: get_type_hints(member).get("return") for name, member in methods.items()}
    assert returned["of"] == returned["shown"] == list[Content | None]  # words, no vectors
    assert returned["knows"] is bool
    assert (returned["add"], returned["check"], returned["logged"]) == (int, NoneType, U64)


@dataclass(frozen=True, eq=False)
class Watching:
    """A router or a curator that checks, at each call, which messages and books similarities and words are of."""

    inside: Any
    turns: set[int] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inside, name)

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        for one in (query.similarity, query.terms):
            assert isinstance(one, (InBook, TermsOfBook))
            assert np.array_equal(one.text, query.text)
            assert np.array_equal(one.example, books.examples.text)
        self.turns.add(query.turn)
        found: Shortlist = self.inside.route(query, books)
        return found

    def curate(self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any) -> Any:
        assert isinstance(seen.context.similarity, InBook)
        assert np.array_equal(seen.context.similarity.text, seen.text)
        assert np.array_equal(seen.context.similarity.example, books.examples.text)
        self.turns.add(seen.turn)
        return self.inside.curate(seen, reaction, known, books, state)


def test_similarities_and_words_are_those_of_the_messages_and_books_of_the_turn(tmp_path: Path) -> None:
    plan = world.plan(12, ("skg", "without"))
    arms, watching = [], []
    for arm in plan.arms:
        router, curator = Watching(components(arm).router), Watching(components(arm).curator)
        arms.append(changed(arm, router=cast(Router, router), curator=cast(Curator[Any], curator)))
        watching += [router, curator]
    world.carry_out(replace(plan, arms=tuple(arms)), tmp_path / "run", 12, 1000)
    assert all(len(one.turns) > 20 for one in watching)


# ----------------------------------------------------------------------------- keys that draws of the world follow from


@dataclass(frozen=True)
class Guesses:
    """Whether the LLM was right at each turn, as a curator guesses it by drawing from a key as the world would."""

    by_event: dict[int, np.ndarray] = field(default_factory=dict)  # turn -> guesses from `Observation.event`
    by_row: dict[int, np.ndarray] = field(default_factory=dict)  # turn -> guesses from the row in place of the user

    def guess(self, batch: Batch, seen: Observation, _books: Skillbooks) -> Batch:
        """Note the guesses of a turn."""
        purpose = int(Purpose.LLM_RIGHT)
        self.by_event[seen.turn] = uniform(fold(fold(fold(seen.context.event, purpose), 0), 0)) < RIGHT
        users = key(SEED, np.arange(len(seen.text)))
        self.by_row[seen.turn] = draw(users, seen.turn, Purpose.LLM_RIGHT) < RIGHT
        return batch


def guesses(out: Path, *beside: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For all turns of the LLM: was it right, and what did the curator guess from the event's key and from the row?"""
    plan = world.plan(USERS, ("deaf", *beside))
    spy = Guesses()
    curator = Altered(components(plan.arms[0]).curator, spy.guess)
    arms = (changed(plan.arms[0], curator=curator), *plan.arms[1:])
    assert len(stacks(arms)) == 1
    run = world.carry_out(replace(plan, arms=arms), out, USERS, 1000 * len(arms))
    turns = run.turns("deaf", ["user", "turn", "answer_correct"])
    user, turn, right = (turns[c].to_numpy() for c in ("user", "turn", "answer_correct"))
    row = np.argsort(np.argsort(-np.bincount(user), kind="stable"))[user]  # users step in order of falling turns
    guessed = [np.array([one[t][r] for t, r in zip(turn, row, strict=True)]) for one in (spy.by_event, spy.by_row)]
    return right.astype(np.bool_), guessed[0], guessed[1]


def lift(right: np.ndarray, guessed: np.ndarray) -> float:
    """How much more often the LLM was right where that was guessed than where it was not."""
    return float(right[guessed].mean() - right[~guessed].mean())


@pytest.mark.parametrize("beside", [(), ("exact", "oracle")])
def test_no_draw_of_the_world_follows_from_the_key_that_a_curator_is_handed(
    tmp_path: Path, beside: tuple[str, ...]
) -> None:
    right, by_event, by_row = guesses(tmp_path / "run", *beside)
    n = (~by_event).sum()
    assert n > 100
    margin = 4 * (RIGHT * (1 - RIGHT) / n) ** 0.5  # four standard errors of no lift at all
    assert abs(lift(right, by_event)) < margin
    assert abs(lift(right, by_row)) < margin


def test_the_cheat_is_told_from_honest_curators_where_the_key_is_the_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above could not fail."""
    monkeypatch.setattr(cohort, "word", lambda seed, _whose: seed)
    right, by_event, _ = guesses(tmp_path / "run", "exact", "oracle")
    assert np.array_equal(right, by_event)


# ------------------------------------------------------------------------------------------- ids that lie side by side


@dataclass(frozen=True)
class NearIds:
    """A router without vectors: in a corpus, the wordings of one request type have neighbouring ids."""

    top_k: int = 5
    sees_truth: ClassVar[bool] = False

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills by how near the id of an example is to that of the message: within 2, or not at all."""
        b, width = books.active.shape
        apart = np.abs(books.examples.text - query.text[:, None])
        near = (apart <= 2) & (np.arange(books.examples.text.shape[1]) < books.examples.count[:, None])
        row, place = np.nonzero(near)
        score = np.zeros((b, width))
        np.maximum.at(score, (row, books.examples.skill[row, place]), 1.0 - apart[row, place] / 4.0)
        return ranked(score, (score > 0) & books.active, self.top_k)


def hits_of_other_wordings(out: Path, *beside: str) -> tuple[int, float]:
    """Hits of the cheat on messages that are no verbatim repeat, and the share of them that is right."""
    plan = world.plan(USERS, ("everything", *beside))
    arms = (changed(plan.arms[0], router=NearIds()), *plan.arms[1:])
    assert len(stacks(arms)) == 1
    users = replace(cast(AssistantUsers, plan.simulator), habit=0.0)  # who repeat their words are served by any router
    run: Run = world.carry_out(replace(plan, arms=arms, simulator=users), out, USERS, 1000 * len(arms))
    turns = run.turns("everything", ["skill_correct", "max_sim"])
    near, correct = turns["max_sim"].to_numpy(), turns["skill_correct"].to_pylist()
    hits = [c for s, c in zip(near, correct, strict=True) if c is not None and s < 1.0]
    return len(hits), float(np.mean(hits)) if hits else 0.0


@pytest.mark.parametrize("beside", [(), ("exact", "oracle")])
def test_ids_of_texts_say_nothing(tmp_path: Path, beside: tuple[str, ...]) -> None:
    hits, right = hits_of_other_wordings(tmp_path / "run", *beside)
    assert right < 0.05
    assert hits < 200


def test_the_cheat_is_told_from_honest_routers_where_ids_are_those_of_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above could not fail."""
    monkeypatch.setattr(execute, "Relabelled", lambda simulator, _seed: simulator)
    hits, right = hits_of_other_wordings(tmp_path / "run")
    assert hits > 200
    assert right > 0.3


@pytest.mark.parametrize(
    "arms", [("skg", "bm25", "probe", "recipe", "without", "oracle", "exact", "everything", "vcache")]
)
def test_ids_may_be_permuted_in_another_way_and_no_decision_changes(tmp_path: Path, arms: tuple[str, ...]) -> None:
    plan = replace(world.plan(24, arms), seed=world.EVEN)
    first = world.carry_out(plan, tmp_path / "first", 24, 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "Relabelled", lambda simulator, seed: Relabelled(simulator, seed + 1))
        second = world.carry_out(plan, tmp_path / "second", 24, 1000)
    assert world.differences(first, second, range(24), arms) == []
