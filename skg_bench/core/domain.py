"""A domain, as a value: feedback, outcomes and metrics that a world brings beside its events.

It names kinds of feedback, fields of an outcome and metrics of these. The engine passes an outcome through without
looking into it. The manifest of a run holds the domain as plain data, so that readers import nothing of the world.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from functools import cached_property
from importlib.resources import as_file, files
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS, Feedback
from skg_bench.core.foreign import text_of
from skg_bench.core.grid import I32
from skg_bench.core.shapes import shaped

StoredAs = Literal["words", "bool", "int", "float"]
_STORED: Mapping[str, StoredAs] = {"b": "bool", "i": "int", "f": "float"}  # by numpy's kind of a dtype
_TAKEN = "is the name of one that every world has; choose another"


@dataclass(frozen=True, slots=True)
class FeedbackKind:
    """A channel of feedback that a domain adds to those of core/feedback.py, with its levels.

    Our learners take a kind with `signals` for something to learn from: what users do about what was said, or, where it
    is said `after` such a kind, what they think of it later.
    """

    name: str
    levels: tuple[str, ...]
    says: str  # what it tells, and when
    signals: tuple[str, ...] = ()  # each level in words, as a reflector is told it; empty: nobody learns from it
    idle: tuple[str, ...] = ()  # levels from which there is nothing to learn
    refused: tuple[str, ...] = ()  # levels that say: something else should have been said
    after: str = ""  # the kind of which this one is said later
    combined: tuple["CombinedSignal", ...] = ()  # words for some pairs of levels


@dataclass(frozen=True, slots=True)
class CombinedSignal:
    """Words for what is said later, given what was said or done before."""

    level: str
    before: str
    says: str


@dataclass(frozen=True, slots=True)
class OutcomeField:
    """A field of an outcome, `[B]`, and the column of the turn log that holds it."""

    name: str
    stored: StoredAs  # words: codes into `levels`, -1: null. float: NaN is null
    levels: tuple[str, ...]
    says: str
    unit: str  # of a number; empty: none
    truth: bool  # never shown to an arm


@dataclass(frozen=True, slots=True)
class OutcomeMetric:
    """A metric of a domain: the mean over a user's turns of a field, or the share of turns at some of its levels."""

    name: str
    label: str  # as a heading, and at the head of its sentence on the page
    field: str
    levels: tuple[str, ...]  # empty: the mean of a number or of true and false
    unit: str  # share, utility, usd, ms, calls, or any other word
    better: Literal["higher", "lower", "neither"]
    says: str  # one sentence for the reader


@dataclass(frozen=True)
class Domain:
    """Feedback, outcome and metrics that a world brings beside its events.

    `book`: in this domain skills keep no answers that are right or wrong. They say something that the world reads
    (core/world.py: ReadingWorld), and the engine writes into this field of the outcome what the best in the user's book
    would have been worth; empty: skills keep answers. `telling` names a file of the world's package,
    as `package:file.toml`, with the words of the domain (runfolder/telling.py); empty: those of every world.
    `in_words`: answers are words, which the world judges; models and assistants say them (engine/worded.py).
    `recorded`: people wrote the messages.

    Raises UsageError for names that are taken, and for a metric of a field or of levels that there are not.
    """

    name: str
    kinds: tuple[FeedbackKind, ...] = ()
    outcome: tuple[OutcomeField, ...] = ()
    metrics: tuple[OutcomeMetric, ...] = ()
    book: str = ""
    telling: str = ""
    in_words: bool = False
    recorded: bool = False

    def __post_init__(self) -> None:
        by_name = {each.name: each for each in self.outcome}
        for kind in self.kinds:
            if kind.name in FEEDBACK_KINDS or not kind.levels:
                why = _TAKEN if kind.levels else "has no levels; name what can be said"
                raise UsageError(f"domain {self.name!r}: feedback {kind.name!r} {why}")
        self._check_signals()
        for names, what in (((k.name for k in self.kinds), "feedback"), ((f.name for f in self.outcome), "outcome"),
                            ((m.name for m in self.metrics), "metric")):  # fmt: skip
            if twice := _twice(list(names)):
                raise UsageError(f"domain {self.name!r}: {what} {twice!r} is named twice")
        if self.book and self.book not in by_name:
            raise UsageError(f"domain {self.name!r}: book={self.book!r} is no field of its outcome; they are "
                             f"{', '.join(by_name) or 'none'}")  # fmt: skip
        for metric in self.metrics:
            owner = by_name.get(metric.field)
            if owner is None:
                raise UsageError(f"domain {self.name!r}: metric {metric.name!r} is of {metric.field!r}, and the fields "
                                 f"of the outcome are {', '.join(by_name) or 'none'}")  # fmt: skip
            if bool(metric.levels) != (owner.stored == "words") or set(metric.levels) - set(owner.levels):
                raise UsageError(f"domain {self.name!r}: metric {metric.name!r} has levels {metric.levels}, and "
                                 f"{owner.name!r} has {', '.join(owner.levels) or 'none'}")  # fmt: skip

    def _check_signals(self) -> None:
        by_kind = {kind.name: kind for kind in self.kinds}
        for kind in self.kinds:
            named = [*kind.idle, *kind.refused, *(pair.level for pair in kind.combined)]
            before = by_kind[kind.after].levels if kind.after in by_kind else ()
            if unknown := [level for level in named if level not in kind.levels]:
                raise UsageError(f"domain {self.name!r}: feedback {kind.name!r} has no level {unknown[0]!r}")
            if kind.after and (not before or any(pair.before not in before for pair in kind.combined)):
                raise UsageError(f"domain {self.name!r}: feedback {kind.name!r} is said after {kind.after!r}; name "
                                 "another of its kinds, and levels of that")  # fmt: skip
            if kind.signals and len(kind.signals) != len(kind.levels):
                raise UsageError(f"domain {self.name!r}: feedback {kind.name!r} has {len(kind.levels)} levels and "
                                 f"{len(kind.signals)} signals; give one for each")  # fmt: skip

    @property
    def answers(self) -> bool:
        """Do skills keep answers, which are right or wrong?"""
        return not self.book

    def number(self, kind: str) -> int:
        """Number of one of its kinds of feedback, for `Feedback.kind`."""
        return len(FEEDBACK_KINDS) + [each.name for each in self.kinds].index(kind)

    def feedback(self) -> dict[str, tuple[str, ...]]:
        """Levels of all kinds of feedback by name, in the order of their numbers."""
        return {**FEEDBACK_KINDS, **{kind.name: kind.levels for kind in self.kinds}}

    @cached_property
    def acted(self) -> int:
        """Number of the kind that says what users do about what was said; -1: there is none."""
        return next((self.number(kind.name) for kind in self.kinds if kind.signals and not kind.after), -1)

    @cached_property
    def later(self) -> int:
        """Number of the kind that says what users think of that later; -1: there is none."""
        return next((self.number(kind.name) for kind in self.kinds if kind.signals and kind.after), -1)

    def kind(self, number: int) -> FeedbackKind:
        """One of its kinds of feedback by its number."""
        return self.kinds[number - len(FEEDBACK_KINDS)]

    @cached_property
    def idle(self) -> Sequence[int]:
        """Codes of what users did from which there is nothing to learn."""
        return self._acts("idle")

    @cached_property
    def refused(self) -> Sequence[int]:
        """Codes of what users did that says: something else should have been said."""
        return self._acts("refused")

    def _acts(self, name: Literal["idle", "refused"]) -> Sequence[int]:
        kinds = [self.kind(self.acted)] if self.acted >= 0 else []
        return [kind.levels.index(level) for kind in kinds for level in getattr(kind, name)]

    def signal(self, number: int, value: int, before: int) -> str:
        """Feedback of one of its kinds in words; `before`: the code of what was done before it, -1: not known."""
        return self._combined.get((number, value, before)) or self.kind(number).signals[value]

    @cached_property
    def _combined(self) -> dict[tuple[int, int, int], str]:
        """Words by number of the kind, code, and code of what was done before."""
        words = {}
        for kind in self.kinds:
            for pair in kind.combined:
                before = self.kind(self.number(kind.after)).levels.index(pair.before)
                words[self.number(kind.name), kind.levels.index(pair.level), before] = pair.says
        return words

    def columns(self, outcome: Any) -> dict[str, np.ndarray]:
        """Columns of the turn log from an outcome; None: none came.

        Raises RowError for a code that is none of a field's levels.
        """
        columns = {} if outcome is None else {each.name: getattr(outcome, each.name) for each in self.outcome}
        for each in self.outcome if columns else ():
            if each.stored == "words":
                self._check_codes(f"outcome.{each.name}", columns[each.name], np.array(len(each.levels)), least=-1)
        return columns

    def check_feedback(self, given: Feedback) -> None:
        """Raises RowError for a kind that is none of this domain, and for a value that is none of its levels."""
        levels, kind, value = self._sizes, given.kind, given.value
        if not np.logical_or.reduce(kind >= len(FEEDBACK_KINDS)):
            return
        if kind.max() < len(levels) and not ((value < 0) | (value >= levels[kind]) | (kind < 0)).any():
            return
        self._check_codes("Feedback.kind", given.kind, np.array(len(levels)), given.row)
        self._check_codes("Feedback.value", given.value, levels[given.kind], given.row)

    @cached_property
    def _sizes(self) -> I32:
        """How many levels each kind of feedback has."""
        return np.array([len(each) for each in self.feedback().values()], np.int32)

    def _check_codes(
        self, name: str, codes: np.ndarray, levels: np.ndarray, rows: np.ndarray | None = None, least: int = 0
    ) -> None:
        if (wrong := np.flatnonzero((codes < least) | (codes >= levels))).size:
            at = int(wrong[0])
            most = int(np.broadcast_to(levels, codes.shape)[at]) - 1
            row = at if rows is None else int(rows[at])
            says = f"{name} is {codes[at]}, valid are {least} to {most}, codes of its levels"
            raise RowError(row, says, f"the world of domain {self.name!r}")

    def plain(self) -> dict[str, Any]:
        """As the manifest holds it, with the words in its file.

        Raises UsageError for a file that is not there, or no TOML.
        """
        return {**asdict(self), "words": _words(self.name, self.telling)}


def _words(domain: str, place: str) -> dict[str, Any]:
    package, _, file = place.partition(":")
    if not place:
        return {}
    try:
        with as_file(files(package).joinpath(file)) as path:
            return tomllib.loads(text_of(path))
    except (ImportError, OSError, UsageError, ValueError) as error:
        raise UsageError(
            f"domain {domain!r}: telling={place!r} cannot be read as package:file.toml: {error}"
        ) from error


def domain_of(manifest: Mapping[str, Any]) -> Domain:
    """The domain that a manifest holds.

    Raises UsageError for a manifest that holds none.
    """
    try:
        given = {key: value for key, value in manifest["domain"].items() if key != "words"}
        domain: Domain = shaped(Domain, given, "domain")
    except (AttributeError, ValueError) as error:
        raise UsageError(f"the manifest says nothing sound of the domain of its world: {error}") from error
    return domain


def outcome_field(says: str, *, levels: tuple[str, ...] = (), unit: str = "", truth: bool = True) -> Any:
    """A field of the frozen dataclass of an outcome, for `outcome_fields`; its dtype is that of its annotation."""
    return field(metadata={"says": says, "levels": levels, "unit": unit, "truth": truth})


def outcome_fields(outcome: type) -> tuple[OutcomeField, ...]:
    """Fields of the frozen dataclass of an outcome that were declared by `outcome_field`, in order.

    Raises UsageError for a field whose annotation is no array of numbers or of true and false (core/grid.py).
    """
    hints = get_type_hints(outcome)
    return tuple(_field(each, hints[each.name]) for each in fields(outcome) if "says" in each.metadata)


def _field(declared: Field[Any], hint: Any) -> OutcomeField:
    about = declared.metadata
    try:
        (kind,) = get_args(get_args(hint)[1])
        stored = _STORED[np.dtype(kind).kind]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"outcome field {declared.name!r} is annotated {hint}; valid are Bool, I32 and F64") from error
    return OutcomeField(
        declared.name, "words" if about["levels"] else stored, tuple(about["levels"]), about["says"], about["unit"],
        about["truth"],
    )  # fmt: skip


def _twice(names: list[str]) -> str | None:
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


ANSWERS = Domain("answers")
"""Domain of worlds in which skills keep answers, and that bring nothing of their own."""
