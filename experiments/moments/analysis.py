"""Simulated users beside public logs and papers: moments with sources and tolerances, and planted flaws."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from experiments.moments.flaws import FLAWS
from experiments.moments.measure import simulated, stream
from experiments.moments.outside import COMPUTED
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.simulator.answers.corpora_by_name import corpus_of
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.simulator.datasets import DatasetAbsent, datasets

COMMAND = "skg-bench experiment moments --write reports"
USERS, WEEKS = 200, 26
ABSENT = "files not here"
ENOUGH = 10 / 12  # share of moments that ought to be within tolerance
RULES = {
    "range": "two or more figures: from the least less a tenth to the largest and a tenth, as far as logs differ",
    "share": "one share: 0.15 to either side, as studies of a kind differ by more (0.46 and 0.81 of page visits are "
    "revisits: Obendorf et al. 2007, Cockburn and McKenzie 2001)",
    "rare": "one share below 0.15: a third to three times, since rare things differ by factors",
    "size": "one mean or ratio: a quarter to either side",
}
_OVERRIDDEN = ("simulator", "embedder", "llm")
Chosen = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Other users: simulator=clinc150, simulator.habit=0.")
]


@dataclass(frozen=True)
class PublicMoment:
    """A number of logs, with who published it, and the tolerance that its rule gives."""

    name: str
    what: str
    rule: str
    figures: Sequence[Mapping[str, float | str]]  # value, source
    stays: str = ""  # why it is left where it is, where it misses

    @property
    def values(self) -> list[float]:
        """Published values, the least first."""
        return sorted(float(figure["value"]) for figure in self.figures)

    @property
    def tolerance(self) -> tuple[float, float]:
        """Least and largest value within tolerance."""
        low, high = self.values[0], self.values[-1]
        if self.rule == "share":
            return max(low - 0.15, 0.0), high + 0.15
        below, above = {"range": (0.9, 1.1), "rare": (1 / 3, 3.0), "size": (0.75, 1.25)}[self.rule]
        return low * below, high * above

    def within(self, value: float) -> bool:
        """Is this value within tolerance?"""
        low, high = self.tolerance
        return low <= value <= high


@dataclass(frozen=True)
class PublicMoments:
    """All moments by name, and the sources of their figures."""

    moments: Mapping[str, PublicMoment]
    sources: Mapping[str, str]


def public_moments() -> PublicMoments:
    """Moments of `published.toml`."""
    read = tomllib.loads(text_of(Path(__file__).parent / "published.toml"))
    return PublicMoments({entry["name"]: PublicMoment(**entry) for entry in read["moment"]}, read["sources"])


def computed_again(known: PublicMoments) -> Table:
    """Figures of public corpora beside those that their files give now, where these are there."""
    rows = []
    for name, compute in COMPUTED.items():
        try:
            figures = compute(datasets()[name])
        except DatasetAbsent:
            figures = {}
        for moment in known.moments.values():
            for figure in moment.figures:
                if figure["source"] == name:
                    now = f"{figures[moment.name]:.3g}" if figures else ABSENT
                    rows.append((moment.name, name, f"{figure['value']:.3g}", now))
    return Table("Figures of public corpora, computed again", ("moment", "dataset", "published here", "now"), rows)


def moments_table(known: PublicMoments, values: Mapping[str, float]) -> Table:
    """Published and simulated values, and which are within tolerance."""
    rows = [
        (moment.name, moment.what, " and ".join(f"{value:.3g}" for value in moment.values), moment.rule,
         "{:.3g} to {:.3g}".format(*moment.tolerance), f"{values[moment.name]:.3g}",
         "yes" if moment.within(values[moment.name]) else "no")
        for moment in known.moments.values()
    ]  # fmt: skip
    return Table("Moments", ("moment", "what", "published", "rule", "tolerance", "simulated", "within"), rows)


def analyse(overrides: Chosen = None) -> Report:
    """Compares moments of simulated users with published figures.

    As expected if exactly the moments with a stated reason miss their tolerance, each planted flaw moves its moment
    out of it, and public corpora give the quoted figures.
    """
    given = overrides or []
    if other := [text for text in given if text.split("=")[0].split(".")[0] not in _OVERRIDDEN]:
        raise UsageError(
            f"moments do not depend on {other[0]}: {USERS} users and {WEEKS} weeks are fixed; valid are keys of "
            f"{', '.join(_OVERRIDDEN)}"
        )
    root = compose(["simulator=assistant", *given]).root
    world = build("simulator", root["simulator"], COMMAND_LINE)
    if not isinstance(world, AssistantUsers):
        raise UsageError("moments are those of simulated users who ask; valid are simulator=assistant and clinc150")
    embed, right = build("embedder", root["embedder"], COMMAND_LINE).embed, float(root["llm"]["right"])
    corpus, known = corpus_of(world.corpus), public_moments()
    values = simulated(world, corpus, embed, stream(world, USERS, WEEKS), right)
    held = moments_table(known, values)
    missing = [moment for moment in known.moments.values() if not moment.within(values[moment.name])]
    rows = []
    for flaw in FLAWS:
        moment, (flawed, flawed_corpus) = known.moments[flaw.moment], flaw.planted(world, corpus)
        value = simulated(flawed, flawed_corpus, embed, stream(flawed, USERS, WEEKS), right)[flaw.moment]
        rows.append(
            (flaw.part, flaw.what, flaw.moment, f"{values[flaw.moment]:.3g}", f"{value:.3g}",
             "no" if moment.within(value) else "yes")
        )  # fmt: skip
    flaws = Table("Planted flaws", ("part", "flaw", "moment", "without it", "with it", "out of tolerance"), rows)
    again = computed_again(known)
    stays = "\n".join(f"* `{moment.name}`: {moment.stays or 'no reason is known.'}" for moment in missing)
    enough, within = ceil(ENOUGH * len(known.moments)), len(known.moments) - len(missing)
    count = (
        f"{within} of {len(known.moments)} moments are within tolerance; ten in twelve, the mark, "
        f"{'are' if within >= enough else 'would be'} {enough}."
    )
    parts: list[Table | str] = [
        f"{USERS} users, {WEEKS} weeks, seed 0. {count}",
        held,
        "Tolerances by rule:\n\n" + "\n".join(f"* {rule}: {words}." for rule, words in RULES.items()),
        f"**What misses, and why it stays**\n\n{stays or 'Nothing.'}",
        flaws,
        again,
        "**Sources**\n\n" + "\n".join(source_lines(known)),
    ]
    holds = (
        missing == [moment for moment in known.moments.values() if moment.stays]
        and all(row[-1] == "yes" for row in flaws.rows)
        and all(row[-1] in (row[-2], ABSENT) for row in again.rows)
    )
    return Report(parts, page("Simulated users beside public logs", COMMAND, *parts), holds=holds)


def source_lines(known: PublicMoments) -> Sequence[str]:
    """Sources, each with the moments that it has figures of."""
    lines = []
    for name, words in known.sources.items():
        named = [
            f"`{moment.name}`"
            for moment in known.moments.values()
            if any(figure["source"] == name for figure in moment.figures)
        ]
        lines.append(f"* {', '.join(named)}: {words}.")
    return lines


EXPERIMENT = Experiment(analyse)
