"""Checks of words against references."""

import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.world import RIGHT, UNKNOWN, WRONG
from skg_bench.simulator.tasks import checks
from skg_bench.simulator.tasks.checks import check_of
from tests.app.lab import write

_CALLS = count()


def known(message: str, reference: str, words: str) -> bool | None:
    return None if "perhaps" in words else reference in words


def raises(message: str, reference: str, words: str) -> bool:
    return bool(1 / 0)


def a_share(message: str, reference: str, words: str) -> float:
    return 0.7


def draws(message: str, reference: str, words: str) -> bool:
    return next(_CALLS) % 2 == 0


@pytest.mark.parametrize(
    ("reference", "words", "exact", "marker"),
    [
        ("Bergen", "bergen.", True, True),
        ("Bergen", "She lives in Bergen.", False, True),
        ("Bergen", "She lives in Bergenfield.", False, False),
        ("New York", "new   york!", True, True),
        ("New York", "York, the new one", False, False),
        ("1234.5", "1,234.50", True, True),
        ("51", "The sum is 51", False, True),
        ("51", "510", False, False),
        ("-3", "-3.0", True, True),
        ("-3", "3", False, False),
        ("0.5", "0.50", True, True),
        ("007", "7", False, False),
        ("007", "007.", True, True),
        ("0042", "It is 42", False, False),
        ("-007", "007", False, False),
        ("+49", "49", False, False),
        ("+49", "+49.", True, True),
        ("0", "about 1 000", False, False),
        ("1 0 euros", "1 000 euros", False, False),
        ("123", "0,123", False, False),
        ("0.5", "-0.5", False, False),
        ("2026-03-05", "5 March 2026", True, True),
        ("2026-03-05", "March 5th, 2026", True, True),
        ("2026-03-05", "It was on 5 Mar 2026, I think", False, True),
        ("2026-03-05", "2026-05-03", False, False),
        ("2026-02-30", "30 February 2026", False, False),
        ("Zoë's café", "ZOË\u2019S CAFÉ", True, True),
        ("Zoë's café", "zoë s café", False, False),
        ("दिन", "दान", False, False),
        ("5", "−5", False, False),
        ("-5", "−5", True, True),
        ("-5", "(−5)", True, True),
        ("1,5", "15", False, False),
        ("1,2,3", "123", False, False),
        ("1234567", "1,234,567", True, True),
        (".5", "5", False, False),
        (".5", "0.5", True, True),
        ("-0", "0", True, True),
        ("10.10.10.10", "10.1.10.1", False, False),
        ("12:05", "12:5", False, False),
        ("C++", "C", False, False),
        ("C#", "I wrote it in C#.", False, True),
        ("5 %", "5", False, False),
        ("$5", "€5", False, False),
        ("👍", "👎", False, False),
        ("👍", "👍", True, True),
        ("+", "-", False, False),
        ("2026-09-05", "2026-09-055", False, False),
        ("2026-09-05", "12026-09-05", False, False),
        ("2026-09-05", "the 5th of September, 2026", False, True),
        ("2026-09-05", "Sept 5, 2026", True, True),
        ("café", "cafe\u0301", True, True),
        ("Straße", "STRASSE", True, True),
        ("Bergen", "_Bergen_", True, True),
        ("2020-2021", "2020–2021", True, True),
        ("yes", "\u200b", False, False),
        ("yes", "", False, False),
        ("yes", "   ", False, False),
    ],
)
def test_words_are_equal_or_hold_the_reference(reference: str, words: str, exact: bool, marker: bool) -> None:
    assert check_of("exact").grade("?", reference, words) == (RIGHT if exact else WRONG)
    assert check_of("marker").grade("?", reference, words) == (RIGHT if marker else WRONG)


def test_a_marker_in_words_that_list_everything_tells_nothing() -> None:
    listed = [f"k{place}f-9q2m" for place in range(10_000)]
    marker, exact = check_of("marker"), check_of("exact")
    assert marker.grade("?", listed[7], " ".join(listed)) == UNKNOWN
    assert marker.grade("?", "z9z9-1111", " ".join(listed)) == WRONG
    assert marker.grade("?", listed[7], " ".join(listed[:1000])) == RIGHT
    assert exact.grade("?", listed[7], " ".join(listed)) == WRONG


def test_a_function_of_ones_own_may_say_that_it_does_not_know() -> None:
    mine = check_of(f"{__name__}.known")
    assert [mine.grade("?", "a", words) for words in ("a", "b", "perhaps", "")] == [RIGHT, WRONG, UNKNOWN, WRONG]


@pytest.mark.parametrize(
    ("name", "files", "changed"),
    [
        (
            "mine8.right",
            {"mine8.py": "import rules8\ndef right(m, r, w): return rules8.RIGHT\n", "rules8.py": "RIGHT = {}\n"},
            "rules8.py",
        ),
        (
            "mine8.check.right",
            {"mine8/__init__.py": "", "mine8/check.py": "def right(m, r, w): return True\n", "mine8/table.csv": "{}"},
            "mine8/table.csv",
        ),
        (
            "mine8:right",
            {"mine8.py": "class Right:\n    def __call__(self, m, r, w): return {}\nright = Right()\n"},
            "mine8.py",
        ),
    ],
)
def test_what_a_check_imports_and_the_files_of_its_package_are_in_its_digest(
    name: str, files: Mapping[str, str], changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = []
    for verdict in ("True", "False"):
        for file, text in files.items():
            write(tmp_path / verdict / file, text.format(verdict) if file == changed else text)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / verdict))
            digests.append(check_of(name).digest)
        for module in [module for module in sys.modules if module.split(".")[0] in ("mine8", "rules8")]:
            del sys.modules[module]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "simulator.check=.*raises on '\\?', 'a', 'b' raised ZeroDivisionError: division by zero"),
        (
            "a_share",
            "a_share on '\\?', 'a', 'b' gave 0.7; valid are True, False, and None: not known",
        ),
        (
            "draws",
            "draws on '\\?', 'a', 'b' gave (True|False), and then (True|False); it must not draw",
        ),
    ],
)
def test_a_function_that_is_no_check_is_named_with_what_it_was_asked(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_of(f"{__name__}.{name}").grade("?", "a", "b")


@pytest.mark.parametrize("name", ["exactly", "mine.nowhere.right", f"{checks.__name__}._TWICE"])
def test_a_check_that_is_none_says_what_is_valid(name: str) -> None:
    with pytest.raises(UsageError, match=r"valid (are exact, marker|is a function)"):
        check_of(name)
