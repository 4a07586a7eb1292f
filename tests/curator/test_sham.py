"""The placebo: who is captured, when and how often stays, what is captured goes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.arms import Arm
from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.sham import Sham, Turns
from skg_bench.reranker.identity import Identity
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.corpus import load_corpus
from tests.arms import changed
from tests.curator.test_curators import PAPER, asked, curated, operations, turn
from tests.laws import world

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, draw=st.integers(0, 3))
def test_all_but_example_and_answer_is_what_the_curator_inside_does(seed: int, draw: int) -> None:
    seen, offer, name, known, books = turn(seed)
    real, sham = (curated(c, seen, offer, name, known, books) for c in (PAPER, Sham(PAPER, "any", draw)))
    for f in fields(Batch):
        if f.name not in ("text", "source"):
            assert np.array_equal(getattr(real, f.name), getattr(sham, f.name)), f.name
    assert np.array_equal(asked(Sham(PAPER, "any", draw), seen), asked(PAPER, seen))
    captures = np.isin(real.op, [ADD, UPDATE])
    assert (sham.source[~captures] == -1).all()
    assert (sham.source[captures] < seen.turn).all()
    assert np.array_equal(sham.text[captures], seen.context.past[sham.row[captures], sham.source[captures]])
    assert (sham.text[captures] >= 0).all()  # the LLM answered there


def test_every_other_turn_of_the_llm_is_as_likely() -> None:
    seen, offer, name, known, books = turn(3)
    drawn, n = Counter[tuple[int, int]](), 2000
    for draw in range(n):
        batch = curated(Sham(PAPER, "any", draw), seen, offer, name, known, books)
        at = batch.source >= 0
        drawn.update(zip(batch.row[at].tolist(), batch.source[at].tolist(), strict=True))
    captured = {row for row, _ in drawn}
    assert len(captured) > 5
    for row in captured:
        turns = np.flatnonzero(seen.context.past[row] >= 0)
        counts = np.array([drawn[row, int(t)] for t in turns])
        assert counts.sum() == n
        expected = n / len(turns)
        assert ((counts - expected) ** 2 / expected).sum() < 60  # chi-square with at most 16 degrees of freedom


def test_a_draw_repeats_and_another_draw_differs() -> None:
    seen, offer, name, known, books = turn(4)
    a, again, b = (curated(Sham(PAPER, "any", d), seen, offer, name, known, books) for d in (0, 0, 1))
    assert np.array_equal(a.source, again.source)
    assert not np.array_equal(a.source, b.source)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_what_is_known_comes_from_an_active_skill_and_a_renewed_skill_keeps_its_answer(seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    past, source = np.maximum(seen.context.past, 0), books.source  # the sources of skills are turns of the LLM
    seen = replace(seen, context=replace(seen.context, past=past))
    real, sham = (curated(c, seen, offer, name, known, books) for c in (PAPER, Sham(PAPER, "known", 0)))
    for operation in operations(sham, ADD):
        assert operation["source"] in set(source[operation["row"]][books.active[operation["row"]]].tolist())
    for operation in operations(sham, UPDATE):
        assert operation["source"] == source[operation["row"], operation["skill"]]
        assert books.active[operation["row"], operation["skill"]]
    for operation in operations(sham, ADD) + operations(sham, UPDATE):
        assert operation["text"] == past[operation["row"], operation["source"]]
    for op in (TAG, REMOVE):
        assert operations(sham, op) == operations(real, op)
    has = {row for row in range(len(books.active)) if books.active[row].any()}
    assert {o["row"] for o in operations(sham, ADD)} == {o["row"] for o in operations(real, ADD)} & has


def test_a_first_message_has_no_other_turn_and_is_not_captured() -> None:
    seen, offer, name, known, books = turn(5)
    seen = replace(seen, context=replace(seen.context, past=seen.context.past[:, :0]), turn=0)
    real, sham = (curated(c, seen, offer, name, known, books) for c in (PAPER, Sham(PAPER, "any", 0)))
    assert np.isin(real.op, [ADD, UPDATE]).any()
    assert not np.isin(sham.op, [ADD, UPDATE]).any()


def test_bad_values_are_refused_by_name() -> None:
    what: Any = "all"
    with pytest.raises(UsageError, match=r"curator\.content='all', valid are any, known"):
        Sham(PAPER, what, 0)
    with pytest.raises(UsageError, match=r"curator\.draw=-1 must not be negative"):
        Sham(PAPER, "any", -1)
    with pytest.raises(UsageError, match="cannot wrap a curator that sees the truth"):
        Sham(RightAnswers(), "any", 0)


# ------------------------------------------------------------------------------------------------ a whole run

USERS = 80
Row = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A dense week."""
    return world.run(tmp_path_factory.mktemp("sham") / "run", USERS, 256, 1, ("skg", "sham"))


def test_a_sham_skill_answers_what_it_was_made_of(run: Run) -> None:
    """Type, rightness and time of the stored answer are those of the turn that it was taken from."""
    corpus, turn_of = load_corpus(), {(r["user"], r["turn"]): r for r in run.turns("sham").to_pylist()}
    holds = {name: int(corpus.ttl[corpus.intent[i]]) for i, name in enumerate(corpus.types)}
    outcomes = Counter[tuple[bool, bool]]()
    for r in turn_of.values():
        if r["serving"] == "stored":
            source = turn_of[r["user"], r["source_turn"]]
            assert source["fallback_to_llm"]
            same = r["request_type"] is not None and r["request_type"] == source["request_type"]
            young = same and (r["time"] - source["time"]).total_seconds() < holds[r["request_type"]]
            assert r["answer_correct"] == (source["answer_correct"] and same and young)
            outcomes[source["answer_correct"], same] += 1
    assert outcomes[True, True] > 20
    assert outcomes[True, False] > 20
    updates = [u for u in run.updates("sham").to_pylist() if u["op"] in ("ADD", "UPDATE")]
    assert len(updates) > 100
    for u in updates:
        source = turn_of[u["user"], u["source_turn"]]
        assert u["source_turn"] < u["turn"]
        assert (u["message"], u["born"]) == (source["message"], source["time"])


def test_sham_captures_come_when_real_ones_do_until_the_first_answer_differs(run: Run) -> None:
    real, sham = (run.turns(arm).to_pylist() for arm in ("skg", "sham"))
    parted, captured = set[int](), 0
    for a, b in zip(real, sham, strict=True):
        if a["turn"] == 0:
            parted |= {a["user"]} if a["skill_learned"] else set()  # there is no other turn: nothing is captured
        if a["user"] in parted:
            continue
        both_right = a["answer_correct"] and b["answer_correct"]
        if a["skill"] != b["skill"] or (a["skill"] >= 0 and not both_right):
            parted.add(a["user"])  # another skill, or an answer that may be rated differently
            continue
        assert a["skill_learned"] == b["skill_learned"]
        assert a["book_size"] == b["book_size"]
        captured += a["skill_learned"]
    assert captured > 20


def test_what_the_book_holds_already_changes_no_answer_where_similarity_decides(tmp_path: Path) -> None:
    """The placebo that is nothing by construction, to the bit: growth of a book with copies of itself."""
    base = world.plan(USERS, ("sham",))

    def arm(name: str, content: Turns | None) -> Arm:
        template = base.arms[0]
        kept = replace(PAPER, harmful_misses=None, unused_days=None)
        then = None if content is None else Sham(kept, content, 0)
        signals = replace(components(template).signals, preference=0.0)
        return changed(template, name=name, curator=Until(12, kept, then), signals=signals, reranker=Identity())

    arms = (arm("deaf", None), arm("skg", "known"), arm("sham", "any"))
    ran = world.carry_out(replace(base, arms=arms), tmp_path / "run", USERS, 256)
    still, copies, others = (ran.turns(name).to_pylist() for name in ("deaf", "skg", "sham"))
    figures = ("answer_correct", "fallback_to_llm", "cost_usd", "latency_ms", "source_turn", "user_satisfaction")
    assert [[r[f] for f in figures] for r in still] == [[r[f] for f in figures] for r in copies]
    assert [r["answer_correct"] for r in still] != [r["answer_correct"] for r in others]
    last = {name: sum(r["book_size"] for r in rows) for name, rows in (("still", still), ("copies", copies))}
    assert last["copies"] > 1.2 * last["still"]


@dataclass(frozen=True)
class Until:
    """One curator until a turn, then another, or nobody is asked any more."""

    at_turn: int
    first: Curator[Any]
    then: Curator[Any] | None
    sees_truth: ClassVar[bool] = False

    @property
    def reasons(self) -> Sequence[str]:
        return self.first.reasons

    def start(self, n: int) -> None:
        """Those inside have none."""

    def offers(self, seen: Observation, state: None) -> Bool:
        return self.first.offers(seen, None) & (seen.turn < self.at_turn or self.then is not None)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        curator = self.first if self.then is None or seen.turn < self.at_turn else self.then
        return None, curator.curate(seen, reaction, known, books, curator.start(len(seen.text)))[1]
