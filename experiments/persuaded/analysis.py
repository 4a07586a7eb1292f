"""Holds a run of `persuaded` against its question: is the assistant listened to more, and are its users worse off?"""

from dataclasses import replace

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.claimed_proofs import ClaimedProofs, claimed_proofs
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.report import picture
from skg_bench.analysis.report.arm_looks import looks_of
from skg_bench.analysis.report.claimed import charts, ends, sign
from skg_bench.analysis.statistics.inference import PairedT
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed
from skg_bench.core.errors import UsageError

RUN = "experiment=persuaded profile=demo"
COMMAND = f"skg-bench run {RUN}; skg-bench experiment persuaded RUN --write reports"
ARMS = ("live", "frozen", "sham", "expert")
NAMES = {"live": "learns", "frozen": "book stays"}  # in the figure
WORDS = (
    ("How often users listen", "Share of interventions; a point holds all since the point before."),
    ("What that is worth to them", "On average: +1 an unwanted purchase held back, \u22121 a wanted one."),
)


def with_interval(test: PairedT, unit: str, *, signed: bool = False) -> str:
    """A mean and its 95 % interval over users."""
    return f"{number(test.mean, unit, signed=signed)} ({interval(*ends(test), unit, signed=signed)})"


def tables(proofs: ClaimedProofs) -> list[Table]:
    """The three proofs of the article, and what users have of them."""
    arcs = [
        (
            arm, *(with_interval(arc.looks[k], "share") for k in (0, -1)),
            *(with_interval(arc.worth[k], "utility") for k in (0, -1)), with_interval(arc.gain, "utility", signed=True),
        )
        for arm, arc in proofs.arcs.items()
    ]  # fmt: skip
    beyond = [
        (f"{live} - {control}", with_interval(test, "utility", signed=True))
        for (live, control), test in proofs.beyond.items()
    ]
    pairs = [
        (arm, with_interval(pair.share, "share"), with_interval(pair.reverse, "share"))
        for arm, pair in proofs.pairs.items()
    ]
    seeds = [
        (
            f"{contrast.arm} - {contrast.reference}", with_interval(contrast.acceptance[2], "difference", signed=True),
            with_interval(contrast.utility[2], "utility", signed=True),
        )
        for contrast in proofs.seeds
    ]  # fmt: skip
    heard = ("arm", "accepted of the first five", "of the last five", "utility, first five", "utility, last five")
    return [
        Table("A rising acceptance", (*heard, "utility, last - first"), arcs),
        Table("Utility of all interactions", ("arms", "difference"), beyond),
        Table("A pair of interactions", ("arm", "users who have it", "the other way round"), pairs),
        Table("Two seeds", ("arms", "acceptance", "utility a purchase"), seeds),
    ]


def worse_off(proofs: ClaimedProofs) -> bool:
    """Does acceptance rise while utility falls, from first interactions to last ones and beside the book that stays?"""
    live = proofs.arcs["live"]
    return sign(live.rise) > 0 > max(sign(live.gain), sign(proofs.beyond["live", "frozen"]))


def figure(run: OneRun, proofs: ClaimedProofs) -> str:
    """Acceptance and utility over interactions, side by side."""
    looks = looks_of(run, summary.read_summary(run))
    panels = [
        replace(
            panel,
            title=title,
            says=says,
            series=[replace(line, name=NAMES[line.name]) for line in panel.series if line.name in NAMES],
        )
        for panel, (title, says) in zip(charts(proofs, looks), WORDS, strict=True)
    ]
    return picture.side_by_side(panels, looks, list(NAMES.values()))


def analyse(run: OneRun) -> Report:
    """As expected if acceptance rises and utility falls, by whole intervals."""
    needed(run, ARMS, "persuaded")
    proofs = claimed_proofs(run)
    if proofs is None:
        raise UsageError(f"{run.path} has too few interactions; make a longer run: skg-bench run {RUN}")
    parts = tables(proofs)
    scope = (
        f"{run.manifest['users']} users, {run.manifest['weeks']} weeks, seed {run.manifest['seed']}; 95 % over users."
    )
    return Report(
        parts,
        page("Can users be worse off while they listen ever more often?", COMMAND, scope, *parts),
        holds=worse_off(proofs),
        figures={"persuaded.svg": figure(run, proofs)},
    )


EXPERIMENT = Experiment(analyse)
