"""What a run will ask models, and what that costs, before anything is sent: its first users are simulated with a model
that learns nothing, and its prompts are counted.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from skg_bench.app.blocks import show
from skg_bench.app.launch import PreparedRun
from skg_bench.app.said import said_only
from skg_bench.core.arms import Arm
from skg_bench.core.asking import Completion, Prices, Prompt, mapped, parts
from skg_bench.engine.execute import execute

_SAMPLED = 24  # users that are simulated
_CHARACTERS = 4  # a token; rule of thumb for English


@dataclass(frozen=True, eq=False)
class CountedModel:
    """In the place of a model: counts what it is asked, and answers with the least that a schema takes."""

    settings: Mapping[str, Any]
    prices: Prices | None
    asks: Counter[str] = field(default_factory=Counter)  # by role
    tokens_in: Counter[str] = field(default_factory=Counter)
    tokens_out: Counter[str] = field(default_factory=Counter)  # at most

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers that change nothing."""
        for prompt in prompts:
            self.asks[prompt.role] += 1
            self.tokens_in[prompt.role] += sum(len(m["content"]) for m in prompt.messages) // _CHARACTERS
            self.tokens_out[prompt.role] += prompt.limit
        return [Completion("", least(prompt.schema or {}), "ok", 0, 0, 0, 0.0, 0.0) for prompt in prompts]


def least(schema: Mapping[str, Any]) -> Any:
    """The smallest value that a schema takes: null where it may be, else nothing in lists and texts, and 0."""
    if "anyOf" in schema:
        return least(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "null")
    kind = kinds if isinstance(kinds, str) else "null" if "null" in kinds else kinds[0]
    if kind == "object":
        return {name: least(schema["properties"][name]) for name in schema.get("required", ())}
    plain: dict[str, Any] = {"array": [], "string": "-", "integer": 0, "number": 0, "boolean": False}
    return plain.get(kind)


def announce(screen: Console, job: PreparedRun) -> None:
    """Print asks, tokens and cost of each arm and role; nothing where no arm asks a model."""
    asking = [arm for arm in job.plan.arms if _models(arm)]
    if not asking:
        return
    n = min(_SAMPLED, job.plan.users)
    counted, models = [], {}
    for arm in asking:
        model = _models(arm)[0]
        models[arm.name] = CountedModel(model.settings, model.prices)
        change = partial(_replaced, models[arm.name])
        counted.append(mapped(arm, change))
    with tempfile.TemporaryDirectory() as folder:
        plan = replace(job.plan, users=n, arms=tuple(counted))
        plan = said_only(plan, job.turns() // len(job.plan.arms))
        execute(plan, Path(folder), cohort=512, workers=1, launcher=job.launcher, progress=lambda _done, _total: None)
    rows, scale = [], job.plan.users / n
    for name, model in models.items():
        for role, asks in model.asks.items():
            tokens_in, tokens_out = (round(c[role] * scale) for c in (model.tokens_in, model.tokens_out))
            cost = "no prices" if model.prices is None else f"{model.prices.cost(tokens_in, 0, tokens_out):,.2f}"
            counts = [f"{round(asks * scale):,}", f"{tokens_in:,}", f"{tokens_out:,}", cost]
            rows.append([name, str(model.settings["model"]), role, *counts])
    show(screen, ["arm", "model", "role", "asks", "tokens in", "tokens out at most", "USD at most"], rows)
    who = "all" if n == job.plan.users else f"the first {n}"
    screen.print(
        f"asks are those of {who} users, scaled; prompts are counted with empty skillbooks and "
        f"{_CHARACTERS} characters a token, and what is recorded already is not asked again"
    )


def _replaced(stand_in: CountedModel, part: Any) -> Any:
    return stand_in if _asks(part) else part


def _models(arm: Arm) -> list[Any]:
    return [part for part in parts(arm) if _asks(part)]


def _asks(part: Any) -> bool:
    """Is it a model of texts (core.asking.TextModel)?"""
    return hasattr(part, "settings") and hasattr(part, "complete")
