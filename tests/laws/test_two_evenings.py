"""The article's two interactions, played by the whole engine: the same trigger, another strategy, another outcome."""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.asking.asking import Completion, Prompt
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.core.grid import I32
from skg_bench.core.package import DATA
from skg_bench.core.world import Events
from skg_bench.runfolder.run import Run
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.people import Purchases, Shoppers
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.tracker import events, learning_traces
from tests.laws.shoppers import carry_out
from tests.tracker.server import lines

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "pivot.json").read_text("utf-8"))
EVENINGS = (
    "Late at night, electronics: noise-cancelling headphones for $80 at BestBuy",
    "Late at night, electronics: noise-cancelling headphones for $60 at Amazon",
)
DAY, ELEVEN = 86_400, 23 * 3600
CERTAIN = [  # the generic strategy never persuades, the cost in hours always does, and who listens, waits
    "simulator.kinds_apart=60", "simulator.fits=0", "simulator.liking=0", "simulator.liking_here=0",
    "simulator.accept_share=0", "simulator.wait_share=1", "simulator.habit=0", "simulator.annoyance=0",
    "simulator.answered=0", "policy.none=-9", "policy.temperature=0.05", "curator=reflecting", "reranker=identity",
]  # fmt: skip


class Evenings(Guardian):
    """Everybody meets the two triggers, a day apart, and wants neither."""

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """Two."""
        return np.full(len(users), 2, np.int32)

    def begin(self, seed: int, users: I32, weeks: int) -> Shoppers:
        """Before the first of them."""
        state, n = super().begin(seed, users, weeks), len(users)

        def both(first: int, second: int) -> np.ndarray:
            return np.tile(np.array([first, second], np.int32), (n, 1))

        text = [self.messages.index(message) for message in EVENINGS]
        context = self.table.context_of(EVENINGS[0])
        truth = replace(
            state.events.rows(np.arange(n)).truth, type=both(context, context), intent=both(context, context),
            answerable=both(0, 0), used_up=both(0, 0) > 0,
        )  # fmt: skip
        time = both(ELEVEN, DAY + ELEVEN).astype(np.int64)
        table = Events(users, self.count(seed, users, weeks), both(0, 1), time, both(*text), truth)
        tiers = self._shopping.tier(np.array([3, 2]), np.array([True, True]))
        purchases = Purchases(both(context, context), both(*tiers.tolist()), both(0, 0) > 0)
        return replace(state, events=table, purchases=purchases)


@dataclass(frozen=True, eq=False)
class Article:
    """A model that learns what the article's did of an override, and nothing else."""

    settings = {"model": "article", "temperature": 0.0, "top_p": 1.0}  # noqa: RUF012
    prices = None

    def complete(self, prompts: list[Prompt]) -> list[Completion]:
        """The reflection, and the batch."""
        nothing = {"update": None}
        values = [
            GOLDEN["reflection"] if prompt.role == "reflector" else GOLDEN["update"] if self._of(prompt) else nothing
            for prompt in prompts
        ]
        return [Completion(json.dumps(value), value, "ok", 900, 0, 200, 0.001, 4000.0) for value in values]

    def _of(self, prompt: Prompt) -> bool:
        return "time-cost-framing-" not in str(prompt.messages)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("evenings")
    first = json.loads((DATA / "guardian" / "rookie.v1.json").read_text("utf-8"))
    name = "impulse-check-generic-00001"
    first["skills"] = {name: {**first["skills"][name], "helpful": 0, "harmful": 0, "neutral": 0}}
    first["sections"] = {"impulse-check-generic": [name]}
    (out / "seed.json").write_text(json.dumps(first))
    composed = compose([
        "experiment=guardian", "contrasts=[]", "users=1", "weeks=1", "arms={live: []}", "reference=live",
        f"seeds={out / 'seed.json'}", *CERTAIN,
    ])  # fmt: skip
    plan = prepare(composed).plan
    curator: Any = components(plan.arms[0]).curator
    arm = with_components(plan.arms[0], curator=replace(curator, llm=Article()))
    names = [field.name for field in fields(Guardian) if field.init]
    world = Evenings(**{name: getattr(plan.simulator, name) for name in names})
    carried = carry_out(replace(plan, simulator=world, arms=(arm,)), out / "run", 1, 64, composed=composed)
    summary.write_summary(carried)
    return carried


@pytest.mark.req("P32", "P33")
def test_the_same_trigger_meets_another_strategy_and_ends_otherwise(run: Run) -> None:
    first, second = run.turns("live").to_pylist()
    assert (first["message"], second["message"]) == EVENINGS
    assert (first["tier"], second["tier"]) == ("therapist", "therapist")
    assert (first["strategy"], first["outcome"]) == ("impulse-check-generic", "overridden")
    assert (second["strategy"], second["outcome"]) == ("time-cost-framing", "wait")
    assert "hours" in str(strategies().contents[20])  # what the kind is about


@pytest.mark.req("P28", "P34")
def test_traces_filtered_by_name_show_both_and_the_change_between_them(run: Run) -> None:
    traces = [event["trace"] for event in lines(events.write_events(run, None, None)[0])]

    def named(name: str) -> list[dict[str, Any]]:
        return [trace for trace in traces if trace["name"] == name]

    (first,), (second,) = named("guardian:therapist:override"), named("guardian:therapist:wait")
    changes = [trace for trace in named(learning_traces.UPDATE_TRACE) if trace["metadata"]["turn"] >= 0]
    change = changes[0]
    assert first["start_time"] < change["start_time"] < second["start_time"]
    operations = [tuple(map(o.get, ("op", "rating", "section", "issue"))) for o in change["output"]["operations"]]
    assert ("TAG", "miss", None, None) in operations
    assert ("ADD", None, "time-cost-framing", "That's 4 hours of your hourly rate") in operations
    assert (change["input"]["skills"], change["output"]["skills"]) == (1, 2)
    assert named(learning_traces.REFLECTION_TRACE)[0]["output"]["analysis"] == GOLDEN["reflection"]["analysis"]
