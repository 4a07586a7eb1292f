"""Calls of Python and C functions in the steps of small runs: the same number on every machine, at any load.

`python -m tests.engine.calls` prints each beside the committed one, `--write` commits them. The time of a step is too
noisy to test; nearly all of it is calls, as long as few rows are stepped.
"""

import gc
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.texts import Embedding
from skg_bench.engine import cohort
from skg_bench.engine import step as step_module
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import Rows
from tests.app import test_recorded as recorded

FILE = Path(__file__).with_name("calls.txt")
MORE = 0.015  # share by which a number may rise without a change of the file
_SMALL = ("users=4", "weeks=1", "cohort=512", "seed=0", "simulator.messages_per_day=6")
_DEMO = (
    "skg", "skg_80", "skg_band", "frozen_100", "never", "always", "exact_match", "frequency", "random",
    "oracle_router", "oracle", "skg_prompted", "oracle_procedure",
)  # fmt: skip
RUNS = ("default arm", "13 arms", "guardian", "replay")


@dataclass(frozen=True)
class Count:
    """Calls of a run."""

    stacks: int
    steps: int
    calls: int

    @property
    def a_step(self) -> float:
        """Calls a step."""
        return self.calls / self.steps


def plan(run: str, folder: Path) -> Plan:
    """The components of one of `RUNS`; `folder` takes the log that one of them replays."""
    if run == "default arm":
        return prepare(compose([*_SMALL, "arms={skg: []}", "reference=skg"])).plan
    if run == "guardian":
        return prepare(compose(["experiment=guardian", "users=4", "weeks=2", "seed=0"])).plan
    if run == "replay":
        return prepare(compose(recorded.overrides(recorded.log(folder), folder / "run"))).plan
    every = compose([*_SMALL, "experiment=assistant_growth"])
    root = {**every.root, "arms": {arm: every.root["arms"][arm] for arm in _DEMO}}
    return prepare(replace(every, root=root, arms={arm: every.arms[arm] for arm in _DEMO})).plan


class _Counter:
    """Calls while it is the profiler of the process."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _frame: Any, event: str, _value: Any) -> None:
        self.calls += event in ("call", "c_call")


def counted(made: Plan) -> Count:
    """Calls in all steps of a plan: of its second run, when nothing is read or made for the first time."""
    setting = _setting(made)
    _run(made, setting, _STEP)
    counter, steps = _Counter(), 0

    def step(*arguments: Any) -> None:
        nonlocal steps
        steps += 1
        sys.setprofile(counter)
        try:
            _STEP(*arguments)
        finally:
            sys.setprofile(None)

    gc.collect()
    gc.disable()
    try:
        _run(made, setting, step)
    finally:
        gc.enable()
    return Count(len(stacks(made.arms)), steps, counter.calls - steps)  # one is that of setprofile


_STEP = step_module.step


def _setting(made: Plan) -> cohort.Setting:
    vectors = made.embedder.embed(made.simulator.messages)
    embedding = Embedding(lambda: vectors, made.embedder)
    return cohort.Setting(made.salted, made.simulator, lambda: Rows(vectors), made.weeks, embedding, made.comparison)


def _run(made: Plan, setting: cohort.Setting, step: Any) -> None:
    users = cohort.cohort_of(setting, np.arange(made.users, dtype=np.int32))
    top_k = max(getattr(arm.assistant, "top_k", 1) for arm in made.arms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohort, "step", step)
        for stack in stacks(made.arms):
            cohort.run_cohort(setting, [made.arms[i] for i in stack], users, top_k, lambda _made: None)


def over(count: Count, before: Count) -> list[str]:
    """Numbers that rose by more than the share `MORE`."""
    pairs = ((f.name, getattr(count, f.name), getattr(before, f.name)) for f in fields(Count))
    return [f"{name}: {now:,}, and {then:,} before" for name, now, then in pairs if now > (1.0 + MORE) * then]


def counts(runs: Sequence[str] = RUNS) -> Iterator[tuple[str, Count]]:
    """Each run with its count."""
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            yield run, counted(plan(run, Path(folder)))


def committed() -> dict[str, Count]:
    """Counts by run, as committed."""
    rows = [line.split(", ") for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return {run: Count(*(int(number.split()[0]) for number in numbers[:3])) for run, *numbers in rows}


def line(run: str, count: Count) -> str:
    """One line of the file."""
    return f"{run}, {count.stacks} stacks, {count.steps} steps, {count.calls} calls, {count.a_step:.0f} a step"


def main() -> None:
    """Compare, or write."""
    now, before = dict(counts()), {} if "--write" in sys.argv else committed()
    if "--write" in sys.argv:
        head = "# Calls of Python and C functions in all steps of small runs: python -m tests.engine.calls --write\n"
        FILE.write_text(head + "".join(line(run, count) + "\n" for run, count in now.items()))
    for run, count in now.items():
        sys.stdout.write(line(run, count) + (f" (was {before[run].a_step:.0f})" if run in before else "") + "\n")


if __name__ == "__main__":
    main()
