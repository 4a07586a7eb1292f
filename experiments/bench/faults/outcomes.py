"""Outcomes of runs that met a fault, as tables."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skg_bench.app.experiment_report import Table
from skg_bench.core.processes import this_process

End = Literal["survived", "refused", "other bytes", "wordless", "hung", "lost"]
ENDS: tuple[End, ...] = ("survived", "refused", "other bytes", "wordless", "hung", "lost")  # the worst one last
_FAILED: tuple[End, ...] = ENDS[2:]
HEADINGS = ("fault", "tried", "survived", "lost", "messages")
_MESSAGES = 3  # of a row, the most frequent ones
_LONGEST = 230  # characters of a message
_INSTRUCTION = re.compile(
    r"same command|(makes?|writes?) (it|them|this file) again|another folder|delete (it|them|the folder)|"
    r"run (it )?again|skg-bench [a-z]|out=FOLDER|goes on (from|with)|give (a|another) ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Outcome:
    """How a trial ended."""

    row: str  # for --only
    fault: str
    trial: int
    end: End
    reason: str = ""  # where it did not survive
    where: str = ""  # what the fault hit: a phase, or a kind of file
    messages: tuple[str, ...] = ()  # of commands, with names and numbers replaced


def instructs(message: str) -> bool:
    """Does a message say what to do?"""
    return _INSTRUCTION.search(message) is not None


def worst(ends: Sequence[tuple[End, str]]) -> tuple[End, str]:
    """The worst end and its reason, the first of equal ones."""
    return max(ends, key=lambda each: ENDS.index(each[0]), default=("survived", ""))


def holds(outcomes: Sequence[Outcome]) -> bool:
    """Was nothing lost or changed unsaid, did nothing hang, and did every message say what to do?"""
    return not any(each.end in _FAILED for each in outcomes)


def table(outcomes: Sequence[Outcome]) -> Table:
    """A row for each fault, in the order in which faults come."""
    rows = [_row(fault, [each for each in outcomes if each.fault == fault]) for fault in _faults(outcomes)]
    return Table("faults", HEADINGS, rows)


def _faults(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(each.fault for each in outcomes))


def _row(fault: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    ends = Counter(each.end for each in outcomes)
    others = [f"{end}: {ends[end]}" for end in ENDS if ends[end] and end not in ("survived", "lost")]
    messages = Counter(message for each in outcomes for message in dict.fromkeys(each.messages))
    quoted = [f"{count} x “{shortened(message)}”" for message, count in messages.most_common(_MESSAGES)]
    return fault, f"{len(outcomes)}", f"{ends['survived']}", f"{ends['lost']}", "; ".join([*others, *quoted]) or "none"


def places(outcomes: Sequence[Outcome]) -> Table:
    """Places that each fault hit: trials, and of them those that did not survive."""
    counts: dict[tuple[str, str], Counter[End]] = {}
    for each in outcomes:
        if each.where:
            counts.setdefault((each.fault, each.where), Counter())[each.end] += 1
    rows = [
        (fault, where, f"{ends.total()}", *(f"{ends[end]}" for end in ENDS))
        for (fault, where), ends in sorted(counts.items(), key=lambda item: (_faults(outcomes).index(item[0][0]), item))
    ]
    return Table("what they hit", ("fault", "hit", "tried", *ENDS), rows)


def failures(outcomes: Sequence[Outcome], most: int = 40) -> Table:
    """Trials that did not survive, the worst first, with what repeats each of them."""
    failed = [each for each in outcomes if each.end != "survived"]
    failed.sort(key=lambda each: -ENDS.index(each.end))
    rows = [(f"{each.row}:{each.trial}", each.where, each.end, shortened(each.reason)) for each in failed[:most]]
    return Table("not survived", ("--only", "hit", "end", "reason"), rows)


def shortened(message: str) -> str:
    """A message in one line: both ends of a long one, as the end says what to do."""
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


def general(message: str, paths: Mapping[str, str]) -> str:
    """A message without what differs between trials and machines: paths are replaced as given, longest first, the name
    of this host, and numbers.
    """
    for path in sorted(paths, key=len, reverse=True):
        message = message.replace(path, paths[path])
    message = re.sub(r"\b(turns|updates|feedback|learning)/[\w-]+\.[\w-]+\.parquet", r"\1/ARM.K.parquet", message)
    message = re.sub(rf"\b{re.escape(this_process().host)}\b", "HOST", message)
    message = re.sub(r"\b[0-9a-f]{8,64}\b", "HASH", message)
    return shortened(re.sub(r"\b\d[\d,.:]*\b", "N", message))
