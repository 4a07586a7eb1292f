"""A verdict in words: for a terminal, a pull request, a test report, and beside the code."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from skg_bench.analysis.counts.metrics import Metric
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.gate.against import Held, Which, ahead, lead, way
from skg_bench.analysis.gate.judge import GATE_ALPHA, GateState, Judged
from skg_bench.analysis.gate.panel import Panel
from skg_bench.analysis.gate.verdict_turns import HarmedTurns

GATE_HEADINGS = ("metric", "harm", "at least", "at most", "margin", "users", "verdict")
STATE_WORDS: Mapping[GateState, str] = {"pass": "passed", "fail": "FAILED", "inconclusive": "inconclusive"}
LONGEST_NOTICE = 600  # characters of an annotation
ANNOTATION_LEVELS: Mapping[GateState, str] = {"pass": "notice", "inconclusive": "warning", "fail": "error"}
_DIGESTS = 6  # named
_COMMANDS = re.compile(r":(?=:)|##(?=[\w.]*\[)")  # of GitHub's runner, which looks for them in whatever a step prints


@dataclass(frozen=True)
class GateOutcome:
    """All that a gate has to say of a run."""

    run: str
    arm: str
    held: tuple[Held, ...]  # against the baseline, then against its anchor and the release
    differences: Mapping[Which, Sequence[str]]  # of configuration, data, code and versions: `key: old -> new`
    flips: HarmedTurns | None
    session: tuple[str, ...]  # the smallest session that shows what became worse, as lines; empty: none was found
    builds: int  # changing builds a year, for the number of false alarms

    @property
    def state(self) -> GateState:
        """The worse of the verdicts."""
        return worst(self.held).state

    @property
    def same(self) -> bool:
        """Is every turn the same bits as in the baseline?"""
        return self.held[0].same

    @property
    def false_alarms(self) -> float:
        """Failures to be expected in a year of builds that change answers and make nothing worse."""
        return self.builds * min(1.0, sum(judgement.alarm for held in self.held for judgement in held.judged))


def worst(held: Sequence[Held]) -> Held:
    """The one of the worst verdict, the first of equals."""
    return min(held, key=lambda candidate: ("fail", "inconclusive", "pass").index(candidate.state))


def gate_rows(held: Held) -> list[tuple[str, ...]]:
    """The table under GATE_HEADINGS; harm is positive where it is worse."""
    known = held.base.metrics
    return [
        (known[judgement.metric].label, *_numbers(judgement, known[judgement.metric]), _verdict(judgement))
        for judgement in held.judged
    ]


def _numbers(judgement: Judged, metric: Metric) -> tuple[str, ...]:
    values = (number(x, metric.unit, signed=True) for x in (judgement.mean, judgement.lower, judgement.upper))
    return (*values, number(judgement.margin, metric.unit, signed=True).lstrip("+"), f"{judgement.n:,}")


def _verdict(judgement: Judged) -> str:
    if judgement.paid:
        return f"{STATE_WORDS[judgement.state]}: wrong answers are fewer"
    worse = judgement.state == "pass" and judgement.worse
    return f"{STATE_WORDS[judgement.state]}, but proven worse" if worse else STATE_WORDS[judgement.state]


def gate_headline(outcome: GateOutcome) -> str:
    """One sentence."""
    return f"Gate {STATE_WORDS[outcome.state]}: arm {outcome.arm} of {outcome.run}"


def sentences(outcome: GateOutcome) -> list[str]:
    """Sentences beside the tables."""
    lines: list[str] = []
    for held in outcome.held:
        lines += [f"against the {held.which}: {text}" for text in _about(held)]
    if any(held.judged for held in outcome.held):
        lines.append(
            f"Of {outcome.builds:,} builds a year that change answers and make nothing worse, "
            f"{outcome.false_alarms:.2g} would fail by chance (by the rule at most {GATE_ALPHA * outcome.builds:g})."
        )
    return lines


def _about(held: Held) -> list[str]:
    if held.same:
        return ["the same bits, turn by turn.", _way(held)]
    known, lines = held.base.metrics, [_way(held)]
    if not ahead(held.base) and not held.base.imported:
        lines.append(f"no lead is judged, as the {held.which} is not ahead of `never`: a pass may be worth nothing.")
    if held.which == "anchor" and held.state == "fail":
        lines.append(
            "what was lost since the anchor in all is over the budget. Undo some of it; or, if it is meant, "
            "`--update --move-anchor`."
        )
    for judgement in held.judged:
        label = known[judgement.metric].label
        if judgement.state == "inconclusive":
            lines.append(f"{label} is inconclusive: {'; '.join((*judgement.why, _asked(judgement)))}.")
        elif judgement.paid:
            lines.append(
                f"{label} does not block, as wrong answers are proven fewer: what both are worth is judged by utility."
            )
        elif judgement.state == "pass" and judgement.worse:
            least = number(judgement.lower, known[judgement.metric].unit, signed=True).lstrip("+")
            lines.append(f"{label} passed, but is proven worse: by {least} at least.")
        if judgement.excluded:
            lines.append(
                f"{label} is of {judgement.n:,} users; {judgement.excluded:,} do not have it both before and after."
            )
    if held.informs and held.which == "baseline":
        texts = (f"{m.label} {number(old, m.unit)} -> {number(now, m.unit)}" for m, old, now in held.informs)
        lines.append(f"for information: {', '.join(texts)}.")
    shown = ", ".join(held.changed[:_DIGESTS])
    rest = len(held.changed) - _DIGESTS
    lines.append(f"columns that changed: {shown}{f' and {rest} more' if rest > 0 else ''}.")
    return lines


def _way(held: Held) -> str:
    """How far the arm is on the way from `never` to the oracle, before and after; not known of imported results."""
    if held.base.imported:
        return "results that were made elsewhere: no lead over an arm that reuses nothing is judged."
    before, after = (_far(panel) for panel in (held.base, held.new))
    return f"of the way from `never` to the oracle: {before} before, {after} after."


def _far(panel: Panel) -> str:
    """Share of the way, and the lead itself."""
    share, (mean, least) = way(panel), lead(panel)
    if share is None:
        far = "no way, as the oracle is not ahead"
    else:
        far = number(share, "share") if share <= 1 else "ahead of the oracle, which is no ceiling here"
    return f"{far} (lead {number(mean, 'utility', signed=True)}, at least {number(least, 'utility', signed=True)})"


def _asked(judgement: Judged) -> str:
    if judgement.users is None:
        return "no affordable number of users would decide it"
    return f"{judgement.users:,} users would decide it"


def explained(outcome: GateOutcome) -> list[str]:
    """The flips as lines, if any; those that are indented belong to the line before. Of a pass no user is named."""
    flips = outcome.flips
    if flips is None:
        return []
    metric = outcome.held[0].base.metrics[flips.metric]
    reasons = ", ".join(f"{reason} {n:,}" for reason, n in flips.reasons)
    lines = [f"{metric.label}: {flips.worse:,} turns became worse ({reasons}), {flips.better:,} better"]
    for user in flips.users if outcome.state != "pass" else ():
        harm = number(user.harm, metric.unit, signed=True)
        lines.append(f"user {one_line(user.name) or user.user}: harm {harm}, {user.of:,} turns became worse")
        for turn in user.turns:
            place = f"event {one_line(turn.event)}" if turn.event else f"turn {turn.turn}"
            change = f"{turn.before} -> {turn.after}; reason: {turn.reason}"
            lines.append(f'  {place} "{one_line(turn.message)}": {change}')
    return [*lines, *outcome.session]


def one_line(message: str) -> str:
    """Text without what would break a line, or may not stand in XML."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in message).split())


def inert(line: str) -> str:
    """A line for the log of a runner, in which no text of a message acts as a command: `::name::`, `##[name]`."""
    return _COMMANDS.sub(lambda match: f"{match[0][0]}\\{match[0][1:]}", line)


def markdown(outcome: GateOutcome) -> str:
    """Verdict in Markdown, for a pull request."""
    parts = [f"### {gate_headline(outcome)}", ""]
    for held in outcome.held:
        if held.judged:
            parts += [f"Against the {held.which}, limits one-sided at 95 %, positive is worse:", ""]
            parts += [
                _row(GATE_HEADINGS),
                _row(["---"] * len(GATE_HEADINGS)),
                *(_row(row) for row in gate_rows(held)),
                "",
            ]
    parts += [f"* {text}" for text in sentences(outcome)]
    for which, lines in outcome.differences.items():
        parts += ["", f"What differs from the {which}:", "", *(f"* `{line}`" for line in lines or ["nothing"])]
    if lines := explained(outcome):
        parts += ["", "What became worse:", ""]
        parts += [f"  * {_plain(line[2:])}" if line.startswith("  ") else f"* {_plain(line)}" for line in lines]
    return "\n".join(parts) + "\n"


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(value) for value in values)} |"


def _plain(text: str) -> str:
    """No sign of the text is markup."""
    for sign in "\\|*_`<[":
        text = text.replace(sign, f"\\{sign}")
    return text


def annotations(outcome: GateOutcome) -> list[str]:
    """Workflow commands of GitHub: one for each metric that did not simply pass, or one notice."""
    commands = []
    for held in outcome.held:
        for judgement, row in zip(held.judged, gate_rows(held), strict=True):
            if judgement.state != "pass" or judgement.worse:
                text = f"against the {held.which}: harm {row[1]}, at least {row[2]}, at most {row[3]}, margin {row[4]}"
                level = "warning" if judgement.state == "pass" else ANNOTATION_LEVELS[judgement.state]
                commands.append(_command(level, f"{row[0]}: {row[-1]}", "; ".join((text, *judgement.why))))
    if outcome.state != "pass" and (lines := explained(outcome)):
        commands.append(_command("notice", "what became worse", _brief(lines)))
    return commands or [_command("notice", "gate", gate_headline(outcome))]


def _brief(lines: Sequence[str]) -> str:
    """The first lines, as many as a reader of a pull request's list of files takes in; the summary has all."""
    whole = "\n".join(lines)
    if len(whole) <= LONGEST_NOTICE:
        return whole
    return f"{whole[:LONGEST_NOTICE].rsplit(' ', 1)[0]} ... (the rest is in the summary)"


def _command(level: str, title: str, text: str) -> str:
    def escaped(value: str, signs: str) -> str:
        for sign in f"%\r\n{signs}":
            value = value.replace(sign, f"%{ord(sign):02X}")
        return value

    return f"::{level} title={escaped(title, ':,')}::{escaped(inert(text), '')}"


def junit(outcome: GateOutcome) -> str:
    """A test suite with a case for each metric and baseline; what is inconclusive is an error, not a failure."""
    suite = ET.Element("testsuite", name="skg-bench gate")
    described = ET.SubElement(suite, "properties")
    for which, lines in outcome.differences.items():
        for line in lines:
            key, _, value = line.partition(": ")
            ET.SubElement(described, "property", name=f"{which}: {key}", value=value)
    text = "\n".join(explained(outcome))
    for held in outcome.held:
        if held.same:
            ET.SubElement(suite, "testcase", classname=f"gate.{held.which}", name="same bits")
        for judgement, row in zip(held.judged, gate_rows(held), strict=True):
            case = ET.SubElement(suite, "testcase", classname=f"gate.{held.which}", name=judgement.metric)
            detail = "; ".join(f"{heading} {value}" for heading, value in zip(GATE_HEADINGS[1:], row[1:], strict=True))
            if judgement.state == "pass":
                ET.SubElement(case, "system-out").text = detail
            else:
                kind = "failure" if judgement.state == "fail" else "error"
                broken = ET.SubElement(case, kind, type=judgement.state, message="; ".join((detail, *judgement.why)))
                broken.text = text
    for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(len(suite.findall(f".//{kind}"))))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
