"""The accepted report of a grid: what holds, in words, and a table of all that was measured on each corpus."""

import re
from collections.abc import Mapping, Sequence

from experiments.grid.effects import FACTORS, MEASURED, REFERENCE, Effect, Grid
from skg_bench.analysis.counts.wording import bare, interval, number
from skg_bench.app.experiment_report import Table, page

COMMAND = "skg-bench run -m experiment=grid users=60 weeks=12 workers=2 seed={seeds} [simulator=clinc150]"
SHOWN = (*MEASURED, "err_per_hit")
COLUMNS = (
    "arm", "utility", "hit rate", "wrong per request", "wrong per hit", "utility - reference", "verdict",
    "hits at equal errors",
)  # fmt: skip
HEAD = """
Means over users, with 95 % intervals for new users and new requests. Each router is held against {router}, on the mean
over all rerankers, and each reranker against {reranker}, on the mean over all routers; p is corrected by Holm over all
{n} differences of this page. A difference holds (bold in the tables) if it is significant then.
"""
ARMS = """
Every arm against {reference}: differences in utility, corrected by Benjamini and Hochberg over this table. Hits at
equal errors: share of requests answered from the skillbook, more or less than the reference, both held to the lower of
their two error rates by a higher threshold (interval for these requests, not corrected).
"""


def made_by(grid: Grid) -> str:
    """The command that makes the runs of a grid."""
    return COMMAND.format(seeds=",".join(map(str, grid.table.seeds)))


def markdown(
    corpus_grids: Sequence[Grid], effects: Sequence[Effect], words: Sequence[str], figures: Mapping[str, str]
) -> str:
    """The report; `figures`: the file of each corpus' figure."""
    parts = [HEAD.format(n=len(effects), **FACTORS)]
    parts += [line if line.startswith("* ") else f"\n{line}\n" for line in words]
    for grid in corpus_grids:
        corpus_effects = [effect for effect in effects if effect.corpus == grid.corpus]
        parts += [
            f"\n## On {grid.corpus}",
            "",
            _sizes(grid),
            "",
            _effects(corpus_effects),
            ARMS.format(reference=REFERENCE),
        ]
        parts += [_arms(grid), "", f"![Differences from {REFERENCE} on {grid.corpus}]({figures[grid.corpus]})"]
    command = f"{made_by(corpus_grids[0])}; skg-bench experiment grid RUN ... --write reports"
    return page("Routers and rerankers", command, re.sub("\n{3,}", "\n\n", "\n".join(parts)))


def _sizes(grid: Grid) -> str:
    seeds, used = ", ".join(map(str, grid.table.seeds)), "; ".join(grid.used_up.reasons) or "no: curves can be read"
    return (
        f"{grid.table.users} users (seeds {seeds}), {grid.combined.manifest['weeks']} weeks, "
        f"{grid.table.turns:,} requests, the same for each of {len(grid.combined.arms)} arms. "
        f"Was the corpus used up? {used[0].upper()}{used[1:]}."
    )


def _effects(effects: Sequence[Effect]) -> str:
    rows: dict[tuple[str, str], list[str]] = {}
    for effect in effects:
        rows.setdefault((effect.option, FACTORS[effect.factor]), []).append(
            f"**{effect.size}**" if effect.holds else effect.size
        )
    labels = dict.fromkeys(effect.metric.label for effect in effects)
    return Table("", ("option", "against", *labels), [(*names, *cells) for names, cells in rows.items()]).markdown()


def _arms(grid: Grid) -> str:
    rows = {(row.arm, row.metric.name): row for row in grid.table.rows}
    equal = {match.arm: match.figures["hit_rate"] for match in grid.table.matched}
    lines: list[Sequence[str]] = []
    for arm in grid.combined.arms:
        at = [rows[grid.table.rows[0].arm if arm == REFERENCE else arm, name] for name in SHOWN]
        if arm == REFERENCE:
            lines.append((arm, *(number(row.reference_mean, row.metric.unit) for row in at), "", "reference", ""))
            continue
        d, hits = at[0].difference, equal.get(arm)
        size = _with_interval(d.estimate.mean, *d.estimate.interval(new=True), "utility")
        level = "" if hits is None else _with_interval(hits.difference, hits.low, hits.high, "share")
        lines.append((arm, *(number(row.mean, row.metric.unit) for row in at), size, d.verdict, level))
    return Table("", COLUMNS, lines).markdown()


def _with_interval(value: float, low: float, high: float, unit: str) -> str:
    return f"{number(value, unit, signed=True)} ({bare(interval(low, high, unit, signed=True))})"
