"""Text of others, such as messages of a log, as it may be printed."""

from collections.abc import Iterable, Sequence
from html import escape

_CONTROLS = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t")


def printable(text: str) -> str:
    """Without the characters that command a terminal (C0 and C1, so no escape sequence begins); lines and tabs stay."""
    return text.translate(_CONTROLS)


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook, all texts escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(printable(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><caption>{escape(printable(caption))}</caption>{row(headings, 'th')}{body}</table>"
