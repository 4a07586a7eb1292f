"""How many verdicts can each assumption turn, by how small a change, and what would it cost to know it?"""

import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite, sqrt
from pathlib import Path
from typing import Annotated, Any

import typer

import skg_bench
from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.saturation import corpus
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.runfolder.run import Run
from skg_bench.study.turning import JudgedDifference, StudySize, TurningPoint, study_size, turn

COMMAND = "skg-bench experiment assumptions/ranked --write reports"
REFERENCE = "never"
LEAST = 0.001  # part of a range below which a verdict is on the edge, and no study tells
ARMS: Mapping[str, str] = {
    REFERENCE: "policy=never, curator=none",
    "skg": "",
    "skg_prompted": "serving=prompted",
    "skg_procedure": "serving=procedure, named_by=intent",
    "recipe_prompted": "router=recipe, serving=prompted, curator=everything",
    "exact_match": "router=exact",
    "oracle": "router=oracle, policy=always, curator=oracle",
}
RANKED = (
    "assumption",
    "as it is",
    "range",
    "verdicts that turn",
    "smallest change",
    "of its range",
    "users",
    "days",
    "labels",
)
VERDICTS = ("arm - never", "utility", "new requests", "verdict", "turned by, the smallest part of a range first")
STUDIES = ("assumption", "occasions that a study looks at", "a user a day")


@dataclass(frozen=True)
class Assumption:
    """A number that nobody knows, with the range in which it is tried, and what a study of it looks at."""

    name: str  # key of the simulator; with `llm.` before it, of the model
    low: Any
    high: Any
    between: float
    within: float | str
    per_day: float
    labels: bool
    what: str
    counted: float = 1.0

    @property
    def key(self) -> str:
        """Key of the configuration."""
        return self.name if "." in self.name else f"simulator.{self.name}"

    @property
    def width(self) -> float:
        """Width of the range."""
        return size(self.high) - size(self.low)

    def study(self, usual: float, turned: float) -> StudySize:
        """The study that tells the usual value from that at which a verdict turns; of a share, the more varied one."""
        within = self.within
        if isinstance(within, str):
            within = sqrt(max(share * (1 - share) for share in (usual, turned)))
        precision = abs(turned - usual)
        study = study_size(within, self.between, precision=precision, per_day=self.per_day, labelled=self.labels)
        return replace(study, users=ceil(study.users / self.counted))


def size(value: Any) -> float:
    """Value of a number; of a list its first entry."""
    return float(value[0] if isinstance(value, Sequence) else value)


def assumptions() -> list[Assumption]:
    """Assumptions of `ranges.toml`."""
    tables = tomllib.loads(text_of(Path(__file__).with_name("ranges.toml")))
    return [Assumption(name, **row) for name, row in tables.items()]


def gains(run: Run) -> dict[str, JudgedDifference]:
    """Gain of each arm; none of an arm whose interval is withheld."""
    requests, utility = events(run), metrics(Utility.of(run.config))["utility"]
    base, results = tallies(run, REFERENCE, requests)[0], {}
    for arm in run.arms:
        if arm != REFERENCE:
            e = contrast([utility], tallies(run, arm, requests)[0], base, requests)["utility"]
            m = Measured.of(e)  # as far as the widest interval reaches
            if isfinite(m.low) and isfinite(m.high):
                results[arm] = JudgedDifference(m.value, m.low, m.high)
    return results


@dataclass(frozen=True)
class Swept:
    """Gains at each value of an assumption, by arm."""

    assumption: Assumption
    usual: float
    gains: Mapping[float, Mapping[str, JudgedDifference]]

    def turns(self) -> dict[str, TurningPoint]:
        """Smallest changes that turn a verdict, by arm; the smallest first."""
        turned = {
            arm: turn({value: by_arm[arm] for value, by_arm in self.gains.items() if arm in by_arm}, self.usual)
            for arm in self.gains[self.usual]
        }
        some = {arm: each for arm, each in turned.items() if each is not None}
        return dict(sorted(some.items(), key=lambda item: abs(item[1].change)))

    def of_range(self, change: float) -> float:
        """A change as a part of the range."""
        return abs(change) / self.assumption.width


def ranked(swept: Sequence[Swept]) -> Table:
    """Assumptions by how many verdicts they turn, then by how small a change does."""
    rows = []
    for each in swept:
        turns, assumed = each.turns(), each.assumption
        smallest = next(iter(turns.values()), None)
        ends = f"{size(assumed.low):g} to {size(assumed.high):g}"
        if smallest is None:
            cells, order = ("-", "-", "-", "-", "-"), 1.0
        elif (order := each.of_range(smallest.change)) < LEAST:
            cells = (f"{smallest.change:+.3g}", f"{order:.2f}", "-", "-", "-")
        else:
            study = assumed.study(each.usual, smallest.value)
            cells = (f"{smallest.change:+.3g}", f"{order:.2f}", f"{study.users:,}", f"{study.days:,}",
                     f"{study.labels:,}")  # fmt: skip
        rows.append((-len(turns), order, (assumed.name, f"{each.usual:g}", ends, f"{len(turns)}", *cells)))
    return Table("Assumptions, by the verdicts that they turn", RANKED, [cells for _, _, cells in sorted(rows)])


def verdicts(swept: Sequence[Swept]) -> Table:
    """Verdicts as they are, each with the assumptions that turn it."""
    usual = swept[0].gains[swept[0].usual]
    rows = []
    for arm, gain in usual.items():
        turned = [(each.of_range(made.change), each, made) for each in swept if (made := each.turns().get(arm))]
        words = "; ".join(
            f"{each.assumption.name} {made.word} from {made.value:.3g} ({part:.2f})"
            for part, each, made in sorted(turned, key=lambda item: item[0])
        )
        ends = interval(gain.low, gain.high, "utility", signed=True)
        rows.append((arm, number(gain.mean, "utility", signed=True), ends, gain.word, words or "none"))
    return Table("Verdicts, and what turns them", VERDICTS, rows)


def _scope(run: Run, given: Sequence[str]) -> str:
    sizes = ", ".join([f"{run.manifest['users']} users", f"weeks: {run.manifest['weeks']}", *given])
    return (
        f"{sizes}; {corpus(run.config)}. One assumption is changed at a time, to both ends of its range. Differences "
        "in utility a request with 95 % intervals for new users and new requests, each by itself: not corrected for "
        "their number, and without arms whose interval is withheld. *Smallest change*: where the end of an "
        "interval passes 0 on a straight line between the values that were tried. *Users*, *days*, *labels*: a study "
        "whose 95 % interval of the number is as wide as that change either way, planned with the spreads of "
        "[ranges.toml](../experiments/assumptions/ranges.toml), which are assumed as well. A dash: no value "
        "that was tried turns any of these verdicts, or the smallest turn is too near to be told by a study."
    )


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as seed=2; for all runs.")
    ] = None,
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 40,
    weeks: Annotated[int, typer.Option(help="Of each run.", min=1)] = 8,
    assumption: Annotated[list[str] | None, typer.Option(help="Name; repeatable. Default: all.")] = None,
    out: Folder = None,
) -> Report:
    """Makes its own runs, two for each assumption; a quarter of an hour of a core. Nothing expected is checked."""
    every = assumptions()
    if unknown := {*(assumption or ())} - {each.name for each in every}:
        raise UsageError(f"--assumption {min(unknown)}: valid are {', '.join(each.name for each in every)}")
    chosen = [each for each in every if not assumption or each.name in assumption]
    arms = ", ".join(f"{arm}: [{words}]" for arm, words in ARMS.items())
    plain = [f"arms={{{arms}}}", f"reference={REFERENCE}", f"users={users}", f"weeks={weeks}", "workers=1"]
    plain += overrides or ()
    console().print(f"at most {1 + 2 * len(chosen)} runs")
    with tempfile.TemporaryDirectory() as folder:
        place = out or Path(folder)
        base = skg_bench.run([*plain, f"out={place / 'as_it_is'}"], progress=False)
        as_it_is, swept = gains(base), list[Swept]()
        for each in chosen:
            group, _, name = each.key.partition(".")
            usual = size(base.config[group][name])
            if not size(each.low) <= usual <= size(each.high):
                ends = f"{size(each.low):g} to {size(each.high):g}"
                raise UsageError(f"{each.key}={usual:g} lies outside of its range, {ends} (ranges.toml)")
            by_value = {usual: as_it_is}
            for value in (each.low, each.high):
                if size(value) != usual:
                    run = skg_bench.run(
                        [*plain, f"{each.key}={value}".replace(" ", ""), f"out={place / f'{name}_{size(value):g}'}"],
                        progress=False,
                    )
                    by_value[size(value)] = gains(run)
            swept.append(Swept(each, usual, by_value))
    studies = Table("What a study would look at", STUDIES,
                    [(each.name, each.what, f"{each.per_day:g}") for each in chosen])  # fmt: skip
    tables = [ranked(swept), verdicts(swept), studies]
    text = page("Which assumptions turn which verdicts", COMMAND, _scope(base, overrides or ()), *tables)
    return Report(tables[:2], text)


EXPERIMENT = Experiment(analyse, one_thread=True)
