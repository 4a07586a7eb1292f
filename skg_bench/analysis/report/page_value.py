"""The page as a value: all that its template names, with types. `page.html.j2` reads every field, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from skg_bench.analysis.labels.word_table import WordTables
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.chart import Chart
from skg_bench.analysis.report.claimed import Claimed
from skg_bench.analysis.report.heads import ArmLine, Head
from skg_bench.analysis.report.hit_cosines import HitCosines
from skg_bench.analysis.report.judged_arms import JudgedLog
from skg_bench.analysis.report.proof import Proof
from skg_bench.analysis.report.roster import RosterRow
from skg_bench.analysis.report.skill_rows import SkillTable
from skg_bench.analysis.report.tables import DifferenceTable, Level
from skg_bench.analysis.report.waterfall import ArmLosses
from skg_bench.runfolder.telling import Telling, TurnPanel

DrawnChart = tuple[Chart, Markup]  # with its drawing
Fact = tuple[str, str]  # name and value


@dataclass(frozen=True, slots=True)
class Preset:
    """Arms that a button of the figures shows."""

    label: str
    arms: str  # a list, in json


@dataclass(frozen=True, slots=True)
class SaturationRows:
    """Shares of requests that repeat earlier messages."""

    testable: bool
    limit: str
    rows: Sequence[Fact]


class Ceiling(NamedTuple):
    """Most hits that could be right, where so many answers of a type are needed first."""

    needed: str
    mean: str
    interval: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a run. Where a part is None or empty, the page has no such section."""

    # styles and scripts
    css: Markup
    arms_css: Markup  # a colour for each arm
    scripts: Sequence[Markup]
    # the head of the page
    title: str
    scope: Sequence[str]  # users, weeks, turns, seed
    question: str | None
    heads: Sequence[Head]
    lines: Sequence[ArmLine]
    cautions: Sequence[tuple[str, Markup]]  # tone and sentence
    # arms and figures
    learner: str
    reference: str | None
    looks: Sequence[Look]
    undrawn: Markup | None  # why some arms are in no figure
    least: int  # users below which a mean is not drawn
    presets: Sequence[Preset]
    figures: Sequence[DrawnChart]
    effect: DrawnChart | None  # what learning changed, turn by turn
    price: DrawnChart | None
    offers: DrawnChart | None
    # tables
    headings: Sequence[str]
    levels: Sequence[Level]
    differences: Sequence[DifferenceTable]
    effects: Sequence[DifferenceTable]
    cosines: Sequence[HitCosines]  # of arms that answer in words
    cosine_headings: Sequence[str]
    skills: SkillTable | None  # the learner's, worst first
    lifts: Markup | None  # how they are spread
    proof: Proof
    claimed: Claimed | None
    claimed_figures: Sequence[DrawnChart]
    beside: Sequence[str]  # folders of runs of the same world
    waterfalls: Sequence[ArmLosses]
    ceilings: Sequence[Ceiling]
    saturation: SaturationRows
    log: Sequence[Fact] | None  # of a replayed log
    judged: JudgedLog | None  # its answers from memory, as people judged them
    worded: WordTables | None  # words to tasks, as people and programs judged them
    word_headings: Sequence[str]
    word_intervals: str
    # words of the domain
    answers: bool  # are skills answers?
    trust: bool  # does playing its skills again run code that the run names?
    told_turn: TurnPanel | None
    taken: str  # heading of the share of interactions that users took
    hits: str  # heading of hits
    telling: Telling
    noun: str  # of what users bring
    person: str
    # users to look into
    people: Sequence[RosterRow]  # under the learner
    people_of_others: Mapping[str, Sequence[RosterRow]]  # by arm
    asked: bool  # were these users asked for by number?
    packed: Markup  # series of the figures, for `figures.js`
    settings: Markup  # for `users.js`
    timelines: Iterator[tuple[str, Markup]]  # id of an element, and the turns of a user under an arm
    # how to repeat it
    facts: Sequence[Fact]
    repeat: str
    exact: bool  # is that command known to the word?
    run_path: str
    manifest: str
    glossary: Sequence[Fact]
