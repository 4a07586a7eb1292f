"""Words of a domain, for everybody who reads its runs: counts, metrics, sentences, tables and the page.

A domain names a TOML file of its package (core/domain.py). The manifest of a run holds its content, so that readers
import nothing of the world. What a file leaves out is as it is in a world of answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from skg_bench.core.errors import UsageError
from skg_bench.core.shapes import shaped


@dataclass(frozen=True, slots=True)
class Condition:
    """Turns whose column says one of these levels, or, where `holds` is false, none of them. Of true and false the
    levels are `true` and `false`.
    """

    column: str
    levels: tuple[str, ...]
    holds: bool


@dataclass(frozen=True, slots=True)
class TurnCount:
    """A count of the turns at which all conditions hold."""

    name: str
    says: str
    where: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum over turns of a column, less another one; empty: none."""

    name: str
    says: str
    column: str
    less: str


@dataclass(frozen=True, slots=True)
class FeedbackCount:
    """A count of what users said by the end of the run, at the turn that it is about."""

    name: str
    says: str
    kind: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CountedMetric:
    """A metric of a domain: a count over another one, as in analysis/counts/metrics.py."""

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower", "neither"]
    over: str
    count: str
    priced: bool  # less the price of money, waiting and offers
    says: str


@dataclass(frozen=True, slots=True)
class Price:
    """A price of a mistake that the world has as a parameter, in the place of `utility.wrong`."""

    parameter: str  # of the simulator
    count: str  # of the mistakes
    noun: str  # the mistake
    says: str  # under the chart of prices; {now} is the price of this run


@dataclass(frozen=True, slots=True)
class Link:
    """Utility lost from one column of worth to the next; both empty: to money, waiting and offers."""

    name: str
    label: str
    says: str
    above: str
    below: str


@dataclass(frozen=True, slots=True)
class WeeklyChart:
    """A small chart of a metric by week."""

    metric: str
    title: str
    says: str


@dataclass(frozen=True, slots=True)
class ArmSentence:
    """A sentence about an arm. `{arm}`, `{reference}` and names of metrics and links in braces are filled in."""

    says: str
    against: str  # what is added where there is a reference, with its figures


@dataclass(frozen=True, slots=True)
class Word:
    """An entry of the glossary."""

    term: str
    says: str


@dataclass(frozen=True, slots=True)
class Interactions:
    """Counts by which users take what is said or refuse it, for the claimed proofs of learning; and their source."""

    spoken: str
    taken: str
    refused: str
    says: str


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """Words for what a user did, where somebody in the role `who` spoke; empty: whoever spoke."""

    did: str
    who: str
    says: str


@dataclass(frozen=True, slots=True)
class WorthColumn:
    """A column of worth, and the words before it."""

    column: str
    says: str


@dataclass(frozen=True, slots=True)
class TurnPanel:
    """A turn on the page: columns that say what happened, and sentences with `{who}`, `{skill}`, `{ended}`, `{kind}`
    and `{wanted}` in them.
    """

    who: str  # column: the role that speaks
    did: str  # column: what the user did
    later: str  # kind of feedback that comes later
    wanted: str  # truth, true or false: a turn ended as wanted if it is right
    kind: str  # truth: what the served skill is really about
    worths: tuple[WorthColumn, ...]
    taken: tuple[str, ...]  # levels of `did`
    refused: str
    ended: tuple[str, ...]  # in words: where `wanted` and right agree, and where they differ
    wants: tuple[str, ...]  # in words: not wanted, wanted
    used: str
    asked: str
    silent: str
    unskilled: str  # who spoke without a skill, in brief
    unspoken: str  # that nobody spoke, in brief
    closing: str
    about: str
    skill: str  # heading of the skills that could be chosen
    filters: Mapping[str, str]  # labels
    endings: tuple[TurnEnding, ...]
    elsewhere: str  # heading of what other arms did
    differently: str  # turns that ended differently


@dataclass(frozen=True, slots=True)
class TraceNames:
    """Names of traces and their parts in the columns of a turn."""

    name: str  # with columns in braces
    short: Mapping[str, str]  # of levels, in the name
    output: tuple[str, ...]  # columns
    metadata: tuple[str, ...]
    hit: str  # tag of a turn with a skill


@dataclass(frozen=True, slots=True)
class Telling:
    """Words of a domain, and what its runs are counted by; empty: as in a world of answers."""

    noun: str = "request"
    alone: str = "the LLM alone"
    late: str = "Ratings known too late"
    invented: bool = False  # nobody said the messages, so that they may be shown to others
    imported: bool = False  # results of an experiment that was made elsewhere: who answered, and how, is not known
    worth: str = ""  # column: what a turn is worth, before the price of money, waiting and offers
    best: str = "Ceiling"  # name of the level from which losses are taken
    best_says: str = ""
    counts: tuple[TurnCount, ...] = ()
    amounts: tuple[Amount, ...] = ()
    heard: tuple[FeedbackCount, ...] = ()
    metrics: tuple[CountedMetric, ...] = ()
    general: tuple[str, ...] = ()  # metrics of every world that hold here; empty: all of them
    prices: tuple[Price, ...] = ()  # one at most
    links: tuple[Link, ...] = ()
    terminal: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    tiles: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    weekly: tuple[WeeklyChart, ...] = ()
    sentences: tuple[ArmSentence, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)  # requests of a kind (analysis/counts/kinds.py), in words
    glossary: tuple[Word, ...] = ()
    unused: tuple[str, ...] = ()  # entries of the glossary of every world that do not hold here
    interactions: tuple[Interactions, ...] = ()  # one at most
    turn: tuple[TurnPanel, ...] = ()  # one at most
    trace: tuple[TraceNames, ...] = ()  # one at most

    @property
    def counted(self) -> tuple[str, ...]:
        """Names of counts."""
        names = [each.name for each in self.counts], [each.name for each in self.amounts], [h.name for h in self.heard]
        return tuple(name for some in names for name in some)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the turn log by which turns are counted."""
        named = [
            *(each.column for count in self.counts for each in count.where),
            *(name for amount in self.amounts for name in (amount.column, amount.less)),
            *(name for link in self.links for name in (link.above, link.below)), self.worth,
        ]  # fmt: skip
        return tuple(dict.fromkeys(name for name in named if name))


def telling_of(manifest: Mapping[str, Any]) -> Telling:
    """The words of the domain that a manifest names.

    Raises UsageError for words that are none.
    """
    domain = manifest["domain"]
    given = domain.get("words", {}) if isinstance(domain, Mapping) else {}
    try:
        telling: Telling = shaped(Telling, {**_DEFAULTS, **given}, "words")
    except (TypeError, ValueError) as error:
        raise UsageError(f"the words of the domain are not sound: {error}") from error
    for name in ("prices", "interactions", "turn", "trace"):
        if len(getattr(telling, name)) > 1:
            raise UsageError(f"the domain of the run has several {name}; leave one")
    return telling


def _default(name: str) -> Any:
    value = getattr(Telling(), name)
    return list(value) if isinstance(value, tuple) else value


_DEFAULTS: Mapping[str, Any] = {each.name: _default(each.name) for each in fields(Telling)}
