"""Things that users tell, their codes, and the messages: texts of the world by number.

A code is a word that nobody can guess and that occurs nowhere else. So whoever says it was told it. A code is told by
detour where one message names the owner of the thing, and another one tells the code under that name alone: *I call my
dentist Abrim. The door code of Abrim is k7f3-9q2m. What is the door code of my dentist?*
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b

import numpy as np

from skg_bench.core.grid import I32, I64
from skg_bench.core.text import plain_signs

THINGS = (
    "door code of my dentist", "door code of my office", "door code of my sister", "gate code of my parents",
    "wifi password of my parents", "wifi password of my neighbour", "wifi password of my office",
    "membership number of my gym", "membership number of my library", "membership number of my museum",
    "booking reference of my flight", "booking reference of my hotel", "booking reference of my ferry",
    "policy number of my car", "policy number of my house", "policy number of my dog",
    "customer number of my bank", "customer number of my plumber", "customer number of my garage",
    "locker number of my pool", "locker number of my station", "safe combination of my mother",
    "safe combination of my shop", "order number of my sofa", "order number of my lamp", "order number of my bike",
    "serial number of my camera", "serial number of my boiler", "ticket number of my train",
    "ticket number of my opera",
)  # fmt: skip
_OWNERS = tuple(dict.fromkeys(thing.partition(" of my ")[2] for thing in THINGS))
_MINE = (
    "Abrim", "Belko", "Corvan", "Dresk", "Elvor", "Fandil", "Gorrin", "Hulme", "Ivrek", "Jorvik", "Kelmar", "Lundo",
    "Morvath", "Nestrin", "Olvar", "Pelvin", "Quorra", "Rendal", "Sorvik", "Tamsin", "Ulvek", "Vandor", "Wesmar",
    "Yorvin", "Zelko", "Brask", "Cliven", "Dorsk",
)  # fmt: skip
OWNER_NAMES = dict(zip(_OWNERS, _MINE, strict=True))
"""Names that users have for the owners of things."""

N_CODES = 256  # of each thing
TELL_WORDINGS = ("The {thing} is {code}.", "Note that the {thing} is {code}.", "By the way, {code} is the {thing}.")
CHANGE_WORDINGS = ("The {thing} is now {code}.", "There is a new {thing}: {code}.")
DETOUR_WORDINGS = ("The {kind} of {name} is {code}.", "The {kind} of {name} is now {code}.")  # told, and changed
NAMING_WORDINGS = ("I call my {owner} {name}.", "{name} is what I call my {owner}.")
ASK_WORDINGS = ("What is the {thing}?", "Can you tell me the {thing}?", "Do you remember the {thing}?")
_LETTERS, _DIGITS = "abcdefghjkmnpqrstuvwxyz", "23456789"
_CODE = re.compile(
    rf"(?<![a-z0-9])(?<![a-z0-9]-)([{_LETTERS}][{_DIGITS}][{_LETTERS}{_DIGITS}]{{2}})\s?-\s?([{_LETTERS}{_DIGITS}]{{4}})"
    r"(?!-?[a-z0-9])"
)
_STATEMENT_WORDINGS = (*TELL_WORDINGS, *CHANGE_WORDINGS, *DETOUR_WORDINGS)
_STATEMENTS = len(_STATEMENT_WORDINGS)
_ASKS = N_CODES * _STATEMENTS  # the first text of a thing that asks
_TEXTS = _ASKS + len(ASK_WORDINGS)  # of each thing
_OWNER_OF = np.array([list(OWNER_NAMES).index(thing.partition(" of my ")[2]) for thing in THINGS], np.int32)


@cache
def codes() -> Sequence[str]:
    """All codes, those of the first thing first; no two are equal."""
    return tuple(_code(f"{thing}/{number}") for thing in THINGS for number in range(N_CODES))


def _code(name: str) -> str:
    drawn = blake2b(name.encode(), digest_size=8).digest()
    both = _LETTERS + _DIGITS
    signs = [_LETTERS[drawn[0] % len(_LETTERS)], _DIGITS[drawn[1] % len(_DIGITS)]]
    signs += [both[byte % len(both)] for byte in drawn[2:]]
    return f"{''.join(signs[:4])}-{''.join(signs[4:])}"


@cache
def _number_of() -> dict[str, int]:
    return {code: number for number, code in enumerate(codes())}


@lru_cache(maxsize=2**12)
def codes_in(words: str) -> Sequence[int]:
    """Codes that words hold, by their number, each once and in order; -1: a code that nobody has. Case, kinds of dashes
    and a blank beside one do not count.
    """
    numbers = _number_of()
    inside = _CODE.findall(plain_signs(words).lower())
    return tuple(dict.fromkeys(numbers.get(f"{first}-{second}", -1) for first, second in inside))


@cache
def messages() -> Sequence[str]:
    """All messages: of each thing the statements of each code, then its questions; behind them names of owners."""
    texts, given = list[str](), codes()
    for place in range(len(THINGS)):
        words = thing_words(place)
        for code in given[place * N_CODES : (place + 1) * N_CODES]:
            texts += [wording.format(**words, code=code) for wording in _STATEMENT_WORDINGS]
        texts += [wording.format(**words) for wording in ASK_WORDINGS]
    texts += [
        wording.format(owner=owner, name=name) for owner, name in OWNER_NAMES.items() for wording in NAMING_WORDINGS
    ]
    return tuple(texts)


def thing_words(thing: int) -> Mapping[str, str]:
    """Words of a thing, for the wordings: it, its kind, its owner, and what a user calls that owner."""
    kind, _, owner = THINGS[thing].partition(" of my ")
    return {"thing": THINGS[thing], "kind": kind, "owner": owner, "name": OWNER_NAMES[owner]}


def statement(thing: I32 | I64, code: I32 | I64, wording: I32 | I64) -> I32:
    """Numbers of the messages that state codes; `wording` counts TELL_WORDINGS, behind them CHANGE_WORDINGS, and behind
    these DETOUR_WORDINGS.
    """
    return np.asarray(thing * _TEXTS + (code % N_CODES) * _STATEMENTS + wording, np.int32)


def question(thing: I32 | I64, wording: I32 | I64) -> I32:
    """Numbers of the messages that ask for things."""
    return np.asarray(thing * _TEXTS + _ASKS + wording, np.int32)


def naming(thing: I32 | I64, wording: I32 | I64) -> I32:
    """Numbers of the messages that name the owners of things."""
    return np.asarray(len(THINGS) * _TEXTS + _OWNER_OF[thing] * len(NAMING_WORDINGS) + wording, np.int32)
