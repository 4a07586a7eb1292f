"""How often the gate is wrong."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.gate_power.builds import Pool, build, groups, play, pool
from experiments.known_truth.worlds import generator
from skg_bench.analysis.gate.baseline import MARGINS
from skg_bench.analysis.gate.judge import MIN_USERS, Judged, State, judge, verdict
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import I64

TITLE = "How often the gate is wrong"
COMMAND = "skg-bench experiment gate_power --write reports"
PANEL = 100  # users of the panel: conf/profile/gate.yaml
JITTERS = 4  # populations run twice, the second time with jittered vectors
CHANGES = {"another threshold": "policy.threshold=0.55", "no reranker": "reranker=identity"}
MAY = 0.05  # share of verdicts that may be wrong
AT_MOST = 0.075  # the upper binomial limit of failures where nothing is worse, from this many builds on:
ENOUGH = 1000
HEADINGS = (
    "builds drawn from",
    "true harm",
    "users",
    "builds",
    "passed",
    "inconclusive",
    "FAILED",
    "wrong",
    "95 % limits",
    "as due",
)


@dataclass(frozen=True)
class Line:
    """Verdicts on builds of one kind."""

    source: str
    harm: str
    users: str
    states: tuple[State, ...]
    wrong: State | None  # the verdict that may come in 5 % of cases at most; None: anything but FAILED

    @property
    def mistakes(self) -> int:
        return sum(state != "fail" if self.wrong is None else state == self.wrong for state in self.states)

    @property
    def limits(self) -> tuple[float, float]:
        """Clopper and Pearson's, 95 %, two-sided: the Monte Carlo error."""
        from scipy.stats import binomtest

        interval = binomtest(self.mistakes, len(self.states)).proportion_ci(0.95)
        return float(interval.low), float(interval.high)

    @property
    def holds(self) -> bool:
        """Mistakes are at most 5 % but for Monte Carlo error; with nothing worse, the upper limit is 7.5 % at most."""
        low, high = self.limits
        return low <= MAY and (self.harm != "none" or len(self.states) < ENOUGH or high <= AT_MOST)

    def cells(self) -> tuple[str, ...]:
        """As text under HEADINGS."""
        n = len(self.states)
        shares = (f"{100 * self.states.count(state) / n:.1f} %" for state in ("pass", "inconclusive", "fail"))
        low, high = self.limits
        return (
            self.source, self.harm, self.users, f"{n:,}", *shares, f"{100 * self.mistakes / n:.1f} %",
            f"{100 * low:.1f}-{100 * high:.1f} %", "yes" if self.holds else "NO",
        )  # fmt: skip


def drawn(source: Pool, rng: np.random.Generator, users: int) -> I64:
    """Fresh users."""
    return rng.integers(0, len(source), users)


def at_panel(source: Pool, shift: Mapping[str, float], rng: np.random.Generator) -> State:
    """The verdict with as many users as the panel has."""
    return verdict(judge(build(source, drawn(source, rng, PANEL), shift)))


def as_asked(source: Pool, shift: Mapping[str, float], rng: np.random.Generator) -> tuple[State, int]:
    """Start with few users; if the gate is inconclusive, take as many fresh ones as it asks for, once."""
    judgements = judge(build(source, drawn(source, rng, MIN_USERS), shift))
    if verdict(judgements) != "inconclusive":
        return verdict(judgements), MIN_USERS
    users = asked(judgements)
    return verdict(judge(build(source, drawn(source, rng, users), shift))), users


def asked(judged: Iterable[Judged]) -> int:
    """Users that the gate asks for: enough for every metric."""
    return max(judgement.users or 0 for judgement in judged)


def lines(source: Pool, builds: int, seed: int) -> Iterator[Line]:
    """All that is resampled from a pool."""

    def repeated(label: int) -> Iterator[np.random.Generator]:
        return (generator(seed + label, r) for r in range(builds))

    panel = f"{PANEL}"
    yield Line(source.name, "none", panel, tuple(at_panel(source, {}, rng) for rng in repeated(0)), "fail")
    yield _asked(source, "none", {}, repeated(1), "fail")
    for at, (metric, margin) in enumerate(MARGINS.items()):
        states = tuple(at_panel(source, {metric: margin}, rng) for rng in repeated(2 + at))
        yield Line(source.name, f"m in {metric}", panel, states, "pass")
    for at, (metric, margin) in enumerate(MARGINS.items()):
        yield _asked(source, f"2 m in {metric}", {metric: 2 * margin}, repeated(2 + len(MARGINS) + at), None)


def _asked(
    source: Pool, harm: str, shift: Mapping[str, float], rngs: Iterable[np.random.Generator], wrong: State | None
) -> Line:
    states, users = zip(*(as_asked(source, shift, rng) for rng in rngs), strict=True)
    low, middle, high = np.quantile(users, [0.05, 0.5, 0.95])
    return Line(source.name, harm, f"asked: {middle:,.0f} ({low:,.0f}-{high:,.0f})", states, wrong)


def simulated(users: int, weeks: int, seed: int, workers: int) -> tuple[list[Pool], Line]:
    """Pools of real users, and the verdicts on groups of them as they are."""
    sizes = [(f"seed={seed + i}", f"users={users}", f"weeks={weeks}", f"workers={workers}") for i in range(JITTERS)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        before = [play(out / f"before-{i}", size) for i, size in enumerate(sizes)]
        jittered = [play(out / f"jittered-{i}", size, jitter=i + 1) for i, size in enumerate(sizes)]
        changed = {name: play(out / name, (*sizes[0], change)) for name, change in CHANGES.items()}
    pairs = list(zip(before, jittered, strict=True))
    states = tuple(held.state for pair in pairs for held in groups(*pair, PANEL))
    pools = [pool("vectors jittered", pairs), *(pool(name, [(before[0], after)]) for name, after in changed.items())]
    return pools, Line("vectors jittered, simulated", "none", f"{PANEL}", states, "fail")


def markdown(results: Iterable[Line]) -> str:
    """The report."""
    margins = ", ".join(f"{name} {margin:g}" for name, margin in MARGINS.items())
    about = (
        f"Margins m: {margins}. *Wrong*: FAILED where nothing is worse, passed at a harm of m, anything but "
        "FAILED at 2 m; beside it its 95 % limits (Monte Carlo)."
    )
    return page(TITLE, COMMAND, about, _table(results).markdown())


def _table(results: Iterable[Line]) -> Table:
    return Table(TITLE, HEADINGS, [line.cells() for line in results])


def analyse(
    builds: Annotated[int, typer.Option(help="Of each kind.", min=1)] = 1000,
    users: Annotated[int, typer.Option(help="Of each simulated population.", min=PANEL)] = 1000,
    weeks: Annotated[int, typer.Option(help="Of each simulated population.", min=1)] = 26,
    seed: int = 0,
    workers: Annotated[int, typer.Option(help="Processes that simulate.", min=1)] = 2,
    quick: Annotated[bool, typer.Option("--quick", help="200 builds, 200 users: a minute.")] = False,
) -> Report:
    """Makes its own runs, in ten minutes; as expected if every line ends in yes."""
    if quick:
        builds, users = 200, 200
    pools, real = simulated(users, weeks, seed, workers)
    results = [real, *(line for source in pools for line in lines(source, builds, seed))]
    return Report([_table(results)], markdown(results), holds=all(line.holds for line in results))


EXPERIMENT = Experiment(analyse)
