"""Sentences of READMEs that state a result: made from the committed reports by `make readme`, and held to them.

`experiments/sentences.yaml` has the templates, by README and name; a README has each between two comments,
`<!-- made by make readme: NAME -->` and `<!-- end of NAME -->`. A template takes its figures from the tables of
`reports/*.md`:

    {report / row / column}    {report / section / row / column}    {report / first cell / second cell / column}

A row is named by as many of its first cells as it takes, a section by its heading. After `|` stands what becomes of the
cell: `value` leaves an interval in brackets away, `whole` rounds to whole numbers, and `say A, B` writes A if it is
above 0 and B if it is below. Lines are broken anew: templates may be broken anywhere.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.package import CHECKOUT
from skg_bench.simulator.yaml_files import yaml_of

TEMPLATES = "experiments/sentences.yaml"
_PLACE = re.compile(r"\{([^{}]+)\}")
_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+")
_ITEM = re.compile(r"(?:\d+\.|\*) ")
_BLOCK = "(<!-- made by make readme: {name} -->\n)(.*?)(<!-- end of {name} -->)"


@dataclass(frozen=True)
class ReportTable:
    """A table of a report, under the headings of its sections."""

    sections: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(text: str) -> Iterator[ReportTable]:
    """Tables of a page in markdown."""
    sections: tuple[str, ...] = ()
    lines: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]))
            continue
        if len(lines) > 2:
            yield ReportTable(sections, lines[0], tuple(lines[2:]))
        lines = []
        if heading := re.match(r"(#+) (.+)", line):
            sections = (*sections[: len(heading[1]) - 1], heading[2].strip())


def cell(root: Path, path: str) -> str:
    """The cell of a report in `root` that a template names.

    Raises UsageError if there is none, or more than one.
    """
    name, *keys, column = (part.strip() for part in path.split(" / "))
    file = root / "reports" / f"{name}.md"
    if not file.is_file():
        raise UsageError(f"{{{path}}} names {file}, which does not exist; write the report, or name another one")
    cells = []
    for table in tables(text_of(file)):
        first = keys[1:] if keys[0] in table.sections else keys
        if column in table.columns:
            cells += [row[table.columns.index(column)] for row in table.rows if list(row[: len(first)]) == first]
    if len(cells) != 1:
        raise UsageError(
            f"{{{path}}} names {len(cells)} cells of reports/{name}.md, and must name one; it is "
            "report / section / first cells of the row / column"
        )
    return cells[0].strip("*")


def figure(root: Path, place: str) -> str:
    """Figure in the place of `{place}`."""
    path, _, how = (part.strip() for part in place.partition("|"))
    text = cell(root, path)
    number = _NUMBER.match(text)
    if not how:
        return text
    if number is None:
        raise UsageError(f"{{{place}}}: {text!r} in reports/ is no figure, so {how!r} says nothing of it")
    if how.startswith("say "):
        above, below = (word.strip() for word in how.removeprefix("say ").split(","))
        value = float(number[0].replace(",", ""))
        if value == 0:
            raise UsageError(
                f"{{{place}}}: {text!r} in reports/ is neither {above} nor {below}; write another sentence"
            )
        return above if value > 0 else below
    value_text = text.partition(" (")[0]
    if how == "whole":
        return value_text.replace(number[0], f"{float(number[0].replace(',', '')):,.0f}", 1)
    if how == "value":
        return value_text
    raise UsageError(f"{{{place}}}: {how!r} is none of value, whole, say A, B")


def filled(root: Path, template: str) -> str:
    """The template with its figures, in lines of at most 120 characters."""
    return _wrapped(_PLACE.sub(lambda place: figure(root, place[1]), template))


def _wrapped(text: str) -> str:
    """Paragraphs, numbered items and items of lists; a percent sign stays with its number."""
    paragraphs = []
    for paragraph in text.replace(" %", "\u00a0%").strip().split("\n\n"):
        mark = _ITEM.match(paragraph)
        items = re.split(rf"\n(?={_ITEM.pattern})", paragraph) if mark else [paragraph]
        indent = " " * len(mark[0]) if mark else ""
        lines = [
            fill(item, 120, subsequent_indent=indent, break_on_hyphens=False)
            for item in (re.sub(r"[ \n]+", " ", item) for item in items)
        ]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs).replace("\u00a0", " ") + "\n"


def templates(root: Path) -> Mapping[str, Mapping[str, str]]:
    """Templates by README and name."""
    content: dict[str, dict[str, str]] = yaml_of(root / TEMPLATES)
    return content


def fill_readmes(root: Path) -> list[str]:
    """Fill all blocks; returns the READMEs that changed.

    Raises UsageError for a block that is missing in its README, and a cell that is missing in its report.
    """
    changed = []
    for readme, blocks in templates(root).items():
        before = text = text_of(root / readme)
        for name, template in blocks.items():
            _, start, end = _block(text, readme, name)
            text = text[:start] + filled(root, template) + text[end:]
        if text != before:
            (root / readme).write_text(text, "utf-8")
            changed.append(readme)
    return changed


def _block(text: str, readme: str, name: str) -> tuple[str, int, int]:
    """Text of a README between the comments of a block, and where it stands."""
    block = re.search(_BLOCK.format(name=re.escape(name)), text, re.DOTALL)
    if block is None:
        comments = f"`<!-- made by make readme: {name} -->` and `<!-- end of {name} -->`"
        raise UsageError(f"{readme} has no place for {name!r} of {TEMPLATES}; put {comments} there, each on a line")
    return block[2], block.start(2), block.end(2)


def stale(root: Path) -> list[str]:
    """Sentences that no longer agree with the reports, with the figure, one line each."""
    problems = []
    for readme, blocks in templates(root).items():
        text = text_of(root / readme)
        for name, template in blocks.items():
            written = _block(text, readme, name)[0]
            if written.split() != filled(root, template).split():
                problems += [f"{readme}, {name}: {problem}" for problem in _differences(root, template, written)]
    return problems


def _differences(root: Path, template: str, written: str) -> Iterator[str]:
    """Differences of a block from what its template makes."""
    again = "write it again: make readme"
    written, template = " ".join(written.split()), " ".join(template.split())
    match = re.fullmatch("(.*?)".join(map(re.escape, _PLACE.split(template)[::2])), written)
    if match is None:
        yield f"the words are not those of {TEMPLATES}; change them there, and {again}"
        return
    for i, place in enumerate(_PLACE.findall(template), 1):
        expected = figure(root, place)
        if match[i] != expected:
            start = written.rfind(". ", 0, match.start(i)) + 1
            end = written.find(". ", match.end(i))
            sentence = written[start : end + 1 if end >= 0 else None].strip()
            yield f'"{sentence}" says {match[i]}, and reports say {expected} ({{{place}}}); {again}'


def main() -> None:
    """`python -m skg_bench.app.readmes [FOLDER]`: fill the READMEs of a checkout, default this one."""
    try:
        changed = fill_readmes(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    print("\n".join(f"written: {readme}" for readme in changed) or "all READMEs agree with reports/")  # noqa: T201


if __name__ == "__main__":
    main()
