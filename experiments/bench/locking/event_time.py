"""Learning that takes time, in runs of the Guardian: what a conflict rule loses, and what that costs the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.counts.measure import Difference, contrast, differences
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.app.api import run as simulate
from skg_bench.app.experiment_report import Table
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

RULES = ("serial", "rebase", "replay", "blind")
AT_ONCE = "at_once"  # learning that takes no time
SLOW = "slow_"  # of an arm's name: a call takes 15 s in place of 4 s
SLOW_SECONDS = 15  # median of a call; the article's limit is 10
SITTINGS: Mapping[int, str] = {0: "each when it is due", 1: "in one sitting a day", 7: "in one sitting a week"}
MOMENT = 100  # ms within which a write can meet the retries of another one: on busy processors 99 of 100 took under 50
HEADINGS = (
    "later answers", "call", "rule", "jobs", "conflicts", "lost to conflicts",
    "duplicated", "misdirected", "merged", "aside", "timed out", "utility - serial", "new purchases", "verdict",
)  # fmt: skip
_RESAMPLES, _SEED = 1000, 0


@dataclass(frozen=True)
class Losses:
    """Outcomes of the operations that the jobs of an arm proposed."""

    users: pd.DataFrame  # a row a user: jobs, conflicts, met, operations, and each kind of loss

    def share(self, kind: str, over: str = "operations") -> Measured:
        """Share of a kind per operation, or per job; the interval is for new users."""
        counts, total = (self.users[name].to_numpy(np.float64) for name in (kind, over))
        u = draw(key(_SEED, 0), np.arange(_RESAMPLES)[:, None], Purpose.RESAMPLE, np.arange(len(counts))[None])
        users = (u * len(counts)).astype(np.int64)
        shares = counts[users].sum(axis=1) / np.maximum(total[users].sum(axis=1), 1.0)
        value = float(counts.sum() / max(total.sum(), 1.0))
        low, high = (float(x) for x in np.quantile(shares, (0.025, 0.975)))
        if not counts.any():  # resamples of nothing tell nothing: three in so many would have been seen
            high = 3.0 / max(float(total.sum()), 3.0)
        return Measured(value, min(low, value), max(high, value), "share")

    def total(self, kind: str) -> int:
        """How many in all."""
        return int(self.users[kind].sum())


@dataclass(frozen=True)
class Setting:
    """An arm of a run."""

    run: Run
    days: int  # between sittings
    arm: str
    losses: Losses
    cost: Difference | None  # utility against `serial`, with as slow a model; None: it is that one

    @property
    def rule(self) -> str:
        """Rule for conflicts."""
        return self.arm.removeprefix(SLOW)

    @property
    def slow(self) -> bool:
        """Does a call take 15 s?"""
        return self.arm.startswith(SLOW)


def arms(days: int) -> list[str]:
    """Arms of the run with sittings so many days apart: the slow model only where conflicts are likeliest."""
    return [*RULES, *([AT_ONCE, *(SLOW + rule for rule in RULES)] if days == max(SITTINGS) else [])]


def lived(profile: str, users: int, days: int) -> Run:
    """A run of the Guardian; one that is finished is taken as it is."""
    chosen = {arm: f"[{', '.join(_overrides(arm))}]" for arm in arms(days)}
    text = ", ".join(f"{arm}: {overrides}" for arm, overrides in chosen.items())
    overrides = ["experiment=guardian", f"profile={profile}", f"users={users}", f"simulator.sitting_days={days}"]
    return simulate([*overrides, f"arms={{{text}}}", "reference=serial", "contrasts=[]"], progress=False)


def _overrides(arm: str) -> list[str]:
    if arm == AT_ONCE:
        return []
    slow = [f"jobs.call_seconds={SLOW_SECONDS}"] if arm.startswith(SLOW) else []
    return ["jobs=model_calls", f"jobs.conflict={arm.removeprefix(SLOW)}", *slow]


def losses(run: Run, arm: str) -> Losses:
    """Outcomes of the jobs of an arm.

    Raises UsageError where the arm had none.
    """
    jobs = run.learning(arm).to_pandas()
    if not len(jobs):
        raise UsageError(f"{run.path}: arm {arm} has no learning jobs; take more users or weeks")
    late = jobs["result"] == "timed_out"
    timed_out = jobs["refused"].where(late, 0)
    columns = {
        "jobs": 1, "conflicts": jobs["meanwhile"] > 0, "met": _met(jobs.assign(late=late)),
        "operations": jobs["operations"] + timed_out, "timed_out": timed_out,
        **{name: jobs[name].fillna(0) for name in ("overwritten", "duplicated", "misdirected", "merged", "aside")},
    }  # fmt: skip
    by_user = pd.DataFrame(columns, index=jobs.index).groupby(jobs["user"]).sum()
    return Losses(by_user.reindex(range(int(run.manifest["users"])), fill_value=0))


def _met(jobs: pd.DataFrame) -> "pd.Series[bool]":
    """Would three tries not have been enough: did three other jobs of the user write within a moment?"""
    met = pd.Series(data=False, index=jobs.index)
    writes = jobs[~jobs["late"] & (jobs["operations"] > 0)]
    for _, of_user in writes.groupby("user"):
        ends = np.sort(of_user["end"].to_numpy("datetime64[ms]").astype(np.int64))
        within = np.searchsorted(ends, ends + MOMENT, "right") - np.searchsorted(ends, ends - MOMENT, "left")
        met[of_user.sort_values("end").index] = within > 3  # the job itself and three others
    return met


def settings(runs: Mapping[int, Run]) -> list[Setting]:
    """All arms that learn in time; `runs`: by days between sittings."""
    made = []
    for days, run in runs.items():
        requests, counts = _tallied(run, days)
        utility = metrics(Utility.of(run.config))["utility"]
        rivals = [arm for arm in arms(days) if arm != AT_ONCE and arm.removeprefix(SLOW) != "serial"]
        effects = [
            contrast([utility], counts[arm], counts[serial_of(arm)], requests)["utility"] for arm in rivals
        ]  # fmt: skip
        costs = dict(zip(rivals, differences(utility, effects), strict=True))
        made += [
            Setting(run, days, arm, losses(run, arm), costs.get(arm)) for arm in arms(days) if arm != AT_ONCE
        ]  # fmt: skip
    return made


def against_at_once(run: Run) -> dict[str, Measured]:
    """Addition of `rebase`, whose learning takes time, to the wait at a purchase and to utility."""
    requests, counts = _tallied(run, max(SITTINGS))
    shown = metrics(Utility.of(run.config))
    effects = contrast([shown["utility"], shown["latency_ms"]], counts["rebase"], counts[AT_ONCE], requests)
    units = {"utility": "utility per purchase", "latency_ms": "ms"}
    return {name: Measured.of(effects[name], unit) for name, unit in units.items()}


def serial_of(arm: str) -> str:
    """The arm with as slow a model whose jobs wait for one another."""
    return f"{SLOW if arm.startswith(SLOW) else ''}serial"


def _tallied(run: Run, days: int) -> tuple[LoggedEvents, dict[str, Tally]]:
    requests = events(run)
    return requests, {arm: tallies(run, arm, requests)[0] for arm in arms(days)}


def table(made: Sequence[Setting]) -> Table:
    """A row an arm."""
    return Table("event time", HEADINGS, [_line(each) for each in made])


def _line(each: Setting) -> tuple[str, ...]:
    cost = ("", "", "")
    if each.cost is not None:
        e = each.cost.estimate
        span = interval(*e.interval(new=True), "utility", signed=True)
        cost = number(e.mean, "utility", signed=True), span, each.cost.verdict
    kinds = ("overwritten", "duplicated", "misdirected", "merged", "aside", "timed_out")
    return (
        SITTINGS[each.days], f"{SLOW_SECONDS if each.slow else 4} s", each.rule, f"{each.losses.total('jobs'):,}",
        f"{1000 * each.losses.share('conflicts', 'jobs').value:.0f}",
        *(f"{1000 * each.losses.share(kind).value:.1f}" for kind in kinds), *cost,
    )  # fmt: skip
