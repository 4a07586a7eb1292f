"""Tables for the terminal: a plan, the arms of a run, a comparison."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from skg_bench.analysis.comparison.compare import PAYS_HEADINGS, Comparison, carried, cells, headings
from skg_bench.analysis.comparison.compare import pays as paying
from skg_bench.analysis.comparison.flips import lines
from skg_bench.analysis.comparison.matched import Matched
from skg_bench.analysis.comparison.seeds import STRIDE
from skg_bench.analysis.counts.wording import bare, interval, named, number
from skg_bench.analysis.report.hidden_memory import names_one_of, unknown_gaps
from skg_bench.analysis.report.waterfall import reason_words
from skg_bench.analysis.summary import Summary
from skg_bench.app.prepared_run import PreparedRun
from skg_bench.app.table_blocks import show_table
from skg_bench.runfolder.hidden_hits import HIT_METRICS

ARM_COLUMNS: tuple[str, ...] = ("utility", "hit_rate", "err_per_hit", "err_per_request", "skills", "offers_per_week")
_FIRST = ("arm", "difference", "new requests", "verdict", "detectable", "value")  # of a comparison
MATCHED_HEADINGS = (
    "arm", "utility +/-", "wrong hits", "raised", "hit rate", "reference", "right answers +/-", "hit rate +/-",
)  # fmt: skip
REPLAY_ARM_COLUMNS = ("hit_rate", "wrong_lower", "wrong_upper", "rated_share", "rated_ok", "skills", "offers_per_week")


def print_arms(screen: Console, summary: Summary) -> None:
    """One row an arm: utility against the reference with the interval for new requests, verdict, figures."""
    reference, metrics = summary.reference, summary.metrics
    names: tuple[str, ...] = (*(summary.telling.terminal or ARM_COLUMNS), *summary.own)
    if summary.log is not None:
        arms = summary.arms.values()
        names = tuple(
            m for m in REPLAY_ARM_COLUMNS if any(m in figures and figures[m].mean is not None for figures in arms)
        )
    compared = reference is not None and "utility" in names and len(summary.arms) > 1
    new = named("new requests", summary.telling.noun)
    headings = ["arm", *((f"utility - {reference}, {new}", "verdict") if compared else ())]
    rows = []
    for arm, figures in summary.arms.items():
        row = [arm]
        against = summary.differences.get(arm, {}).get("utility")
        if compared and against is not None:
            unit = metrics["utility"].unit
            span = interval(against.low_new, against.high_new, unit, signed=True)
            row += [f"{number(against.mean, unit, signed=True)} ({span})", against.verdict]
        elif compared:
            row += ["-", "reference"]
        rows.append([*row, *(number(figures[name].mean, metrics[name].unit) for name in names)])
    show_table(screen, [*headings, *(metrics[name].label for name in names)], rows)


def print_regret(screen: Console, summary: Summary) -> None:
    """Regret link by link: one row an arm, from the best that can be said to the utility reached."""
    unit, links = "utility", summary.telling.links
    rows = [
        [arm, number(fall.ceiling, unit), *(number(fall.losses[link.name].mean, unit) for link in links),
         number(summary.arms[arm]["utility"].mean, unit)]
        for arm, fall in summary.waterfall.items()
    ]  # fmt: skip
    screen.print(Text("from the best that can be said to what was reached", style="bold"))
    show_table(screen, ["arm", "best", *(f"- {link.label.lower()}" for link in links), "= utility"], rows)


def print_differences(
    screen: Console, compared: Comparison, names: Sequence[str], hidden: Collection[str] = ()
) -> None:
    """Rows of these metrics, one an arm: the paired difference, its interval, the verdict, then all the rest. `hidden`:
    arms whose hits nobody can tell, of which dashes stand in the place of these.
    """
    known = headings(compared)
    order = [known.index(heading) for heading in _FIRST] + [
        at for at, heading in enumerate(known) if heading not in (*_FIRST, "metric")
    ]
    for name in names:
        dashed = unknown_gaps(compared, hidden) if name in HIT_METRICS else []
        rows = [row for row in cells(compared, [name]) if row[known.index("metric")] == _label(compared, name)]
        rows = [_dashes(compared, row, known, hidden) if row[0] in dashed else row for row in rows]
        screen.print(Text(_label(compared, name), style="bold"))
        known_as = [named(heading, compared.noun) for heading in known]
        show_table(screen, [known_as[at] for at in order], [[row[at] for at in order] for row in rows])
        for row in compared.rows:
            if row.metric.name == name and row.arm not in dashed and (words := carried(row)):
                text = named(words, compared.noun)
                screen.print(Text(f"{row.arm}: {text}"))


def _dashes(compared: Comparison, row: Sequence[str], known: Sequence[str], hidden: Collection[str]) -> tuple[str, ...]:
    """A row of which there is no more than the figure of the one of both whose hits are known."""
    kept = {"arm": row[0], "verdict": "not measured"}
    for heading, arm in (("value", row[0]), ("reference", compared.reference)):
        if not names_one_of(arm, hidden):
            kept[heading] = row[known.index(heading)]
    return tuple(kept.get(heading, "-") for heading in known)


def _label(compared: Comparison, name: str) -> str:
    return next(row.metric.label for row in compared.rows if row.metric.name == name)


def print_matched(screen: Console, matches: Sequence[Matched], reference: str, hidden: Collection[str] = ()) -> None:
    """One row an arm: it and the reference at the lower of their error rates. `hidden`: arms whose hits nobody can
    tell, which are left out.
    """
    rows = []
    for match in matches:
        if names_one_of(match.arm, hidden) or names_one_of(reference, hidden):
            continue
        raised = [
            f"{who} to {threshold:.3f}"
            for who, threshold in ((match.arm, match.threshold), (reference, match.reference_threshold))
            if threshold is not None
        ]
        hits = match.figures["hit_rate"]
        row = [f"{100 * match.wrong:.2f} %", raised[0] if raised else "-", f"{100 * hits.arm:.1f} %"]
        row.append(f"{100 * hits.reference:.1f} %")
        for name, unit in (("utility", "utility"), ("correct", "share"), ("hit_rate", "share")):
            pair = match.figures.get(name)
            span = "-" if pair is None else bare(interval(pair.low, pair.high, unit, signed=True))
            row.append("-" if pair is None else f"{number(pair.difference, unit, signed=True)} ({span})")
        rows.append([match.arm, row[4], *row[:4], *row[5:]])
    if not rows:
        return
    matched = f"at matched error rate: each arm and {reference} with as many wrong hits; +/- is what is left"
    screen.print(Text(matched, style="bold"))
    show_table(screen, MATCHED_HEADINGS, rows)


def print_pays(screen: Console, compared: Comparison, hidden: Collection[str] = ()) -> None:
    """One row an arm: how many of its hits are right, and from how many on hits are worth more than the LLM. `hidden`:
    arms whose hits nobody can tell, which are left out.
    """
    rows = [row for row in paying(compared) if not names_one_of(row[0], hidden)]
    if not rows:
        return
    screen.print(Text("answers from memory: they pay if the share of right ones lies above 'pays from'", style="bold"))
    show_table(screen, PAYS_HEADINGS, rows)


def flip_lines(compared: Comparison, in_words: Collection[str] = ()) -> Iterator[str]:
    """Turns that arms and the reference answered differently, counted by cause of the error, and those that are told;
    then what the causes mean. `in_words`: arms whose assistants have no skillbook.
    """
    meanings = dict[str, str]()

    def cause(reason: str, arm: str) -> str:
        label, meaning = reason_words(reason, in_words=arm.rpartition(":")[2] in in_words)
        meanings[label] = meaning
        return label

    def counted(counts: Mapping[str, int], arm: str) -> str:
        causes = ", ".join(f"{cause(reason, arm)} {n:,}" for reason, n in counts.items())
        return f"{sum(counts.values()):,}" + (f" ({causes})" if causes else "")

    if compared.flips:
        yield f"turns wrong where {compared.reference} is right (worse), or the reverse (better), by cause of the error"
    for flipped in compared.flips:
        worse, better = counted(flipped.worse, flipped.arm), counted(flipped.better, compared.reference)
        yield f"  {flipped.arm}: worse {worse}; better {better}"
        for flip in flipped.examples:
            seed_index, user = divmod(flip.user, STRIDE)
            seed = f"seed {compared.seeds[seed_index]}, " if len(compared.seeds) > 1 else ""
            shown = replace(flip, user=user, reason=cause(flip.reason, flipped.arm))
            first, *others = lines(shown, flipped.arm, compared.reference)
            yield from (f"    {line}" for line in (seed + first, *others))
    yield from (f"  {label}: {meaning}" for label, meaning in meanings.items() if meaning)


def plan(screen: Console, job: PreparedRun) -> None:
    """One row an arm: its overrides, and the component at each seam where arms differ; then what all arms share."""
    made = {name: _components(arm) for name, arm in job.composed.arms.items()}
    every = list(dict.fromkeys(seam for parts in made.values() for seam in parts))
    options = {seam: [parts.get(seam, "-") for parts in made.values()] for seam in every}
    shared = {seam: names[0] for seam, names in options.items() if len(set(names)) == 1}
    seams = [seam for seam in every if seam not in shared]
    rows = [
        [name, " ".join(job.composed.root["arms"][name]) or "-", *(parts.get(seam, "-") for seam in seams)]
        for name, parts in made.items()
    ]
    show_table(screen, ["arm", "overrides", *seams], rows)
    if shared:
        screen.print(f"the same in all arms: {', '.join(f'{seam} {option}' for seam, option in shared.items())}")


def _components(arm: Mapping[str, Any]) -> dict[str, str]:
    """Class at each seam."""
    nodes = {seam: node for seam, node in arm.items() if isinstance(node, Mapping)}
    return {seam: str(node["_target_"]).rsplit(".", 1)[-1] for seam, node in nodes.items()}
