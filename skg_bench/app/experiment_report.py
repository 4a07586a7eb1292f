"""Reports of experiments: tables and sentences for the terminal, and files for `--write`."""

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from skg_bench.analysis.comparison import findings as findings_files
from skg_bench.analysis.comparison.claims import claims
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app import table_blocks
from skg_bench.app.claim_inputs import analysis
from skg_bench.core.errors import UsageError

_FIGURE = re.compile(
    r"\**[-+]?\d|-?$"
)  # how the cells of a column of figures begin; `-` or nothing where there is none


@dataclass(frozen=True)
class Table:
    """Cells under headings, as text. Columns of figures, the first column aside, are aligned to the right."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table without its title."""
        marks = ["---:" if right else "---" for right in self._right()]
        return "\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in (self.headings, marks, *self.rows))

    def csv(self) -> str:
        """The table without its title, a line a row."""
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.headings, *self.rows])
        return text.getvalue()

    def show(self, screen: Console) -> None:
        """Print it on a terminal."""
        screen.print(Text(self.title, style="bold"))
        table_blocks.show_table(screen, self.headings, self.rows)

    def _right(self) -> list[bool]:
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.headings)
        return [
            at > 0 and any(re.search(r"\d", cell) for cell in cells) and all(map(_FIGURE.match, cells))
            for at, cells in enumerate(columns)
        ]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def page(title: str, command: str, *parts: Table | str) -> str:
    """A page in markdown; `command` is what makes it again."""
    sections = (part if isinstance(part, str) else f"## {part.title}\n\n{part.markdown()}" for part in parts)
    return "\n\n".join(block.strip("\n") for block in (f"# {title}", f"`{command}`", *sections)) + "\n"


@dataclass(frozen=True)
class Report:
    """Findings of an experiment. All but `parts` is for `--write`."""

    parts: Sequence[Table | str]  # printed, in this order
    page: str  # NAME.md
    holds: bool = True  # the figures are as the README expects; otherwise the exit code is 1
    figures: Mapping[str, str] = field(default_factory=dict)  # file name -> SVG
    findings: Callable[[], Sequence[Finding]] | None = None  # claims/NAME.json; may refuse the run

    def show(self, screen: Console) -> None:
        """Print the parts."""
        for part in self.parts:
            if isinstance(part, Table):
                part.show(screen)
            else:
                screen.print(part, soft_wrap=True)

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write all files of experiment `name` into `folder`, or none of them; returns their paths.

        Raises UsageError, OSError.
        """
        texts = {f"{name}.md": self.page, **dict(self._tables(name)), **self.figures}
        results = None if self.findings is None else self.findings()
        if unknown := sorted({result.id for result in results or ()} - set(claims())):
            raise UsageError(f"no source has a statement {', '.join(unknown)}; data/claims.yaml lists them")
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
            staged = Path(temporary)
            for file, text in texts.items():
                (staged / file).write_text(text, "utf-8")
            if results is not None:
                findings_files.write_findings(staged / "claims", name, results, analysis(name))
            moves = {file: folder / file.relative_to(staged) for file in sorted(staged.rglob("*")) if file.is_file()}
            for target in moves.values():
                check_folder(target.parent)
                if target.is_dir():
                    raise UsageError(f"--write {folder}: {target} is a folder; remove it or give another folder")
            for source, target in moves.items():
                target.parent.mkdir(exist_ok=True)
                source.replace(target)
        return list(moves.values())

    def _tables(self, name: str) -> Iterator[tuple[str, str]]:
        tables = [part for part in self.parts if isinstance(part, Table)]
        titles = Counter[str]()
        for table in tables:
            words = [name, *re.findall("[a-z0-9]+", table.title.lower())] if len(tables) > 1 else [name]
            stem = "_".join(words)
            titles[stem] += 1
            yield f"{stem}{f'_{titles[stem]}' if titles[stem] > 1 else ''}.csv", table.csv()


def check_folder(folder: Path) -> None:
    """Raise UsageError if nothing can be written into `folder`, which need not exist yet."""
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not place.is_dir():
        raise UsageError(f"--write {folder}: {place} is a file; give a folder, such as {place.parent}")
    if not os.access(place, os.W_OK):
        raise UsageError(f"--write {folder}: {place} is write-protected; give another folder")
