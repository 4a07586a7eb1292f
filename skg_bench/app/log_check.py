"""`skg-bench data check FILE`: how a log is written, the command that replays it, and what a run on it can show; of a
labelled corpus what a run on that can show.

The reader of the run does the reading: what is printed here is what a run does.
"""

import shlex
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console

from skg_bench.analysis.counts.wording import number as in_words
from skg_bench.analysis.report.logged import ENGLISH, is_english
from skg_bench.app import table_blocks
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.corpus_check import corpus_sentences
from skg_bench.app.log_source import log_source, most_rows
from skg_bench.app.progress import console, working
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import open_file
from skg_bench.core.record import Record, left_out
from skg_bench.core.temporary import replace_whole
from skg_bench.core.text import plural
from skg_bench.simulator.logs.recorded import Recorded
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES
from skg_bench.simulator.logs.recorded_size import log_size

_HEAD = 3 * 2**24  # bytes of a large file that are looked at: all of 1 GB takes 80 s and 4.5 GiB
_FEW = 10  # turns of a user below which there is hardly time to learn
_AGAIN = 1.2  # turns of a user, on average, below which it is no column of users
_WIDEST = 40  # characters of an example


def check_log(path: str, texts: Sequence[str]) -> None:
    """Print what is guessed and the command; of a labelled corpus what a run on it can show. `texts`: overrides that
    say it better.

    Raises UsageError for a file that cannot be read, and where a guess would be a toss of a coin.
    """
    screen, file = console(), Path(path)
    if file.is_file() and file.suffix in LOG_SUFFIXES:
        size = log_size(file)
        screen.print(f"{path}: {size.words}", soft_wrap=True, markup=False)
        if file.suffix != ".parquet" and file.stat().st_size > _HEAD and not _is_utf16(file):
            size.check(most_rows(texts))
            _check_head(screen, file, texts)
            return
    _check(screen, path, texts, path)


def _is_utf16(file: Path) -> bool:
    with open_file(file) as opened:
        return opened.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)


def _check_head(screen: Console, file: Path, texts: Sequence[str]) -> None:
    """Check the first rows of a large file, as a file of their own."""
    with TemporaryDirectory() as folder:
        head = Path(folder) / file.name
        with open_file(file) as opened:
            content = _whole_rows(opened.read(_HEAD))
        replace_whole(head, content)
        screen.print(
            f"{file}: looked at are its first {len(content):,} bytes, and what follows is of these alone; a run reads "
            "all of it",
            soft_wrap=True, markup=False,
        )  # fmt: skip
        try:
            _check(screen, str(head), texts, str(file))
        except UsageError as error:
            raise UsageError(str(error).replace(str(head), str(file))) from error


def _whole_rows(content: bytes) -> bytes:
    """The content up to the end of a line outside of quotes."""
    end, odd = content.rfind(b"\n") + 1, content.count(b'"', 0, content.rfind(b"\n") + 1) % 2
    while odd and end:
        before = content.rfind(b"\n", 0, end - 1) + 1
        odd = (odd + content.count(b'"', before, end)) % 2
        end = before
    return content[:end]


def _check(screen: Console, path: str, texts: Sequence[str], name: str) -> None:
    """Check what lies at `path`, which is called `name`."""
    with working(f"reading {path}", console(sys.stderr)):
        source = log_source(path, texts)
    if source.simulator == "labelled":
        for line in corpus_sentences(path):
            screen.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    screen.print(f"{name}: {source.written}", soft_wrap=True, markup=False)
    if source.table is not None:
        sample, guesses = source.table.sample, source.guesses
        rows = [[field, guess.column, guess.why, _example(sample[guess.column])] for field, guess in guesses.items()]
        table_blocks.show_table(screen, ["field", "column", "guessed", "such as"], rows)
        if unused := [name for name in sample if name not in {guess.column for guess in guesses.values()}]:
            screen.print(f"not used: {', '.join(unused)}", soft_wrap=True, markup=False)
        if "reference" in unused:
            screen.print(
                "its references say what is right: a model's own words are judged by them with skg-bench run "
                f"simulator=tasks simulator.path={path}", soft_wrap=True, markup=False,
            )  # fmt: skip
    overrides, notes = source.overrides(texts)
    for note in notes:
        screen.print(note, soft_wrap=True, markup=False)
    root = compose(overrides).root
    simulator: Recorded = build("simulator", root["simulator"], COMMAND_LINE)
    with working(f"reading {path}", console(sys.stderr)):
        _ = simulator.record
    for line in _facts(simulator.record, simulator, whole=path == name):
        screen.print(line, soft_wrap=True, markup=False)
    if is_english(root["embedder"]):
        screen.print(ENGLISH, soft_wrap=True, markup=False)
    _command(screen, [override.replace(path, name) for override in overrides])


def _command(screen: Console, overrides: Sequence[str]) -> None:
    screen.print(f"\nskg-bench run {shlex.join(overrides)}", soft_wrap=True, markup=False, highlight=False)


def _example(cells: Sequence[Any]) -> str:
    text = next((" ".join(str(cell).split()) for cell in cells if cell is not None and str(cell).strip()), "")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _facts(record: Record, simulator: Recorded, *, whole: bool) -> Iterator[str]:
    """Facts about a log: what was read, what was left out, and what a run on it shows. `whole`: it was read to its
    end.
    """
    turns = np.sort(simulator.count(0, np.arange(record.users, dtype=np.int32), record.weeks))
    middle = int(turns[len(turns) // 2])
    yield (
        f"{plural(record.turns, 'turn')} of {plural(record.users, 'user')} in {plural(record.weeks, 'week')} from "
        f"{record.first_day} on; the median user has {plural(middle, 'turn')}"
    )
    if record.offsets:
        yield (
            f"  times have offsets: dates and hours that pages, sheets and arms see are those of {simulator.zone} "
            "(simulator.zone=Europe/Berlin: of another place)"
        )
    if record.turns < _AGAIN * record.users and not record.pseudo_users:
        yield (
            f"  is that column really the user? {record.users:,} users have {record.turns:,} turns, so hardly anybody "
            "asks again; say which column it is: simulator.columns.user=COLUMN"
        )
    if "users by name" in record.assumes:
        yield f"  {record.assumes['users by name']}: write them alike if they are one"
    if "order" in record.assumes:
        yield f"order: {record.assumes['order']}"
    yield f"left out: {'; '.join(left_out(record.left_out)) or 'no row'}"
    knows = record.knows
    yield "a run shows: how often skills would have answered, with which skill, and what they would have learned"
    if "answer" in knows:
        yield "  the stored answer beside the log's at each hit, and bounds on the share of wrong ones"
    if "intent" in knows:
        yield "  how often a stored answer had been given to another intent"
    if "satisfaction" in knows:
        rated = in_words(record.rated / record.turns, "share")
        yield f"  ratings, where an arm gives the very answer of the log: {rated} of its turns are rated"
    if "session" in knows:
        yield "  where a user asked the same again in a conversation: a sign of a wrong answer, which labels judge"
    money = [words for field, words in (("cost_usd", "money"), ("latency_ms", "waiting time")) if field in knows]
    if money:
        yield f"  {' and '.join(money)} by the log's own figures"
    yield "it does not show: whether an answer was right, and so no utility and no verdict"
    lacks = {"answer": "answers: a hit cannot be held against what was answered",
             "intent": "intents: a stored answer may have been given to another question, and the log cannot say so",
             "satisfaction": "ratings: nothing is learned from any",
             "session": "conversations: whether somebody asked again is not known (columns.session)"}  # fmt: skip
    yield from (f"  no {words}" for field, words in lacks.items() if field not in knows)
    if record.pseudo_users:
        yield "  persons: its users are pseudo-users, so that nothing is anybody's growth"
    if middle < _FEW and whole:
        yield f"  growth: with {middle:,} turns a user has hardly time to teach a skill"
