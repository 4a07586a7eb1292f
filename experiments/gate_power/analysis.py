"""How often the gate is wrong."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.gate_power.builds import MEANS, TAILS, Few, Pool, build, groups, planted, play, pool
from skg_bench.analysis.gate.baseline import BUDGET
from skg_bench.analysis.gate.judge import GateState, Harm, Judged, judge, judge_together, overall_state
from skg_bench.analysis.gate.rules import RULES, Rule, blocking
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import I64
from skg_bench.study.replications import generator

TITLE = "How often the gate is wrong"
COMMAND = "skg-bench experiment gate_power"
CROWD = 1000  # users, to find harm to 5 % of them
PANEL = 100  # users of the panel: conf/profile/gate.yaml
JITTERS = 4  # populations run twice, the second time with jittered vectors
CHANGES = {"another threshold": "policy.threshold=0.55", "no reranker": "reranker=identity"}
BETTER = "policy.threshold=0.6"  # utility +0.023, 1.3 points fewer wrong answers, 3 points fewer hits
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
    states: tuple[GateState, ...]
    wrong: tuple[GateState, ...]  # verdicts that may come in 5 % of cases at most, together

    @property
    def mistakes(self) -> int:
        return sum(state in self.wrong for state in self.states)

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
        return low <= MAY and (not self.harm.startswith("none") or len(self.states) < ENOUGH or high <= AT_MOST)

    def cells(self) -> tuple[str, ...]:
        """As text under HEADINGS."""
        n = len(self.states)
        shares = (f"{100 * self.states.count(state) / n:.1f} %" for state in ("pass", "inconclusive", "fail"))
        low, high = self.limits
        return (
            self.source, self.harm, self.users, f"{n:,}", *shares, f"{100 * self.mistakes / n:.1f} %",
            f"{100 * low:.1f}-{100 * high:.1f} %", "yes" if self.holds else "NO",
        )  # fmt: skip


NOT_FAILED: tuple[GateState, ...] = ("pass", "inconclusive")
NOT_PASSED: tuple[GateState, ...] = ("fail", "inconclusive")
Judging = Callable[[np.random.Generator, int], list[Judged]]  # of a build that so many fresh users met


def drawn(source: Pool, rng: np.random.Generator, users: int) -> I64:
    """Fresh users."""
    return rng.integers(0, len(source), users)


def made(source: Pool, rng: np.random.Generator, users: int, shift: Mapping[str, float]) -> list[Harm]:
    """A build that so many fresh users met."""
    return build(source, drawn(source, rng, users), shift)


def asked(judged: Iterable[Judged]) -> int:
    """Users that the gate asks for: enough for every metric."""
    return max(judgement.users or 0 for judgement in judged)


def as_asked(judged: Judging, rng: np.random.Generator) -> tuple[GateState, int]:
    """Start with a panel; if the gate is inconclusive, take as many fresh ones as it asks for, once."""
    first = judged(rng, PANEL)
    if overall_state(first) != "inconclusive":
        return overall_state(first), PANEL
    users = asked(first)
    return overall_state(judged(rng, users)), users


def lines(source: Pool, builds: int, seed: int) -> Iterator[Line]:
    """All that is resampled from a pool in which nothing is worse."""

    def repeated(label: int) -> Iterator[np.random.Generator]:
        return (generator(seed + label, r) for r in range(builds))

    def judged(shift: Mapping[str, float]) -> Judging:
        return lambda rng, users: judge(made(source, rng, users, shift))

    def at_panel(shift: Mapping[str, float], label: int) -> tuple[GateState, ...]:
        return tuple(overall_state(judged(shift)(rng, PANEL)) for rng in repeated(label))

    yield Line(source.name, "none", f"{PANEL}", at_panel({}, 0), ("fail",))
    yield _asked(source, "none", judged({}), repeated(1), ("fail",))
    for at, rule in enumerate(MEANS):
        yield Line(
            source.name, f"m in {rule.metric}", f"{PANEL}", at_panel({rule.metric: rule.margin}, 2 + at), ("pass",)
        )
    for at, rule in enumerate(MEANS):
        harm = f"2 m in {rule.metric}"
        yield _asked(source, harm, judged({rule.metric: 2 * rule.margin}), repeated(12 + at), NOT_FAILED)
    for at, rule in enumerate(TAILS):
        yield from _few(source, rule, repeated(22 + 2 * at), repeated(23 + 2 * at))
    five = Few(0.05, 0.05)
    states = tuple(overall_state(judge(build(source, drawn(source, rng, CROWD), {}, five))) for rng in repeated(32))
    yield Line(source.name, "5 % of users: 5 points more wrong answers", f"{CROWD:,}", states, NOT_FAILED)
    yield from _drift(source, repeated(33), repeated(34))


def _few(
    source: Pool, rule: Rule, rngs: Iterable[np.random.Generator], others: Iterable[np.random.Generator]
) -> Iterator[Line]:
    """The rule of one tail metric, by its own verdicts."""
    once, twice = (planted(source, rule, factor * rule.margin) for factor in (1, 2))

    def judged(rng: np.random.Generator, users: int, few: Few) -> list[Judged]:
        parts = judge(build(source, drawn(source, rng, users), {}, _by_chance(few, users, rng)))
        return [part for part in parts if part.metric == rule.metric]

    states = tuple(overall_state(judged(rng, PANEL, once)) for rng in rngs)
    yield Line(source.name, f"m in {rule.metric} (its rule alone)", f"{PANEL}", states, ("pass",))
    harm = f"2 m in {rule.metric} (its rule alone)"
    yield _asked(source, harm, lambda rng, users: judged(rng, users, twice), others, NOT_FAILED)


def _by_chance(few: Few, users: int, rng: np.random.Generator) -> Few:
    """Each user is one of the few by chance, as in a panel that is drawn."""
    return replace(few, share=rng.binomial(users, few.share) / users)


def _drift(source: Pool, rngs: Iterable[np.random.Generator], others: Iterable[np.random.Generator]) -> Iterator[Line]:
    """A build held against its baseline and, with the budget, against an anchor."""

    def judged(rng: np.random.Generator, users: int, lost: float) -> list[Judged]:
        base, anchor = made(source, rng, users, {}), made(source, rng, users, {"utility": lost * MEANS[0].margin})
        budget = [replace(harm, rule=harm.rule.times(BUDGET)) for harm in anchor]
        return [part for parts in judge_together([base, budget]) for part in parts]

    states = tuple(overall_state(judged(rng, PANEL, 0.0)) for rng in rngs)
    yield Line(source.name, "none, since the anchor neither", f"{PANEL}", states, ("fail",))
    harm = f"none, since the anchor 2 budgets ({2 * BUDGET:g} m) in utility"
    yield _asked(source, harm, lambda rng, users: judged(rng, users, 2 * BUDGET), others, NOT_FAILED)


def better(source: Pool, builds: int, seed: int) -> Line:
    """An improvement, with what it truly does."""
    rngs = (generator(seed + 40, r) for r in range(builds))
    states = tuple(overall_state(judge(made(source, rng, PANEL, {}))) for rng in rngs)
    return Line(source.name, f"none: better ({BETTER})", f"{PANEL}", states, NOT_PASSED)


def _asked(
    source: Pool,
    harm: str,
    judged: Judging,
    rngs: Iterable[np.random.Generator],
    wrong: tuple[GateState, ...],
) -> Line:
    states, users = zip(*(as_asked(judged, rng) for rng in rngs), strict=True)
    low, middle, high = np.quantile(users, [0.05, 0.5, 0.95])
    return Line(source.name, harm, f"asked: {middle:,.0f} ({low:,.0f}-{high:,.0f})", states, wrong)


def simulated(users: int, weeks: int, seed: int, workers: int) -> tuple[list[Pool], Pool, Line]:
    """Pools of real users in which nothing is worse, one of an improvement, and verdicts on unchanged groups."""
    sizes = [(f"seed={seed + i}", f"users={users}", f"weeks={weeks}", f"workers={workers}") for i in range(JITTERS)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        before = [play(out / f"before-{i}", size) for i, size in enumerate(sizes)]
        jittered = [play(out / f"jittered-{i}", size, jitter=i + 1) for i, size in enumerate(sizes)]
        changed = {name: play(out / name, (*sizes[0], change)) for name, change in CHANGES.items()}
        improved = play(out / "better", (*sizes[0], BETTER))
    pairs = list(zip(before, jittered, strict=True))
    states = tuple(held.state for pair in pairs for held in groups(*pair, PANEL))
    pools = [pool("vectors jittered", pairs), *(pool(name, [(before[0], after)]) for name, after in changed.items())]
    unchanged = Line("vectors jittered, simulated", "none", f"{PANEL}", states, ("fail",))
    return [each.harmless for each in pools], pool("fewer, better hits", [(before[0], improved)]), unchanged


def markdown(results: Iterable[Line], users: int) -> str:
    """The report; `users`: of each population that was simulated."""
    results = list(results)
    margins = ", ".join(f"{rule.metric} {rule.margin:g}" for rule in blocking(RULES))
    builds = max(len(line.states) for line in results)
    about = (
        f"Margins m: {margins}; since the anchor {BUDGET:g} m. *Wrong*, nominally 5 % at most: FAILED where nothing is "
        "worse, passed at a harm of m, anything but FAILED at 2 m, anything but passed where it is better; beside it "
        f"its 95 % limits (Monte Carlo; {users:,} users of each population, {builds:,} builds a line). *Its rule "
        "alone*: the verdict of that metric."
    )
    return page(TITLE, f"{COMMAND} --users {users} --write reports", about, _table(results).markdown())


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
    pools, improved, real = simulated(users, weeks, seed, workers)
    results = [
        real,
        better(improved, builds, seed),
        *(each for source in pools for each in lines(source, builds, seed)),
    ]
    return Report([_table(results)], markdown(results, users), holds=all(line.holds for line in results))


EXPERIMENT = Experiment(analyse)
