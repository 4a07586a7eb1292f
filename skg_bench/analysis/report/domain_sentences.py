"""Sentences about an arm in the words of its domain."""

import re

from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.report.sentences import Sentence, code, share_of
from skg_bench.analysis.summary.document import Summary
from skg_bench.core.errors import UsageError

_NAME = re.compile(r"\{(\w+)\}")


def domain_sentences(summary: Summary, arm: str) -> list[Sentence]:
    """Sentences of the domain about an arm; those with a link are left out where its losses are not known."""
    links = {link.name for link in summary.telling.links}
    reference, sentences = summary.reference, []
    for sentence in summary.telling.sentences:
        if links & set(_NAME.findall(sentence.says)) and arm not in summary.waterfall:
            continue
        text = _filled(summary, arm, sentence.says, intervals=True)
        if reference is not None and reference != arm:
            text += _filled(summary, reference, sentence.against, intervals=False)
        sentences.append(Sentence(f"{text}.", "plain"))
    return sentences


def _filled(summary: Summary, arm: str, text: str, *, intervals: bool) -> str:
    """A text with the figures of an arm in it; `intervals`: of shares with those for new requests."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in ("arm", "reference"):
            return code(arm if name == "arm" else str(summary.reference))
        if name in summary.arms[arm]:
            unit, figure = summary.metrics[name].unit, summary.arms[arm][name]
            return share_of(figure) if unit == "share" and intervals else number(figure.mean, unit)
        if name in (losses := summary.waterfall[arm].losses if arm in summary.waterfall else {}):
            return number(losses[name].mean, "utility")
        valid = ", ".join(["arm", "reference", *summary.arms[arm], *losses])
        raise UsageError(f"a sentence of domain {summary.domain!r} has {{{name}}} in it, valid are {valid}")

    return _NAME.sub(value, text)
