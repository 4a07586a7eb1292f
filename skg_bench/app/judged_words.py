"""Tables of judged words on the terminal, for `data label` and `compare`."""

from rich.console import Console
from rich.text import Text

from skg_bench.analysis.labels.word_table import WORD_HEADINGS, WORD_INTERVALS, WordTables
from skg_bench.app.table_blocks import show_table
from skg_bench.core.text import printable


def show_words(screen: Console, tables: WordTables) -> None:
    """Print the tables, one a judge, or the command that draws answers to be judged."""
    for words in tables.agreements:
        screen.print(printable(words), soft_wrap=True)
    screen.print(Text(tables.title, "bold"))
    for table in tables.judges:
        if table.judge:
            screen.print(Text(printable(f"judge: {table.judge}")), soft_wrap=True)
        show_table(screen, WORD_HEADINGS, table.rows)
        if table.caution:
            screen.print(f"it {table.caution}", soft_wrap=True)
    screen.print(WORD_INTERVALS, soft_wrap=True)
    if tables.command:
        screen.print(f"people judge: {tables.command}", soft_wrap=True)
