"""Holds draws from the prior against section 5 of the SKG paper: verdicts, regions, and what it costs the users."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.skg_section5 import picture, prior
from experiments.skg_section5.found import Corpus, contradiction, corpus, findings, value
from experiments.skg_section5.latency import SKILLS, Hits, measure
from experiments.skg_section5.readings import (
    PICTURED,
    READINGS,
    Frame,
    Mass,
    known,
    lasted,
    mass,
    separating,
)
from skg_bench.analysis.summary.saturation import LIMIT
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.study.masses import ENOUGH

COMMAND = "skg-bench experiment skg_section5 FOLDER ... --latency --write reports"
SPLIT = ("claim", "as read here", "all")  # and a column for each kind of skill
COLUMNS = ("claim", "as read here", "holds in", "surely", "at most", "95 %", "median draw (90 % of draws)", "verdict")
_MODELS = {"minilm": "MiniLM", "jina": "jina-embeddings-v3"}


# ---------------------------------------------------------------------------------------------------------- words


def cells(result: Mass) -> tuple[str, ...]:
    """A row under COLUMNS."""
    low, middle, high = (value(x, result.reading.unit) for x in result.spread)
    shares = (f"{100 * k / result.draws:.1f} %" for k in (result.held, result.surely, result.at_most))
    between = " to ".join(f"{100 * limit:.1f}" for limit in result.limits) + " %"
    return result.reading.id, result.reading.claimed, *shares, between, f"{middle} ({low} to {high})", result.verdict


def split(source: Corpus) -> Table:
    """Verdicts by what a skill is, next to the whole."""
    rows = []
    for whole in source.found:
        parts = {kind: draws[known(whole.reading, draws)] for kind, draws in source.kinds.items()}
        verdicts = [_told(mass(whole.reading, draws)) if len(draws) else "-" for draws in parts.values()]
        rows.append((whole.reading.id, whole.reading.claimed, _told(whole), *verdicts))
    return Table(f"{source.name}: by what a skill is", (*SPLIT, *source.kinds), rows)


def _told(result: Mass) -> str:
    return f"{100 * result.share:.1f} % ({result.verdict})"


def costs(draws: Frame) -> list[tuple[str, str]]:
    """Costs and gains of the loop for its users, whatever is claimed: medians over draws, and 90 % of them."""
    spared = (draws.hits_month_6 > 0) & (draws[prior.KIND] != "prompted")  # prompts go to the language model
    saved = (draws.hits_month_6 * (1 - draws.hit_ms_month_6 / 1000 / draws.llm_seconds)).where(spared, 0.0)
    rows = {
        "requests answered by the skillbook in month 6": draws.hits_month_6,
        "of them rightly": draws.right_hits_month_6 / draws.hits_month_6.where(draws.hits_month_6 > 0),
        "requests that an earlier answer would have answered in month 6": draws.could_be_hits_month_6,
        "of the wait for the language model saved in month 6, at 50 ms a hit and 300 ms a tool": saved,
        "right answers beyond those of the language model alone, of all requests": draws.right - draws.llm_right,
    }
    lines = []
    for name, column in rows.items():
        low, middle, high = (f"{100 * x:.1f}" for x in column.quantile([0.05, 0.5, 0.95]))
        lines.append((name, f"{middle} % ({low} to {high})"))
    fewer = float((draws.right < draws.llm_right).mean())
    return [*lines, ("draws in which users get fewer right answers than from the language model alone", f"{fewer:.1%}")]


def markdown(corpora: Sequence[Corpus], hits: Hits | None) -> str:
    """The report."""
    first = corpora[0]
    how = (
        f"Each draw: parameters from the prior, {first.manifest['users']} users, {first.manifest['weeks']} weeks, the "
        "paper's settings. A figure of a draw is the mean over its users of the user's ratio; draws where nobody has "
        "a denominator are left out. *Holds in*: share of draws, as simulated. Where more than "
        f"{LIMIT:.0%} of requests are repeats that the corpus forced, since its wordings were used up, curves say "
        "nothing: *surely* counts such draws as failed, *at most* counts those as held that reach what is claimed or "
        "more."
    )
    verdicts = (
        "Verdicts: robust from 90 % of the prior, attainable from 5 %, strained below; impossible if none of at least "
        f"{ENOUGH:,} draws has it, at most. A verdict holds for all of the 95 % interval (Wilson) of the share, "
        "from what holds surely to what may hold at most; where the interval holds a limit, or the verdict depends on "
        "draws whose corpus was used up, it is not testable here."
    )
    picture_of = "![Where the prior holds what section 5 claims](skg_section5.svg)"
    out = [how, verdicts, picture_of]
    for each in corpora:
        out.append(f"## Corpus: {each.name}")
        out.append(f"{len(each.draws):,} draws; the corpus lasted in {lasted(each.draws).sum():,} of them.")
        out.append(_rows(COLUMNS, [cells(m) for m in each.found]))
        out.append("By what a skill is: the share of the draws in which it holds, and the verdict.")
        out.append(split(each).markdown())
        out.append(
            "What tells best where a claim holds: the probability that a draw in which it does has the larger value."
        )
        out.append(_rows(("claim", "as read here", "parameters"), _regions(each)))
        by_kind = {"all": each.draws, **{kind: draws for kind, draws in each.kinds.items() if len(draws)}}
        lines = {kind: costs(draws) for kind, draws in by_kind.items()}
        headings = ("what the loop does for its users, median draw (90 % of draws)", *by_kind)
        out.append(
            _rows(headings, [(row[0][0], *(cell for _, cell in row)) for row in zip(*lines.values(), strict=True)])
        )
    out.append("## K23 against itself")
    out.append(_rows(("after", "2 to 5 a week add up to", "200 to 500 need"), contradiction()))
    if hits is not None:
        out.append("## A hit on this machine (K22), processor time")
        parts = {"embedding": hits.embedding, f"routing, {SKILLS} skills": hits.routing, "both": hits.whole}
        rows = [
            (name, *(f"{x:.2f} ms" for x in np.quantile(ms, (0.5, 0.05, 0.95)).tolist())) for name, ms in parts.items()
        ]
        out.append(_rows(("part", "median", "5 %", "95 %"), rows))
    out.append("## The prior")
    out.append(_rows(("parameter", "from", "to", "scale", "unit", "what", "source"), _prior()))
    kind = prior.kinds()
    out.append(f"*{kind.name}*, one of {', '.join(kind.options)}, all as likely: {kind.what}. Source: {kind.source}.")
    return page("When does the loop do what section 5 of the SKG paper reports?", COMMAND, *out)


def _regions(source: Corpus) -> list[tuple[str, str, str]]:
    rows = []
    for m in source.found:
        separation = ", ".join(f"{name} {p:.2f}" for name, p in separating(m.reading, source.draws, source.parameters))
        rows.append((m.reading.id, m.reading.claimed, separation or "-"))
    return rows


def _prior() -> list[tuple[str, ...]]:
    return [(p.name, f"{p.low:g}", f"{p.high:g}", p.scale, p.unit, p.what, p.source) for p in prior.parameters()]


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return Table("", head, rows).markdown()


# ----------------------------------------------------------------------------------------------------------- command


def analyse(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER", help="That skg_section5/draws wrote; the first corpus leads."),
    ],
    latency: Annotated[bool, typer.Option("--latency", help="Also time hits on this machine (K22).")] = False,
    embedder: Annotated[str, typer.Option(help="The embedder that --latency times.")] = "embedder=minilm",
    messages: Annotated[int, typer.Option(help="How many messages --latency times.", min=1)] = 300,
) -> Report:
    """Analyses folders of draws; nothing expected is checked: the verdicts are what is asked for."""
    corpora = [corpus(folder) for folder in folders]
    hits = measure([embedder], messages) if latency else None
    parts: list[Table | str] = [
        part
        for each in corpora
        for part in (
            Table(f"{each.name}: {len(each.draws):,} draws", COLUMNS, [cells(m) for m in each.found]),
            split(each),
        )
    ]
    parts += [
        f"K23 against itself, after {months}: 2 to 5 a week are {adds_up}; 200 to 500 need {needs}"
        for months, adds_up, needs in contradiction()
    ]
    maps = picture.svg([READINGS[i] for i in PICTURED], {each.name: each.draws for each in corpora})
    command = f"skg-bench experiment skg_section5 FOLDER --latency --embedder {embedder}"
    return Report(
        parts,
        markdown(corpora, hits),
        figures={"skg_section5.svg": maps},
        findings=lambda: findings(corpora, hits, _MODELS.get(name := embedder.rpartition("=")[2], name), command),
    )


EXPERIMENT = Experiment(analyse, one_thread=True)
