"""Texts by themselves: as text of others may be printed, in lines and tables, and their hashes."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from html import escape
from textwrap import TextWrapper

_JOINERS = "\u200c\u200d"  # parts of words and of emoji
_DASHES, _UNSEEN = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "\u200b\u200c\u200d\u2060\ufeff"
_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_PLAIN = {**dict.fromkeys(map(ord, _DASHES), "-"), **dict.fromkeys(map(ord, _UNSEEN)), **_QUOTES}
_CONTROLS = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t")


def text_hash(text: str) -> int:
    """64-bit hash of a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def word_count(text: str) -> int:
    """Length of a text in words, as parted by white space."""
    return len(text.split())


def plain_signs(text: str) -> str:
    """Text in which equal signs are equal characters: compatibility forms composed (NFKC), all dashes `-`, quotes
    straight, and without characters that show nothing.
    """
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isascii() else plain.translate(_PLAIN)


def script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def plural(n: int, word: str) -> str:
    """`1 run`, `12 runs`."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def printable(text: str) -> str:
    """Text without characters that command a terminal (C0 and C1: no escape sequence begins); lines and tabs stay."""
    return text.translate(_CONTROLS)


def is_hidden(character: str) -> bool:
    """Does it show nothing and yet change how other characters show? Format characters do, bidirectional controls among
    them, and separators of lines and paragraphs. The two joiners do not count: some languages are written with them.
    """
    return character not in _JOINERS and unicodedata.category(character) in {"Cf", "Zl", "Zp"}


def revealed(text: str) -> str:
    r"""Text with an escape such as \u202e for each hidden character, so that a reader sees what the text says."""
    if text.isascii():
        return text
    return "".join(ascii(character)[1:-1] if is_hidden(character) else character for character in text)


def wrapped(text: str, width: int) -> str:
    """Lines of at most `width` characters, broken between words and indented as they were.

    A word that is longer, such as a path, stays whole.
    """
    breaking, lines = TextWrapper(width, break_long_words=False, break_on_hyphens=False), []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        breaking.initial_indent = breaking.subsequent_indent = line[: len(line) - len(words)]
        lines += breaking.wrap(words) or [line]
    return "\n".join(lines)


def text_table(*table: Sequence[str]) -> str:
    """A table in plain text, by rows."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook, all texts escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(printable(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><caption>{escape(printable(caption))}</caption>{row(headings, 'th')}{body}</table>"
