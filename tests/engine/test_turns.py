"""What a turn does, recomputed from the logs of a run by the definitions of the design."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.batch import Batch
from skg_bench.core.calendar import EPOCH
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import I64
from skg_bench.core.types import Observation, Reranker, Scorer, Skillbooks, TrainingRows
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.corpus import load_corpus
from tests.arms import changed
from tests.curator.altered import Altered
from tests.laws import world

USERS = 60
ARMS = ("skg", "answer", "prompted", "procedure", "always", "never", "oracle", "identity")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A dense week."""
    return world.run(tmp_path_factory.mktemp("turns") / "run", USERS, 256, 1, ARMS)


def rows(run: Run, arm: str) -> dict[tuple[int, int], Row]:
    """Turns by user and turn; times in seconds."""
    table = run.turns(arm)
    columns = table.drop_columns(["time"]).to_pylist()
    time = table["time"].to_numpy().astype("datetime64[s]").astype(np.int64) - EPOCH
    return {(r["user"], r["turn"]): r | {"time": int(t)} for r, t in zip(columns, time, strict=True)}


def uniform_of(row: Row, purpose: Purpose) -> float:
    """The uniform of a turn."""
    return float(draw(key(7, np.array([row["user"]])), row["turn"], purpose)[0])


def test_a_procedure_is_missing_for_novelty_where_the_user_asked_for_nothing_of_the_intent_before(
    tmp_path: Path,
) -> None:
    run = world.run(
        tmp_path / "run", 300, 300, 1, ("procedure",)
    )  # so that some ask twice for the first of 120 intents
    asked, novel, known = set[tuple[int, str]](), Counter[str](), Counter[str]()
    for row in rows(run, "procedure").values():
        familiar = (row["user"], row["intent"]) in asked if row["intent"] else row["answerable"] > 0
        if row["fallback_to_llm"] and row["cause"] in ("novelty", "capture", "wrong_source", "generality"):
            assert (row["cause"] == "novelty") != familiar
            (known if familiar else novel)[row["intent"] or "one-off"] += 1
        asked.add((row["user"], row["intent"]))
    first = load_corpus().intents[0]  # of no other number than others are
    assert min(novel[first], known[first], novel["one-off"]) > 0


@pytest.mark.parametrize("arm", ["skg", "answer", "always", "oracle", "identity"])
@pytest.mark.req("K20")
def test_a_stored_answer_is_right_if_it_was_and_still_holds_for_this_request(run: Run, arm: str) -> None:
    corpus, turn_of = load_corpus(), rows(run, arm)
    ttl = {name: int(corpus.ttl[corpus.intent[i]]) for i, name in enumerate(corpus.types)}
    outcomes = []
    for r in turn_of.values():
        if r["serving"] != "stored":
            continue
        source = turn_of[r["user"], r["source_turn"]]
        assert source["fallback_to_llm"]
        assert source["skill_learned"]
        assert r["turn"] > source["turn"]
        same = r["request_type"] is not None and r["request_type"] == source["request_type"]
        young = same and r["time"] - source["time"] < ttl[r["request_type"]]
        assert r["answer_correct"] == r["skill_correct"] == (source["answer_correct"] and same and young)
        outcomes.append((source["answer_correct"], same, young))
    assert len(outcomes) > 100
    assert len(set(outcomes)) >= (1 if arm == "oracle" else 3)
    if arm == "oracle":
        assert set(outcomes) == {(True, True, True)}


@pytest.mark.parametrize("arm", ["skg", "prompted", "never", "oracle"])
def test_the_llm_is_right_by_the_draws_of_the_event_alone(run: Run, arm: str) -> None:
    fallbacks = [r for r in rows(run, arm).values() if r["fallback_to_llm"]]
    for r in fallbacks[::7]:
        assert r["answer_correct"] == (uniform_of(r, Purpose.LLM_RIGHT) < 0.9)
        assert r["skill_correct"] is None
        assert (r["skill"], r["source_turn"], r["serving"], r["matched_skill"]) == (-1, -1, "llm", None)


@pytest.mark.req("K12", "K20")
def test_a_prompted_skill_is_right_as_often_as_the_llm_with_a_prompt_that_fits_or_misleads(run: Run) -> None:
    turn_of, about = rows(run, "prompted"), dict[tuple[int, int], list[tuple[int, str | None]]]()
    for u in run.updates("prompted").to_pylist():
        if u["op"] in ("ADD", "UPDATE"):
            about.setdefault((u["user"], u["skill"]), []).append((u["turn"], turn_of[u["user"], u["turn"]]["intent"]))
    outcomes = set()
    for r in (r for r in turn_of.values() if not r["fallback_to_llm"]):
        intent = [i for turn, i in about[r["user"], r["skill"]] if turn < r["turn"]][-1]
        same = intent is not None and intent == r["intent"]
        succeeds = uniform_of(r, Purpose.SKILL_RIGHT) < (0.93 if same else 0.9 * (1 - 0.2))  # a wrong prompt misleads
        assert r["answer_correct"] == succeeds
        assert (r["serving"], r["source_turn"]) == ("prompted", -1)
        assert r["tokens_in"] > 460  # with the skill's prompt
        outcomes.add((same, succeeds))
    assert len(outcomes) == 4


@pytest.mark.req("K11", "K20")
def test_the_llm_answers_exactly_if_no_combined_score_reaches_the_threshold(run: Run) -> None:
    for arm in ("skg", "answer", "prompted", "identity"):
        for r in rows(run, arm).values():
            best = max(r["combined"])
            assert r["fallback_to_llm"] == (best < 0.4)
            assert r["skill_score"] == max(best, 0.0)
            assert r["max_sim"] == max(r["similarity"])
            assert (r["propensity"], r["explored"]) == (1.0, False)


@pytest.mark.req("K20", "K22")
def test_a_stored_answer_costs_nothing_and_a_call_what_its_tokens_cost(run: Run) -> None:
    for arm in set(ARMS) - {"procedure"}:  # tools have prices of their own
        for r in list(rows(run, arm).values())[::5]:
            if r["serving"] == "stored":
                assert (r["tokens_in"], r["tokens_out"], r["cost_usd"], r["latency_ms"]) == (0, 0, 0.0, 50.0)
            else:
                assert r["cost_usd"] == pytest.approx((3 * r["tokens_in"] + 15 * r["tokens_out"]) / 1e6)
                assert r["tokens_in"] >= 400
                assert r["latency_ms"] > 100


@pytest.mark.req("K16", "K17", "K18")
def test_offers_follow_an_ok_and_what_is_accepted_is_learned(run: Run) -> None:
    types = list(load_corpus().types)
    named = {t: t.replace("_", "-").replace("|", "-").replace(" ", "-").lower() for t in types}
    for arm, after in (("skg", {"ok"}), ("answer", {"ok", None})):
        added = {(u["user"], u["turn"]): u for u in run.updates(arm).to_pylist() if u["op"] in ("ADD", "UPDATE")}
        seen = set()
        for at, r in rows(run, arm).items():
            declined_as_miss = arm == "answer" and r["offer"] == "declined"
            rating = r["user_satisfaction"]
            offered = r["offer"] is not None
            assert (rating == "miss") if declined_as_miss else offered == (r["fallback_to_llm"] and rating in after)
            accepted = r["offer"] in ("accepted", "badly_named")
            assert r["skill_learned"] == accepted == (at in added)
            if r["offer"] == "accepted" and r["request_type"] is not None and added[at]["op"] == "ADD":
                assert added[at]["name"] == named[r["request_type"]]
            seen.add(r["offer"])
        assert seen == {None, "accepted", "badly_named", "declined"}


# --------------------------------------------------------------------------------------------------- refitting


@dataclass
class Clock:
    """Which turn it is, who has captured in it, and who was refitted."""

    turn: int = -1
    captured: set[int] = field(default_factory=set)
    fits: list[tuple[int, set[int], set[int]]] = field(default_factory=list)

    def watch(self, batch: Batch, seen: Observation, _books: Skillbooks) -> Batch:
        """Note the turn and who captures in it."""
        self.turn, self.captured = seen.turn, {int(u) for u in batch.row[batch.source >= 0]}
        return batch


@dataclass(frozen=True)
class Noting:
    """A reranker that notes whom it refits."""

    reranker: Reranker
    clock: Clock
    window: ClassVar[int] = 0

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        return self.reranker.start(n_users, features)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        assert set(training.row.tolist()) == set(range(len(rows)))  # only who has something new
        self.clock.fits.append((self.clock.turn, set(rows.tolist()), self.clock.captured))
        return self.reranker.fit(scorer, rows, training)


@pytest.mark.parametrize("on_capture", [True, False])
@pytest.mark.req("K19")
def test_the_reranker_is_refitted_every_n_turns_of_the_user_and_on_a_capture(tmp_path: Path, on_capture: bool) -> None:
    plan, clock = world.plan(USERS, ("random",)), Clock()
    arm = plan.arms[0]
    watched = changed(
        arm,
        curator=Altered(components(arm).curator, clock.watch),
        reranker=Noting(components(arm).reranker, clock),
        refit_on_capture=on_capture,
    )
    world.carry_out(replace(plan, arms=(watched,)), tmp_path, USERS, 256)
    regular = [fit for fit in clock.fits if (fit[0] + 1) % 10 == 0]
    between = [fit for fit in clock.fits if (fit[0] + 1) % 10]
    assert len(regular) > 2
    assert max(len(users) for _, users, _ in regular) > USERS / 4
    assert bool(between) == on_capture
    for _, users, captured in between:
        assert users <= captured


@pytest.mark.req("K19")
def test_refits_can_be_kept_apart_and_then_nobodys_is_forgotten(tmp_path: Path) -> None:
    """With 15 turns at least between two, captures and tenth turns wait; each refit that would be comes, later."""
    plan = world.plan(USERS, ("random",))
    turns: dict[int, dict[int, list[int]]] = {}
    for apart in (1, 15):
        arm, clock = plan.arms[0], Clock()
        watched = changed(
            arm,
            curator=Altered(components(arm).curator, clock.watch),
            reranker=Noting(components(arm).reranker, clock),
            refit_apart=apart,
        )
        world.carry_out(replace(plan, arms=(watched,)), tmp_path / str(apart), USERS, 256)
        fits = turns[apart] = {user: [] for user in range(USERS)}
        for turn, users, _ in clock.fits:
            for user in users:
                fits[user].append(turn)
    between = {apart: np.concatenate([np.diff(t) for t in turns[apart].values()]) for apart in turns}
    assert between[1].min() < 10
    assert between[15].min() == 15
    ends = np.sort(plan.simulator.count(plan.seed, np.arange(USERS, dtype=np.int32), plan.weeks))[::-1]
    for user, end in enumerate(ends):  # what became known waits for less than 15 turns, or for ever at the end
        for before, turn in pairwise([-1, *turns[1][user]]):
            assert turn + 15 > end or any(before < other < turn + 15 for other in turns[15][user])
