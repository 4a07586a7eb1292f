"""Asks of a run, before anything is sent: whether arms can share recordings, and what asks cost. For this the first
users are simulated with a scripted model, and its prompts and answers are counted.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from skg_bench.app.needed_messages import needed_only
from skg_bench.app.prepared_run import PreparedRun
from skg_bench.app.table_blocks import show_table
from skg_bench.asking.asking import Completion, Prices, Prompt, components_within, mapped, writes_texts
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.engine.execute import execute
from skg_bench.llm.endpoint import Endpoint
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted

_SAMPLED = 24  # users that are simulated
_STAND_IN = Scripted("learner", 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class CountedModel:
    """Counter in the place of a model: it counts what it is asked, and answers as the scripted one."""

    settings: Mapping[str, Any]
    prices: Prices | None
    asks: Counter[str] = field(default_factory=Counter)  # by role
    tokens_in: Counter[str] = field(default_factory=Counter)
    tokens_out: Counter[str] = field(default_factory=Counter)
    limit: Counter[str] = field(default_factory=Counter)  # tokens that the answers may have

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers of its rules, which cost nothing."""
        completions = _STAND_IN.complete(prompts)
        for prompt, completion in zip(prompts, completions, strict=True):
            self.asks[prompt.role] += 1
            self.tokens_in[prompt.role] += completion.tokens_in
            self.tokens_out[prompt.role] += completion.tokens_out
            self.limit[prompt.role] += prompt.limit
        return completions


class _Counters:
    """Counters of an arm, one for each model: its curator's and its policy's may be two. Equal models share one, so
    that components that were equal still are.
    """

    def __init__(self) -> None:
        self.models: list[CountedModel] = []

    def in_place_of(self, part: Any) -> Any:
        """`part`, or the counter where it is a model."""
        if not writes_texts(part):
            return part
        for model in self.models:
            if (model.settings, model.prices) == (part.settings, part.prices):
                return model
        self.models.append(CountedModel(part.settings, part.prices))
        return self.models[-1]


def check_shared_recordings(arms: Sequence[Arm]) -> None:
    """Raises UsageError where two arms ask in one way what one recording keeps, of which one arm would be given what
    the other one asked for.
    """
    first: dict[tuple[object, ...], tuple[str, Endpoint]] = {}
    for arm in arms:
        for holder, model, endpoint in _recorded_endpoints(arm):
            key = holder, model.folder, *model.settings.values()
            name, other = first.setdefault(key, (arm.name, endpoint))
            theirs = _unrecorded(other)
            for parameter, mine in _unrecorded(endpoint).items():
                if mine != theirs[parameter]:
                    raise UsageError(
                        f"arms {name} and {arm.name} ask {endpoint.model} with {parameter}={theirs[parameter]} and "
                        f"{mine}, and keep the answers in one recording, which knows an ask by its model and its "
                        f"words: {arm.name} would be given the answers of {name}. Give one of them a folder of its own "
                        "(llm=recorded has the parameter folder)"
                    )


def _unrecorded(endpoint: Endpoint) -> dict[str, str | float]:
    """Parameters that decide answers, and that no recording knows."""
    return {"address": endpoint.address, "seconds": float(endpoint.seconds), "tries": endpoint.tries}


def _recorded_endpoints(arm: Arm) -> Iterator[tuple[str, RecordedModel, Endpoint]]:
    """Endpoints of an arm whose answers are recorded, each with the class of the component that asks it."""
    for holder in components_within(arm):
        parts = [getattr(holder, field.name) for field in fields(holder)] if is_dataclass(holder) else []
        for model in parts:
            if isinstance(model, RecordedModel):
                for part in components_within(model):
                    if isinstance(part, Endpoint):
                        yield type(holder).__qualname__, model, part


def announce(screen: Console, job: PreparedRun) -> None:
    """Print asks, tokens and cost of each arm and role; nothing where no arm asks a model."""
    asking = [arm for arm in job.plan.arms if _models(arm)]
    if not asking:
        return
    n = min(_SAMPLED, job.plan.users)
    counted, models = [], {}
    for arm in asking:
        models[arm.name] = _Counters()
        counted.append(mapped(arm, models[arm.name].in_place_of))
    with tempfile.TemporaryDirectory() as folder:
        plan = replace(job.plan, users=n, arms=tuple(counted))
        plan = needed_only(plan, job.turns() // len(job.plan.arms))
        execute(plan, Path(folder), cohort=512, workers=1, launcher=job.launcher, progress=lambda _done, _total: None)
    rows, scale = [], job.plan.users / n
    for name, model in ((name, model) for name, counters in models.items() for model in counters.models):
        for role, asks in model.asks.items():
            tokens_in, tokens_out, limit = (
                round(counter[role] * scale) for counter in (model.tokens_in, model.tokens_out, model.limit)
            )
            costs = [_cost(model.prices, tokens_in, out) for out in (tokens_out, limit)]
            counts = [f"{round(asks * scale):,}", f"{tokens_in:,}", f"{tokens_out:,}", *costs]
            rows.append([name, str(model.settings["model"]), role, *counts])
    show_table(screen, ["arm", "model", "role", "asks", "tokens in", "tokens out", "USD", "USD, longest answers"], rows)
    who = "" if n == job.plan.users else f" for the first {n} users, scaled to all,"
    screen.print(
        f"estimated{who} with a scripted model in place of each: others write longer or shorter skills. What is "
        f"recorded "
        "already is not asked again"
    )


def _cost(prices: Prices | None, tokens_in: int, tokens_out: int) -> str:
    return "no prices" if prices is None else f"{prices.cost(tokens_in, 0, tokens_out):,.2f}"


def _models(arm: Arm) -> list[Any]:
    return [part for part in components_within(arm) if writes_texts(part)]
