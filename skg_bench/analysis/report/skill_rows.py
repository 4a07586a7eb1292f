"""Skills of the learner by what they were worth, worst first, from the logs: rows of a table of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.analysis.lift.first_order import LEAST_SERVINGS, Lifts, first_order
from skg_bench.analysis.report.addresses import turn_link
from skg_bench.analysis.report.chart import Chart, Series
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.typeset import DASH, typeset_interval, typeset_value
from skg_bench.analysis.summary import Summary
from skg_bench.runfolder.measured_run import shared_by
from skg_bench.runfolder.run import Run

_ROWS = 20
_SPREAD = range(10, 91, 5)  # percent of the served skills


@dataclass(frozen=True, slots=True)
class SkillRow:
    """A skill, and what it was worth to its user."""

    name: str
    owner: str  # its user
    turn: str  # address of the turn that weighs most
    served: str
    right: str
    lift: str
    interval: str
    age: str


@dataclass(frozen=True, slots=True)
class SkillTable:
    """The worst skills of an arm, and how many there are of each kind."""

    says: Sequence[str]  # sentences, names of arms between backticks
    headings: Sequence[str]
    rows: Sequence[SkillRow]
    chart: Chart  # how lifts are spread


def skill_table(run: Run, content: Summary, css: str) -> SkillTable | None:
    """Worst skills of the learner that were served; `css`: class of its lines. None: a skill is not shown to be worth
    something, as no arm answers by the model alone, or it is not known what was right, or skills are of somebody else.
    """
    arm, never = content.learner, content.never
    given = run.manifest["compositions"].get(arm, {}).get("book", "own") != "own"
    if never in (None, arm) or content.incomplete or given or shared_by(run):
        return None
    both = (block.turns(each, ["answer_correct"]) for (block,) in user_blocks([run]) for each in (arm, str(never)))
    if any(turns["answer_correct"].null_count for turns in both):
        return None
    lifts = first_order(run, arm, str(never))
    order = np.argsort(lifts.total, kind="stable")
    served = order[lifts.served.sum(axis=1)[order] > 0]
    if not len(served):
        return None
    low, high = lifts.intervals()
    rows = [_skill_row(lifts, i, (float(low[i]), float(high[i]))) for i in served[:_ROWS].tolist()]
    headings = ("Lift", "Served", "Right" if content.answers else "Content", "Age in turns")
    levels = [level / 100 for level in _SPREAD]
    spread = Series(arm, css, lifts.quantiles(*levels), *(2 * ([None] * len(levels),)))
    about = f"Lift of the {len(served):,} served ones, lowest first; at 50 is the median."
    chart = Chart("f-lifts", "How lifts are spread", about, "utility", "percent", list(_SPREAD), [spread])
    return SkillTable(_says(lifts, arm, str(never), len(rows), content.telling.noun), headings, rows, chart)


def _says(lifts: Lifts, arm: str, never: str, shown: int, noun: str) -> Sequence[str]:
    served = int((lifts.served.sum(axis=1) > 0).sum())
    hurt, helped = int((lifts.total < 0).sum()), int((lifts.total > 0).sum())
    many = f"{code(arm)} has {len(lifts.skill):,} {lifts.noun}."
    counts = f"{many} {served:,} were served: {hurt:,} hurt and {helped:,} helped."
    low, middle, high = (typeset_value(q, "utility", signed=True) for q in lifts.quantiles(0.1, 0.5, 0.9))
    spread = (
        f"A tenth of the served ones has a lift of at most {low}, half of at most {middle}, a tenth of {high} or more."
    )
    lift = f"Lift is the utility at a skill's servings beyond that of {code(never)} at the same {noun}s, summed."
    ends = f"Intervals are 95 % over servings, for all served skills at once, from {LEAST_SERVINGS} servings on."
    return (
        f"{counts} {spread} These are the {shown:,} worst.",
        f"{lift} What a skill kept others from being captured is not in it.",
        f"{ends} A name leads to the turn that weighs most.",
    )


def _skill_row(lifts: Lifts, i: int, ends: tuple[float, float]) -> SkillRow:
    served, owner = int(lifts.served[i].sum()), int(lifts.users[lifts.user[i]])
    turns = int(lifts.turns[lifts.user[i]].sum())
    known = not np.isnan(ends[0])
    return SkillRow(
        name=lifts.name[i],
        owner=str(owner),
        turn=turn_link(owner, int(lifts.decisive[i])),
        served=f"{served:,}",
        right=f"{int(lifts.right[i]):,}",
        lift=typeset_value(float(lifts.total[i]), "utility", signed=True),
        interval=typeset_interval(ends[0], ends[1], "utility", signed=True) if known else DASH,
        age=f"{turns - max(int(lifts.born[i]), 0):,}",
    )
