"""A domain, as a value: feedback, outcomes and metrics that a world brings beside its events.

It names kinds of feedback, fields of an outcome and metrics of these. The engine passes an outcome through without
looking into it. The manifest of a run holds the domain as plain data, so that readers import nothing of the world.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from importlib.resources import files
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS, Feedback
from skg_bench.core.shapes import shaped

Stored = Literal["words", "bool", "int", "float"]
_STORED: Mapping[str, Stored] = {"b": "bool", "i": "int", "f": "float"}  # by numpy's kind of a dtype
_TAKEN = "is the name of one that every world has; choose another"


@dataclass(frozen=True, slots=True)
class FeedbackKind:
    """A channel of feedback that a domain adds to those of core/feedback.py, with its levels."""

    name: str
    levels: tuple[str, ...]
    says: str  # what it tells, and when


@dataclass(frozen=True, slots=True)
class OutcomeField:
    """A field of an outcome, `[B]`, and the column of the turn log that holds it."""

    name: str
    stored: Stored  # words: codes into `levels`, -1: null. float: NaN is null
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


@dataclass(frozen=True, slots=True)
class Domain:
    """Feedback, outcome and metrics that a world brings beside its events.

    `book`: in this domain skills keep no answers that are right or wrong. They say something that the world reads
    (core/world.py: ReadingWorld), and the engine writes into this field of the outcome what the best in the user's book
    would have been worth; empty: skills keep answers. `telling` names a file of the world's package,
    as `package:file.toml`, with the words of the domain (runfolder/telling.py); empty: those of every world.

    Raises UsageError for names that are taken, and for a metric of a field or of levels that there are not.
    """

    name: str
    kinds: tuple[FeedbackKind, ...] = ()
    outcome: tuple[OutcomeField, ...] = ()
    metrics: tuple[OutcomeMetric, ...] = ()
    book: str = ""
    telling: str = ""

    def __post_init__(self) -> None:
        by_name = {each.name: each for each in self.outcome}
        for kind in self.kinds:
            if kind.name in FEEDBACK_KINDS or not kind.levels:
                why = _TAKEN if kind.levels else "has no levels; name what can be said"
                raise UsageError(f"domain {self.name!r}: feedback {kind.name!r} {why}")
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
        if not (given.kind >= len(FEEDBACK_KINDS)).any():
            return
        levels = np.array([len(each) for each in self.feedback().values()])
        self._check_codes("Feedback.kind", given.kind, np.array(len(levels)), given.row)
        self._check_codes("Feedback.value", given.value, levels[given.kind], given.row)

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
    try:
        return tomllib.loads(files(package).joinpath(file).read_text("utf-8")) if place else {}
    except (ImportError, OSError, ValueError) as error:
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


def told(says: str, *, levels: tuple[str, ...] = (), unit: str = "", truth: bool = True) -> Any:
    """A field of the frozen dataclass of an outcome, for `outcome_fields`; its dtype is that of its annotation."""
    return field(metadata={"says": says, "levels": levels, "unit": unit, "truth": truth})


def outcome_fields(outcome: type) -> tuple[OutcomeField, ...]:
    """Fields of the frozen dataclass of an outcome that were declared by `told`, in order.

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
