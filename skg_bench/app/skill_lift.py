"""`skg-bench skills`: what each skill of a run is worth, worst first, and what removing the worst would have given."""

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np

from skg_bench.analysis.comparison.contrasts import MARGINS
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.lift.corrected import PlayedSkills, agreement, corrected, look
from skg_bench.analysis.lift.disclosure import prompt_words
from skg_bench.analysis.lift.first_order import Lifts, first_order, removal
from skg_bench.analysis.lift.seed_lifts import seed_lifts
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.app import table_blocks
from skg_bench.app.progress import Report, console, progress_bars
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64, I64
from skg_bench.core.temporary import replace_whole
from skg_bench.core.text import plural, printable
from skg_bench.runfolder.cautions import few_users, unfinished_run
from skg_bench.runfolder.manifest import salted_seed
from skg_bench.runfolder.measured_run import measured_run, shared_by
from skg_bench.runfolder.run import Run, made_here
from skg_bench.runfolder.worded_arms import arms_in_words

_HEADINGS = ("skill", "user", "id", "served", "right", "lift", "a serving", "since turn")
_SEED_HEADINGS = ("skill of all users", "served", "right", "lift a turn", "interval", "")
_SHOWN = 10
Play = Callable[[Run, str, Lifts, I64, Report], F64]  # app/left_out.py: exact lifts of some skills of an arm


@dataclass(frozen=True)
class SkillWorths:
    """Worth of all skills of an arm, S of them."""

    run: Run
    arm: str
    never: str
    lifts: Lifts
    exact: F64  # [S] NaN where it was not computed
    played: PlayedSkills | None  # None: first order alone

    @property
    def best_known(self) -> F64:
        """Exact lift `[S]`, or else the first order."""
        return np.where(np.isnan(self.exact), self.lifts.total, self.exact)

    @property
    def order(self) -> I64:
        """Rows of skills, worst first."""
        order: I64 = np.argsort(self.best_known, kind="stable")
        return order


def skill_worths(folder: Path, arm: str | None, exact: str | None, play: Play) -> SkillWorths:
    """Worth of an arm's skills (None: of the learner). `exact`: a number of the worst skills, or `all`; `play` plays
    users again without them.

    Raises UsageError for a run without the arm `never`, where nobody knows which answers were right, and for what
    `play` refuses.
    """
    many = _many(exact)
    run = measured_run(Run(folder))
    made_here(run, "the worth of skills")
    role = roles(run)
    learner = arm if arm is not None else role.learner
    if learner not in run.arms:
        raise UsageError(f"--arm {learner}: {nearest(str(learner), run.arms)}")
    if role.never is None:
        raise UsageError(
            f"{folder} has no arm that answers by the model alone, which skills are held against; run it again with "
            "'+arms.never=[policy=never,curator=none]'"
        )
    if shared_by(run):
        raise UsageError(
            f"{folder}: users of {', '.join(shared_by(run))} share a memory, and skills are counted by user; make a "
            "run without these arms"
        )
    if run.domain.in_words and learner in arms_in_words(run):
        raise UsageError(
            f"{folder}: in this world answers are words without a reference, so nobody knows which of them {learner} "
            "gave again; name an arm with a skillbook (--arm), or run it in simulator=assistant"
        )
    if exact is not None and not run.domain.answers:
        raise UsageError(
            f"{folder}: its skills keep no answers; what they say changes who hears it, and users are not played again "
            "without one; leave out --exact, or make a run with curator=without"
        )
    lifts = first_order(run, learner, role.never)
    known = np.full(len(lifts.skill), np.nan)
    if exact is None or not len(lifts.skill):
        return SkillWorths(run, learner, role.never, lifts, known, None)
    played = look(lifts, many, salted_seed(run.manifest, run.path))
    with progress_bars("without each skill", console(sys.stderr)) as (progress, _):
        known[played.rows] = play(run, learner, lifts, played.rows, progress)
    return SkillWorths(run, learner, role.never, lifts, known, played)


def show_worths(worths: SkillWorths, out: Path | None) -> None:
    """Print the worth of skills, and write all of them as CSV.

    Raises OSError.
    """
    screen, lifts = console(), worths.lifts
    answers = worths.run.domain.answers
    for line in filter(None, [unfinished_run(worths.run), *_sentences(worths)]):
        screen.print(line, soft_wrap=True)
    if worths.played is None:
        more = "" if answers else ", nor what it did to how the user hears the next one"
        screen.print(f"first order: what a skill kept others from being captured is not counted{more}", soft_wrap=True)
    else:
        for line in _exact_sentences(lifts, worths.exact, worths.played):
            screen.print(line, soft_wrap=True)
    shown = [i for i in worths.order.tolist() if lifts.served[i].sum()][:_SHOWN]
    if shown:
        headings = _HEADINGS if worths.played is None else (*_HEADINGS, "exact")
        rows = [_cells(lifts, worths.exact, i)[: len(headings)] for i in shown]
        table_blocks.show_table(screen, headings, rows)
    if seeds := _seed_rows(lifts):
        screen.print(
            "skills with which all users began: 95 % intervals over users, for all of these skills at once; a lift "
            f"within {MARGINS['utility']:g} a turn of 0 is equivalent to nothing",
            soft_wrap=True,
        )
        table_blocks.show_table(screen, _SEED_HEADINGS, seeds)
        if few := few_users(len(lifts.users)):
            screen.print(few, soft_wrap=True)
    if out is not None:
        text = StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(("user", "skill", "name", "born", "served", "right", "lift", "exact"))
        table.writerows(_row(lifts, worths.exact, i) for i in worths.order.tolist())
        replace_whole(out, text.getvalue().encode())
        screen.print(f"all of them: {out}", soft_wrap=True)


def _many(exact: str | None) -> int | None:
    """Number of skills; None: all.

    Raises UsageError for what is neither.
    """
    if exact in (None, "all"):
        return None
    if not exact.isascii() or not exact.isdigit() or not int(exact):
        raise UsageError(f"--exact {exact}: give a number of skills from 1 on, or all")
    return int(exact)


def _sentences(worths: SkillWorths) -> Iterator[str]:
    lifts, arm, never = worths.lifts, worths.arm, worths.never
    what = " (offers)" if worths.run.domain.answers else ""
    served = lifts.served.sum(axis=1) > 0
    yield (
        f"{arm}: {len(lifts.skill):,} {lifts.noun} of {plural(len(lifts.users), 'user')}; {int((~served).sum()):,} "
        f"were never served, {int((lifts.total < 0).sum()):,} hurt, {int((lifts.total > 0).sum()):,} helped"
    )
    yield (
        f"lift of all: {lifts.total.sum():+,.2f} utility beyond {never}, and {lifts.rest:+,.2f} at turns without a "
        f"skill{what}: together the whole difference"
    )
    hurts = lifts.share_that_hurts()
    yield f"of a user's served skills, {number(hurts.mean, 'share')} hurt ({_ends(hurts)}, over users)"
    if served.any():
        low, middle, high = (number(q, "utility", signed=True) for q in lifts.quantiles(0.1, 0.5, 0.9))
        yield f"lift of a served skill: 10 % have at most {low}, half at most {middle}, 10 % at least {high}"
    gone = removal(lifts)
    if gone.skills:
        yield (
            f"removed in the middle of the weeks, {plural(gone.skills, 'skill')} that had hurt until then would have "
            f"given {_signed(gone.by_lift)} a turn from then on"
        )
        yield f"  as many by ratings: {_signed(gone.by_ratings)}; by a coin: {_signed(gone.by_coin)}"
    if (words := prompt_words(worths.run, arm)) is not None:
        listed, read, whole = (f"{count / words.turns:,.1f}" for count in (words.listed, words.read, words.whole))
        yield (
            f"words of skills in prompts, a turn: {listed} of descriptions, {read} of bodies; {whole} if the "
            "prompt had the bodies of all skills to choose from"
        )


def _exact_sentences(lifts: Lifts, known: F64, choice: PlayedSkills) -> Iterator[str]:
    chosen, size = len(choice.rows), len(lifts.skill)
    drawn = f", {int(choice.drawn.sum()):,} of them drawn at random" if choice.drawn.any() else ""
    yield f"exact: users played again without the skill, for {chosen:,} of {size:,} skills{drawn}"
    served = choice.rows[lifts.served[choice.rows].sum(axis=1) > 0]
    alike = agreement(lifts.total[served], known[served])
    if alike.skills:
        yield (
            f"  first order of the {alike.skills:,} served ones: {number(alike.equal, 'share')} equal to it, "
            f"{number(alike.sign, 'share')} of the same sign, rank correlation {alike.rank:.2f}"
        )
    mean = corrected(lifts.total, known, choice)
    ends = "" if mean.low == mean.high else f", 95 % {interval(mean.low, mean.high, 'utility', signed=True)}"
    yield (
        f"  mean lift of all {size:,} skills: {number(mean.mean, 'utility', signed=True)} utility{ends}; first order "
        f"{number(float(lifts.total.mean()), 'utility', signed=True)}"
    )


def _ends(share: Estimate) -> str:
    return interval(*share.interval(new=False, bounds=(0.0, 1.0)), "share")


def _signed(estimate: Estimate) -> str:
    low, high = estimate.interval(new=False)
    return f"{number(estimate.mean, 'utility', signed=True)} ({interval(low, high, 'utility', signed=True)})"


def _cells(lifts: Lifts, known: F64, i: int) -> list[str]:
    served, lift = int(lifts.served[i].sum()), float(lifts.total[i])
    cells = [
        lifts.name[i], str(lifts.users[lifts.user[i]]), str(lifts.skill[i]), str(served), str(lifts.right[i]),
        f"{lift:+.2f}", f"{lift / served:+.2f}", str(lifts.born[i]), "-" if np.isnan(known[i]) else f"{known[i]:+.2f}",
    ]  # fmt: skip
    return [printable(cell) for cell in cells]


def _seed_rows(lifts: Lifts) -> list[list[str]]:
    """Cells of the worst and the best of the skills that all users began with."""
    seeds = seed_lifts(lifts, MARGINS["utility"])
    shown = seeds if len(seeds) <= 2 * _SHOWN else (*seeds[:_SHOWN], *seeds[-_SHOWN:])
    return [
        [
            printable(seed.name), str(seed.served), str(seed.right), number(seed.a_turn.mean, "utility", signed=True),
            interval(seed.low, seed.high, "utility", signed=True), seed.verdict,
        ]
        for seed in shown
    ]  # fmt: skip


def _row(lifts: Lifts, known: F64, i: int) -> tuple[object, ...]:
    counts = int(lifts.born[i]), int(lifts.served[i].sum()), int(lifts.right[i]), float(lifts.total[i])
    exact = "" if np.isnan(known[i]) else float(known[i])
    return int(lifts.users[lifts.user[i]]), int(lifts.skill[i]), lifts.name[i], *counts, exact
