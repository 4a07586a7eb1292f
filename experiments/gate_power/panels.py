"""Which panel should be gated: few users for long, or many for a short time, with or without the busiest ones?"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.gate_power.analysis import CHANGES, drawn
from experiments.gate_power.builds import MEANS, Pool, build, play, pool
from experiments.gate_power.guard import some
from skg_bench.analysis.gate.judge import GateState, judge, overall_state
from skg_bench.analysis.gate.panel import Panel
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare
from skg_bench.core.grid import I32, Bool
from skg_bench.core.texts import Embedding
from skg_bench.engine import cohort
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.vectors import Rows
from skg_bench.study.replications import generator

TITLE = "Which panel should be gated?"
COMMAND = "skg-bench experiment gate_power/panels --write reports"
SHAPES = ((100, 26), (200, 13), (400, 6))  # users x weeks: about as many turns
BUSIEST = 0.02  # share of the users who may be left out: a run has as many steps as the busiest user has turns
CHANGE = "another threshold"  # the builds: everybody differs; the mean harm is taken away
HEADINGS = (
    "users x weeks", "who", "turns", "of the busiest", "CPU seconds",
    *(f"2 m in {rule.metric}: FAILED" for rule in MEANS), "nothing worse: FAILED", "passed",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Cost of playing a panel under all arms of the gate."""

    turns: int  # of one arm
    longest: int  # of the busiest user
    seconds: float  # of CPU, of the closed loop


def kept(turns: np.ndarray, without: bool) -> Bool:
    """Users who are in the panel, by their number of turns."""
    return turns <= np.quantile(turns, 1 - BUSIEST) if without else np.ones(len(turns), np.bool_)


def cost(users: int, weeks: int, seed: int, without: bool) -> Cost:
    """Cost of a panel, in one process. Without the busiest it has as many users, from some more."""
    composed = compose(["experiment=gate", f"users={users}", f"weeks={weeks}", f"seed={seed}"])
    made, top_k = prepare(composed).plan, int(composed.root["router"]["top_k"])
    vectors = made.embedder.embed(made.simulator.messages)
    embedding = Embedding(lambda: vectors, made.embedder)
    setting = cohort.Setting(made.salted, made.simulator, lambda: Rows(vectors), made.weeks, embedding, made.comparison)
    ids: I32 = np.arange(-(-users // (1 - BUSIEST)) if without else users, dtype=np.int32)
    played = cohort.cohort_of(setting, ids[kept(cohort.cohort_of(setting, ids).n, without)][:users])
    begun = time.process_time()
    for stack in stacks(made.arms):
        cohort.run_cohort(setting, [made.arms[i] for i in stack], played, top_k, lambda _turns: None)
    return Cost(int(played.n.sum()), int(played.n.max()), time.process_time() - begun)


def harmless(pair: tuple[Panel, Panel], without: bool) -> Pool:
    """Users of a change, without its mean harm."""
    rows = np.flatnonzero(kept(pair[0].turns, without))
    before, after = (some(known, rows) for known in pair)
    return pool(CHANGE, [(before, after)]).harmless


def states(source: Pool, users: int, builds: int, seed: int, metric: str = "", harm: float = 0.0) -> list[GateState]:
    """Verdicts on builds that so many fresh users met, each once."""
    rngs = (generator(seed, at) for at in range(builds))
    return [overall_state(judge(build(source, drawn(source, rng, users), {metric: harm}))) for rng in rngs]


def cells(source: Pool, shape: tuple[int, int], builds: int, seed: int, without: bool) -> tuple[str, ...]:
    """One line under HEADINGS."""
    users, weeks = shape
    spent = cost(users, weeks, seed, without)
    failed = [
        states(source, users, builds, seed + 1 + at, rule.metric, 2 * rule.margin).count("fail")
        for at, rule in enumerate(MEANS)
    ]
    nothing = states(source, users, builds, seed)
    shares = (f"{100 * count / builds:.1f} %" for count in (*failed, nothing.count("fail"), nothing.count("pass")))
    who = f"without the busiest {100 * BUSIEST:g} %" if without else "all"
    return (f"{users} x {weeks}", who, f"{spent.turns:,}", f"{spent.longest:,}", f"{spent.seconds:.1f}", *shares)


def lines(users: int, builds: int, seed: int, workers: int) -> Iterator[tuple[str, ...]]:
    """All lines; populations of so many users."""
    for shape in SHAPES:
        sizes = (f"seed={seed}", f"users={users}", f"weeks={shape[1]}", f"workers={workers}")
        with tempfile.TemporaryDirectory() as folder:
            before = play(Path(folder) / "before", sizes)
            after = play(Path(folder) / "after", (*sizes, CHANGES[CHANGE]))
        for without in (False, True):
            yield cells(harmless((before, after), without), shape, builds, seed, without)


def analyse(
    builds: Annotated[int, typer.Option(help="Of each kind.", min=1)] = 1000,
    users: Annotated[int, typer.Option(help="Of each simulated population.", min=100)] = 400,
    seed: int = 0,
    workers: Annotated[int, typer.Option(help="Processes that simulate.", min=1)] = 2,
) -> Report:
    """Makes its own runs, in a quarter of an hour."""
    table = Table(TITLE, HEADINGS, list(lines(users, builds, seed, workers)))
    margins = ", ".join(f"{rule.metric} {rule.margin:g}" for rule in MEANS)
    about = (
        f"CPU seconds of the closed loop of all arms of `experiment=gate`, in one process. {builds:,} builds of each "
        f"kind, of users drawn from {users:,} who met `{CHANGES[CHANGE]}`, without its mean harm; each build is judged "
        f"once, without asking for more users. Margins m: {margins}."
    )
    return Report([table], page(TITLE, COMMAND, about, table.markdown()))


EXPERIMENT = Experiment(analyse)
