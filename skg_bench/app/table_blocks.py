"""Tables for a terminal of any width: columns that do not fit follow in further blocks, and no cell is cut off."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 2  # characters between columns
_PROSE = 30  # a column of longer cells is wrapped between words
# how the cells of a column of figures begin; `-` or nothing: there is none
_FIGURE = re.compile(r"\**[-+(]?[$]?\d|-?$")


@dataclass(frozen=True)
class _Column:
    """A heading and its cells."""

    heading: str
    cells: Sequence[str]
    wraps_from: int  # cells that are longer may be wrapped

    @property
    def natural(self) -> int:
        """Characters of the longest cell, or of the heading."""
        return max(cell_len(text) for text in (self.heading, *self.cells))

    @property
    def least(self) -> int:
        """Characters below which a word of the heading or a cell that is no prose would be broken."""
        cells = max((cell_len(cell) for cell in self.cells), default=0)
        texts = (self.heading, *(self.cells if cells > self.wraps_from else ()))
        word = max((cell_len(word) for text in texts for word in text.split()), default=0)
        return max(word, min(cells, self.wraps_from))

    @property
    def figures(self) -> bool:
        """Are its cells numbers, which are aligned to the right?"""
        return any(re.search(r"\d", cell) for cell in self.cells) and all(map(_FIGURE.match, self.cells))


def show_table(
    screen: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], wraps_from: int = _PROSE
) -> None:
    """Print a table, in as many blocks as it needs. `wraps_from`: cells of more characters may be wrapped."""
    for at, block in enumerate(blocks(headings, rows, screen.width, wraps_from)):
        if at:
            screen.print()
        screen.print(block)


def blocks(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, wraps_from: int = _PROSE) -> list[Table]:
    """The table in blocks that are at most `width` characters wide, each of which begins with the first column."""
    first, *others = (_Column(heading, [row[at] for row in rows], wraps_from) for at, heading in enumerate(headings))
    groups: list[list[_Column]] = [[first]]
    for column in others:
        if _width([*groups[-1], column]) <= width or len(groups[-1]) == 1:
            groups[-1].append(column)
        else:
            groups.append([first, column])
    return [_table(group, width) for group in groups]


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.least for column in columns) + _GAP * (len(columns) - 1)


def _table(columns: Sequence[_Column], width: int) -> Table:
    table, widths = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0)), _widths(columns, width)
    if all(column.natural <= room for column, room in zip(columns, widths, strict=True)):
        heading, *lines = _lines(columns)  # as one cell a line is drawn in a tenth of the time
        table.add_column(Text(heading), width=cell_len(heading))
        for line in lines:
            table.add_row(Text(line))
        return table
    for at, (column, room) in enumerate(zip(columns, widths, strict=True)):
        right = at > 0 and column.figures
        table.add_column(Text(column.heading), width=room, overflow="fold", justify="right" if right else "left")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _lines(columns: Sequence[_Column]) -> Iterator[str]:
    """The heading and the rows, a line each, if nothing is wrapped."""
    looks = [(column.natural, at > 0 and column.figures) for at, column in enumerate(columns)]
    for row in zip(*((column.heading, *column.cells) for column in columns), strict=True):
        spaces = [" " * (room - cell_len(cell)) for cell, (room, _) in zip(row, looks, strict=True)]
        yield (" " * _GAP).join(
            space + cell if right else cell + space for cell, space, (_, right) in zip(row, spaces, looks, strict=True)
        )


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Widths of columns: the rest goes, character by character, to the column with the most lines in a cell."""
    widths = [column.least for column in columns]
    naturals = [column.natural for column in columns]
    left = width - _width(columns)
    if left < 0:  # one word is wider than the terminal: it is folded
        widest = widths.index(max(widths))
        widths[widest] = max(1, widths[widest] + left)
    short = [at for at, natural in enumerate(naturals) if widths[at] < natural <= _PROSE]
    if 2 * (needed := sum(naturals[at] - widths[at] for at in short)) <= left:  # these need not be wrapped at all
        widths = [naturals[at] if at in short else width for at, width in enumerate(widths)]
        left -= needed
    for _ in range(left):
        lines, at = max((natural / room, at) for at, (natural, room) in enumerate(zip(naturals, widths, strict=True)))
        if lines <= 1:
            break
        widths[at] += 1
    return widths
