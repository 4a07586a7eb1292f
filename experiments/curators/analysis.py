"""Curators beside their own controls: which differences hold, what learning cost, and what was removed."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite

import numpy as np

from experiments.curators import frontier, reader
from experiments.curators.lineup import (
    AS_IT_IS,
    CLOSED,
    SAME_LOG,
    TELLING,
    TELLS,
    cap_of,
    parted,
    real_models,
    world_of_run,
    wrong_of,
)
from experiments.curators.pruning import HEADINGS, LEAST, Truth, as_percent, judged_skills, texts_read, world_of, worths
from experiments.curators.worths import AHEAD, Row, Worths, difference_cells
from skg_bench.analysis.comparison.assay import OPEN, ClaimVerdict, Measured
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.analysis.counts.measure import PROVEN, Difference
from skg_bench.analysis.counts.wording import number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.library.strategies import strategies

TITLE = "Curators beside their own controls"
PRUNING = ("lifelong", "lifelong_coin")  # arms that learn on to the end
INTERVALS = ("95 %, other users", "95 %, also other purchases")
COMMAND = "skg-bench claims --make curators"  # makes the runs, and this report of them
WORLD = " ".join(f"simulator.{text}" for text in TELLING)
READING = """
* Models are scripted or simulated, as the table says. They show that methods and controls work, and not how good a real
  model is. The scripts of all methods note the same things. USD are by the configured prices.
* Ahead of `empty`: it helps to say what was learned. Ahead of `sham`: it matters what the texts say, which the scripts
  decide here. Ahead of `coin`: ratings matter. Only `reflecting` and `reflective` rate skills, and have this control.
* In the closed loop, advice wears off for users who hear it often. On the same log it does not.
""".strip()


def summary_table(rows: Sequence[Row]) -> Table:
    """Curators by world, cap and regime, with what their controls say in words."""
    cells = [
        (
            row.entry.curator, row.entry.regime, row.cap, row.world, row.model, number(row.utility.mean, "utility"),
            beyond(row.against["frozen"]), f"{row.usd:.3f}", f"{row.tokens:,.0f}", row.reading,
        )
        for row in rows
    ]  # fmt: skip
    head = ("curator", "regime", "cap", "world", "model", "utility a purchase", "- frozen",
            "USD of learning, a user", "tokens of learning, a user", "beside its controls")  # fmt: skip
    return Table("Curators, once their books stay", head, cells)


def beyond(gap: Difference) -> str:
    """A difference with its interval for other users and purchases."""
    mean, _, ends, _ = difference_cells(gap)
    return f"{mean} ({ends})"


def controls_table(rows: Sequence[Row], title: str) -> Table:
    """Each difference with both intervals."""
    cells = [
        (row.entry.curator, row.entry.regime, name, *difference_cells(gap))
        for row in rows
        for name, gap in row.against.items()
    ]
    head = ("curator", "regime", "less", "utility a purchase", *INTERVALS, "verdict")
    return Table(title, head, cells)


def errors_table(runs: Sequence[Worths]) -> Table:
    """Reflectors by the share of verdicts that is turned round."""
    cells = [
        (
            world_of_run(known.run), cap_of(known.run, arm), _share(known.run, arm), number(utility.mean, "utility"),
            *(("-",) * 4 if gap is None else difference_cells(gap)),
        )
        for known in runs
        for arm, (utility, gap) in known.erring.items()
    ]  # fmt: skip
    head = ("world", "cap", "verdicts turned round", "utility a purchase", "- 0 %", *INTERVALS, "verdict")
    return Table("How good must a reflector be?", head, cells)


def _share(run: Run, arm: str) -> str:
    return f"{100 * wrong_of(run, arm):g} %"


def errors_words(known: Worths) -> list[str]:
    """Sentence on what verdicts on skills cost that are turned round."""
    gaps = {_share(known.run, arm): gap for arm, (_, gap) in known.erring.items() if gap is not None}
    if not gaps:
        return []
    costs = "; ".join(
        f"{share}: {number(gap.estimate.mean, 'utility', signed=True)} ({gap.verdict})" for share, gap in gaps.items()
    )
    place = place_words(world_of_run(known.run), cap_of(known.run, next(iter(known.erring))))
    words = f"Verdicts on skills turned round ({place}), change in utility a purchase: {costs}."
    if not any(gap.verdict in PROVEN for gap in gaps.values()):
        words += " Ratings decide too little here to say how good a model must be."
    return [words]


def place_words(world: str, cap: str) -> str:
    """World and cap of a run, in words."""
    return f"world {world}, {'no cap' if cap == 'none' else f'cap of {cap}'}"


def world_words(world: str) -> str:
    """World other than the usual one, as the place of a sentence."""
    return f"where {TELLS}" if world == TELLS else f"in the world {world}"


def size_words(runs: Sequence[Worths]) -> str:
    """Sentence on the size of differences that such runs find."""
    sizes = [gap.mde_new for known in runs for row in known.rows for gap in row.against.values()]
    if not np.isfinite(sizes).any():
        return ""
    return f"Half of the comparisons find a true difference of {np.nanmedian(sizes):.3f} in 80 of 100 such runs."


def users_words(runs: Sequence[Run]) -> str:
    """Sentence on runs whose users differ; empty: all have the same ones."""
    known = {(run.manifest["seed"], run.manifest.get("salt"), run.manifest["users"]) for run in runs}
    return "Each run has other users: compare arms within a run." if len(known) > 1 else ""


def analysis_words(known: Worths) -> list[str]:
    """Sentence on a skill manager that is told the analysis alone, as in the article's code."""
    if known.told is None:
        return []
    words = (
        f"`analysis` less `reflecting`, both scripted: {beyond(known.told)} utility a purchase, {known.told.verdict}. "
        "The skill manager of `analysis` gets the reflector's analysis alone, as in the article's code. Its script "
        "rates skills and adds none, because no learning is passed on."
    )
    return [words]


def same_log(run: Run, since: int) -> tuple[list[str], bool]:
    """Sentence on whether curators read the same turns, and whether they all did."""
    made = run.manifest["compositions"]
    named = [arm for arm in run.arms if arm.endswith("_log") and f"{arm.removesuffix('_log')}_given" in run.arms]
    arms = [arm for arm in run.arms if arm in named or "skills" in made[arm]["policy"]]
    if len(arms) < 2:
        return [], True
    apart = {arm: n for arm, n in parted(run, arms, since).items() if n}
    if apart:
        differing = ", ".join(f"{arm} at {n:,} turns" for arm, n in apart.items())
        words = f"NOT the same log: arms served other skills than {arms[0]}, or changed seeds: {differing}."
        return [words], False
    words = (
        f"Same log: {len(arms)} arms served the same on each of a user's first {since} purchases. Only skills that the "
        "book began with are served there, so that only these are rated."
    )
    return [words], True


# ------------------------------------------------------------------------------------------------------ removals


def truths(runs: Sequence[Run]) -> tuple[Table, list[str], dict[str, Truth]]:
    """Table of what is removed and reworded, sentences on the reader, and the truth of `lifelong` by world."""
    cells, words, by_world = [], list[str](), dict[str, Truth]()
    for run in runs:
        arms, name = [arm for arm in PRUNING if arm in run.arms], world_of_run(run)
        if not any(judged_skills(run, arm) for arm in arms) or name in by_world:
            continue
        world, seed = world_of(run)
        known = worths(world, seed, int(run.manifest["users"]), int(run.manifest["weeks"]))
        for arm in arms:
            truth = Truth.of(run, arm, known)
            cells += [(name, *row) for row in truth.rows(arm) if row[4] != "0"]
            if arm == PRUNING[0]:
                by_world[name] = truth
        words.append(f"World {name}. {texts_read(run, arms, known)}")
    title = f"Removed and reworded, of skills with {LEAST} ratings or more"
    return Table(title, ("world", *HEADINGS), cells), words, by_world


@cache
def confusion() -> Table:
    """How well the reader tells sound texts from vague ones: each text of the library, read by the others."""
    table = strategies()
    return reader.by_soundness([*reader.left_out(table), *reader.paraphrased(table)])


def holding(truth: Truth) -> tuple[bool, bool]:
    """Are most of the removed bad, more than a coin would hit; and is most of what is reworded better afterwards?"""
    removes = truth.removed.word == "better than a coin" and truth.bad_of_removed[1] > 0.5
    return removes, truth.better_of_reworded[1] > 0.5


def pruning_findings(by_world: Mapping[str, Truth], evidence: Evidence) -> list[Finding]:
    """U14 in the world as it is and, where that fails, in the others."""
    base = by_world.get(AS_IT_IS)
    if base is None:
        return []
    others = {name: truth for name, truth in by_world.items() if name != AS_IT_IS}
    results = []
    for nth, (claimed, what) in enumerate(
        (("REMOVE prunes what is consistently harmful", "removed"), ("UPDATE refines", "reworded"))
    ):
        counts, share = (base.removed, base.bad_of_removed) if nth == 0 else (base.reworded, base.better_of_reworded)
        elsewhere = [name for name, truth in others.items() if holding(truth)[nth]]
        fallback: ClaimVerdict = "attainable" if elsewhere else "not reproduced" if isfinite(share[0]) else OPEN
        verdict: ClaimVerdict = "reproduced" if holding(base)[nth] else fallback
        low, high = counts.coin
        words = (
            f"Of {counts.done:,} skills that a simulated reflector {what}, {counts.precision:.1%} were bad: worth less "
            f"than the generic question. Of all {counts.judged:,} with {LEAST} ratings, {counts.base:.1%} were bad; of "
            f"as many drawn by a coin, {as_percent(low)} to {as_percent(high)}. "
        )
        words = words if counts.done else f"No skill with {LEAST} ratings was {what}. "
        if nth and isfinite(share[0]):
            words += f"Of those that changed in worth, {share[0]:.1%} were better afterwards. "
        for name, truth in others.items():
            place = world_words(name)
            words += f"{place[0].upper()}{place[1:]}, {_elsewhere(truth, nth)}. "
        value, least, most = (100 * part for part in share)
        unit = "% of the removed are bad" if nth == 0 else "% of those that changed became better"
        percent = Measured(value, least, most, unit) if isfinite(value) else "too few users to tell"
        where = world_words(elsewhere[0]) if verdict == "attainable" else ""
        results.append(Finding("U14", claimed, percent, verdict, words.strip(), evidence, where=where))
    return results


def _elsewhere(truth: Truth, nth: int) -> str:
    if nth:
        return f"{as_percent(truth.better_of_reworded[0])} were better afterwards"
    removed = truth.removed
    return f"{as_percent(removed.precision)} of the removed were bad, and {as_percent(removed.base)} of all"


def reflection_finding(rows: Sequence[Row], real: Mapping[str, str], evidence: Evidence) -> Finding:
    """P49 by a real or recorded model beside the frozen book and its own sham; without one, what is not claimed.
    `real`: such models, by arm of the runs.
    """
    claimed = "growth comes from the reflection of a real model"
    held = [row for row in rows if row.entry.learns in real and "sham" in row.against]
    if not held:
        words = (
            f"{' and '.join(real)} asked a model, and no such arm has controls beside it (ARM_empty, ARM_sham). So "
            "nothing is claimed of it."
            if real
            else "No real model was asked: all models of these runs are scripts or simulations, and 0 USD were spent. "
            "So nothing is found on how well a real model reflects. experiments/curators/README.md has the command for "
            "one."
        )
        measured = "a real model without controls" if real else "no real model was asked"
        return Finding("P49", claimed, measured, OPEN, words, evidence)
    gap, grown = held[0].against["sham"], held[0].against["frozen"]
    both = gap.verdict in AHEAD and grown.verdict in AHEAD
    verdict: ClaimVerdict = "reproduced" if both else "not reproduced"
    words = f"{held[0].entry.curator} ({held[0].model}): {held[0].reading}; less the frozen book {beyond(grown)}."
    return Finding("P49", claimed, Measured.of(gap.estimate, "utility a purchase"), verdict, words, evidence)


# --------------------------------------------------------------------------------------------------------- report


def figure(rows: Sequence[Row]) -> str:
    """The frontier of what books are worth against what learning cost, in the world as it is."""
    panels = {regime: [_point(row) for row in rows if row.entry.regime == regime] for regime in (CLOSED, SAME_LOG)}
    caps = ", ".join(dict.fromkeys(row.cap for row in rows if row.cap != "none"))
    how = (
        "Utility a purchase after learning, less that with the book that all began with (dotted). Bars: 95 % interval.",
        "Dashed: the most that is gained at this cost or less. Models are scripted or simulated, at configured prices."
        + (f" Rings: cap of {caps}." if caps else ""),
    )
    return frontier.drawn(
        "What is a curator's book worth, and what did learning cost?", how,
        {f"Regime: {name}": points for name, points in panels.items() if points},
    )  # fmt: skip


def _point(row: Row) -> frontier.Point:
    estimate = row.against["frozen"].estimate
    low, high = estimate.interval(new=True)
    return frontier.Point(row.entry.curator, row.cap != "none", row.usd, estimate.mean, low, high)


def words_of(rows: Sequence[Row]) -> list[str]:
    """Sentences on which differences hold, one for each run and regime."""
    lines = []
    for place in dict.fromkeys((row.world, row.cap, row.entry.regime) for row in rows):
        here = [row for row in rows if (row.world, row.cap, row.entry.regime) == place]
        helps = [row.entry.curator for row in here if row.helps]
        praised = [row.entry.curator for row in here if not row.helps and row.against["frozen"].verdict in AHEAD]
        world, cap, regime = place
        ahead = f"ahead of all controls: {', '.join(helps)}" if helps else "no curator is ahead of all its controls"
        line = f"{regime}, {place_words(world, cap)}: {ahead}."
        if praised:
            line += f" Ahead of the frozen book, but not of all controls: {', '.join(praised)}."
        lines.append(line[0].upper() + line[1:])
    return lines


def analyse(runs: Runs) -> Report:
    """Analyses runs of `curators`, which may differ in their cap on tokens and in the world; as expected if all
    curators read the very same turns where the regime says so.
    """
    known = [Worths.of(run) for run in runs]
    if len(sinces := {each.since for each in known}) > 1:
        raise UsageError(
            f"these runs learn at a user's first {' and '.join(map(str, sorted(sinces)))} purchases, so that their "
            "utilities are of other purchases; give runs of one freeze_at"
        )
    labels = [(each.rows[0].cap, each.rows[0].world) for each in known]
    if twice := [label for i, label in enumerate(labels) if label in labels[:i]]:
        raise UsageError(
            f"two runs have the cap {twice[0][0]} and the world {twice[0][1]!r}; give one run for each cap and world"
        )
    rows = [row for each in known for row in each.rows]
    logs = [same_log(run, each.since) for run, each in zip(runs, known, strict=True)]
    removals, read, by_world = truths(runs)
    controls = [
        controls_table(each.rows, f"Beside controls: cap {cap}, world {world}")
        for each, (cap, world) in zip(known, labels, strict=True)
    ]
    curve = errors_table(known)
    evidence = Evidence.of(runs, COMMAND)
    growth = reflection_finding(rows, {arm: name for run in runs for arm, name in real_models(run).items()}, evidence)
    sentences = [
        *words_of(rows),
        *dict.fromkeys(line for lines, _ in logs for line in lines),
        *(w for each in known for w in errors_words(each)),
        *analysis_words(known[0]),
        f"P49: {growth.words}",
    ]
    parts: list[Table | str] = [summary_table(rows), *controls, curve, removals, *read, confusion(), *sentences]
    sizes = dict.fromkeys(
        f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}" for m in (run.manifest for run in runs)
    )
    learning = (
        f"{'; '.join(sizes)}. Curators learn at a user's first {known[0].since} "
        "purchases. All utilities are of later purchases: books stay as they are, and nothing is paid for learning."
    )
    notes = (
        f"* Verdicts are corrected for all differences of a run (Holm), intervals are not. {size_words(known)}",
        *(f"* {words}" for words in [users_words(runs)] if words),
        f"* World *{TELLS}*, in which ratings tell good skills from bad ones: {WORLD}.",
    )
    how = "\n".join((learning, "", READING, *notes))
    image = "![Worth of books against the cost of learning](curators.svg)"
    drawn = [row for row in rows if row.world == rows[0].world]
    text = page(
        TITLE, COMMAND, how, image, "## In words\n\n" + "\n".join(f"* {line}" for line in sentences),
        summary_table(rows),
        *controls, curve, removals, *read, confusion(),
    )  # fmt: skip
    return Report(
        parts, text, holds=all(same for _, same in logs), figures={"curators.svg": figure(drawn)},
        findings=lambda: [*pruning_findings(by_world, evidence), *([growth] if growth.verdict != OPEN else [])],
    )  # fmt: skip


EXPERIMENT = Experiment(analyse)
