"""The first screen for each arm: its title, its figures, and what more there is to say of it; and the list of arms."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from skg_bench.analysis.report import tables, verdict
from skg_bench.analysis.report.addresses import flips_link
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.typeset import marked, typeset_interval, typeset_value
from skg_bench.analysis.summary.document import Summary

TILES = (
    "hit_rate", "err_per_hit", "correct", "same_answer", "wrong_lower", "wrong_upper", "rated_ok", "calls_saved",
    "cost_saved_usd",
)  # fmt: skip
AGAINST = {"cost_saved_usd": "cost_usd"}  # tile -> the reference's figure beside it


@dataclass(frozen=True, slots=True)
class Head:
    """An arm's title and its parts, as the page shows them."""

    arm: str
    tone: str
    headline: Markup
    numbers: Markup
    findings: Sequence[tuple[str, Markup]]  # tone, text
    tiles: Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class ArmLine:
    """An arm in the list: its sentence, and its interval as a bar."""

    look: Look
    tone: str
    text: Markup
    forest: Markup
    turns: str  # address of what it and the reference answered differently


def heads(content: Summary) -> list[Head]:
    """One of each arm, the learner's first."""
    order = sorted(content.arms, key=lambda arm: arm != content.learner)
    return [_head(content, arm) for arm in order]


def _head(content: Summary, arm: str) -> Head:
    """The first sentence opened up: its claim large, its numbers below."""
    sentence = verdict.headline(content, arm)
    if sentence is None:
        is_reference = arm == content.reference and len(content.arms) > 1
        claim = f"{code(arm)} is what other arms are compared with" if is_reference else "No arm to compare with"
        numbers, tone = "", "plain"
    else:
        claim, _, numbers = sentence.marked.partition(": ")
        tone = sentence.tone
    return Head(
        arm,
        tone,
        marked(claim.rstrip(".") + "."),
        marked(numbers[:1].upper() + numbers[1:]),
        [(s.tone, marked(s.marked)) for s in verdict.finding_sentences(content, arm)],
        _tiles(content, arm),
    )


def arm_lines(content: Summary, looks: Sequence[Look]) -> list[ArmLine]:
    """A line for each arm that is compared: proven ones first."""
    by_arm = {look.arm: look for look in looks}
    sentences = verdict.arm_sentences(content)
    gaps = {arm: gap for arm, _ in sentences if (gap := content.differences.get(arm, {}).get("utility")) is not None}
    scale = tables.Scale.of(list(gaps.values()), [by_arm[arm].shown for arm in gaps])
    reference = str(content.reference)
    return [
        ArmLine(
            by_arm[arm],
            sentence.tone,
            marked(sentence.marked),
            tables.forest(gaps[arm], scale) if arm in gaps and content.log is None else Markup(),
            flips_link(arm, reference),
        )
        for arm, sentence in sentences
    ]


def _tiles(content: Summary, arm: str) -> list[dict[str, str]]:
    arm_figures, reference = content.arms[arm], content.reference
    other = content.arms.get(reference) if reference not in (None, arm) else None
    tiles = []
    for metric in (*(content.telling.tiles or TILES), *content.own):
        if metric not in arm_figures or metric not in content.metrics:
            continue
        if content.log is not None and arm_figures[metric].mean is None:
            continue
        unit = content.metrics[metric].unit
        counterpart = AGAINST.get(metric, metric)
        beside = other[counterpart].mean if other and counterpart in other else None
        part = "of " if counterpart != metric else ""
        compared = "" if beside is None else marked(f"{part}{code(str(reference))} {typeset_value(beside, unit)}")
        tiles.append(
            {
                "label": tables.metric_heading(metric, content.metrics, content.telling.noun),
                "value": typeset_value(arm_figures[metric].mean, unit),
                "interval": typeset_interval(arm_figures[metric].low_new, arm_figures[metric].high_new, unit),
                "against": compared,
            }
        )
    return tiles
