"""Checks of words against a reference: equal, held, or by a function of one's own."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from inspect import getsourcefile
from pathlib import Path
from pkgutil import resolve_name

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of
from skg_bench.core.package import beyond_file, imported_digest
from skg_bench.core.spoken import UNCHECKED
from skg_bench.core.text import plain_signs
from skg_bench.core.world import RIGHT, UNKNOWN, WRONG

Check = Callable[[str, str, str], object]  # message, reference, words: True, False, or None: not known
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
_AS_WRITTEN = re.compile(r"\+|-?0[\d,]")  # so begin codes, telephone numbers, and the end of 1 000
_KEPT = "%#@&-."  # punctuation that belongs to a word, or may
_AROUND = "".join(
    sign for sign in map(chr, range(0x3100)) if unicodedata.category(sign)[0] == "P" and sign not in _KEPT
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + "|sept"
_DATE = re.compile(
    rf"(?<![\w.-])(?:(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)|"
    rf"(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?(?P<n2>{_MONTH})\.?,? (?P<y2>\d{{4}})|"
    rf"(?P<n3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y3>\d{{4}}))(?![\w-])"
)
_TWICE = 100  # first questions to a function that are put twice
_MOST = 1000  # words in which a marker says something: one of many more may stand there by listing everything
_KEPT_TEXT = 2000  # characters of a text whose words are kept


def check_of(name: str) -> "WordCheck":
    """The check that `simulator.check` names.

    Raises UsageError for one that is not there.
    """
    if name in _BUILT_IN:
        return WordCheck(name, _BUILT_IN[name])
    try:
        function = resolve_name(name)
    except (Exception, SystemExit) as error:  # whatever its module raises
        raise UsageError(
            f"simulator.check={name!r} cannot be imported: {type(error).__qualname__}: {error}; valid are "
            f"{', '.join(_BUILT_IN)}, and a function that Python finds, such as mine.check.right"
        ) from error
    if not callable(function):
        raise UsageError(f"simulator.check={name!r} is a {type(function).__qualname__}; valid is a function")
    return WordCheck(name, function)


class WordCheck:
    """A check, with what it said before: one that differs from itself is refused."""

    def __init__(self, name: str, function: Check) -> None:
        self._name, self._function = name, function
        self._said: dict[tuple[str, str, str], int] = {}

    @property
    def digest(self) -> str:
        """Digest of the file that a function of one's own stands in and of what it imports; of others the name."""
        if self._name in _BUILT_IN:
            return self._name
        root = re.split("[.:]", self._name)[0]
        try:
            file = getsourcefile(self._function)
        except TypeError:  # it is written in C, or an object that can be called
            file = ""
        beyond = beyond_file(Path(file), root) if file else imported_digest([root], Path.cwd())
        content = bytes_of(Path(file)) if file else b""
        return sha256(content + beyond.encode()).hexdigest()[:16] if file or beyond else self._name

    def grade(self, message: str, reference: str, words: str) -> int:
        """RIGHT, WRONG or UNKNOWN (core/world.py). Words that did not come are WRONG.

        Raises UsageError for a function that raises, gives something else, or another thing the second time.
        """
        if not plain_signs(words).strip():
            return WRONG
        question = message, reference, words
        if question not in self._said:
            grade = self._grade(*question)
            if len(self._said) < _TWICE and (again := self._grade(*question)) != grade:
                where = self._where(*question)
                raise UsageError(f"{where} gave {_WORDS[grade]}, and then {_WORDS[again]}; it must not draw")
            self._said[question] = grade
        return self._said[question]

    def _grade(self, message: str, reference: str, words: str) -> int:
        try:
            given = self._function(message, reference, words)
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{self._where(message, reference, words)} raised {type(error).__qualname__}: {error}"
            ) from error
        if given is None:
            return UNKNOWN
        if given is True or given is False:
            return RIGHT if given else WRONG
        raise UsageError(
            f"{self._where(message, reference, words)} gave {given!r}; valid are True, False, and None: not known"
        )

    def _where(self, message: str, reference: str, words: str) -> str:
        shown = ", ".join(repr(each if len(each) <= 60 else f"{each[:57]}...") for each in (message, reference, words))
        return f"simulator.check={self._name} on {shown}"


_WORDS = {RIGHT: "True", WRONG: "False", UNKNOWN: "None"}


def holds(words: str, reference: str) -> bool:
    """Are the words of a reference in others, in order and side by side?"""
    inside, wanted = tokens(words), tokens(reference)
    n = len(wanted)
    return n > 0 and any(inside[at : at + n] == wanted for at in range(len(inside) - n + 1))


def _held(_message: str, reference: str, words: str) -> bool | None:
    if not holds(words, reference):
        return False
    return True if len(tokens(words)) <= _MOST else None


def _equal(_message: str, reference: str, words: str) -> bool:
    return tokens(words) == tokens(reference)


def _unknown(_message: str, _reference: str, _words: str) -> None:
    return None


_BUILT_IN: Mapping[str, Check] = {"exact": _equal, "marker": _held, UNCHECKED: _unknown}


def tokens(text: str) -> Sequence[str]:
    """Words of a text, as they are between blanks. Case, punctuation around a word, and the ways to write a number, a
    date, a dash or an accent do not count; zeros and a plus in front of a number do. Signs inside of a word count, and
    so does a sign that stands alone.
    """
    return _known_tokens(text) if len(text) <= _KEPT_TEXT else _tokens(text)


@lru_cache(maxsize=2**16)
def _known_tokens(text: str) -> Sequence[str]:
    return _tokens(text)


def _tokens(text: str) -> Sequence[str]:
    plain = _DATE.sub(_day, plain_signs(text).casefold())
    return tuple(filter(None, (_token(each) for each in plain.split())))


def _token(word: str) -> str:
    kept = word.strip(_AROUND)
    number = kept.rstrip(".-")
    if number[-1:].isdigit() and _NUMBER.fullmatch(number):
        if _AS_WRITTEN.match(number):
            return number
        value = Decimal(number.replace(",", ""))
        return f"{value.normalize() if value else Decimal(0):f}"
    return kept.strip("-.")


def _day(match: re.Match[str]) -> str:
    """A date as one word."""
    parts = match.groupdict()
    year, day = (next(filter(None, (parts[f"{name}{way}"] for way in ("", "2", "3")))) for name in ("y", "d"))
    named = parts["n2"] or parts["n3"]
    month = int(parts["m"]) if named is None else [name[:3] for name in _MONTHS].index(named[:3]) + 1
    try:
        return f" day{datetime(int(year), month, int(day), tzinfo=UTC):%Y%m%d} "
    except ValueError:  # no such day
        return match[0]
