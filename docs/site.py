"""Hooks of MkDocs: pages that are made from the code, and links of pages to files beside `docs`.

Such a file (an experiment's README, a report, a module) becomes a page of the site, which is whole without a network.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from click import Command, Context
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command

from skg_bench.analysis.report.glossary import REPLAY_WORDS, WORDS
from skg_bench.app.cli import app as cli

ROOT = Path(__file__).resolve().parents[1]
_NOTEBOOK = "docs/first_notebook.ipynb"
_LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\])\(([^)\s#]+)(#[^)\s]*)?\)")
_PYTHON = (
    "skg_bench.app.api.run", "skg_bench.app.api.explain", "skg_bench.app.api.compare", "skg_bench.app.api.plot",
    "skg_bench.app.evaluating.evaluate",
    "skg_bench.app.evaluating.Evaluation", "skg_bench.app.gate.gate", "skg_bench.app.stored.open_store",
    "skg_bench.runfolder.run.Run", "skg_bench.analysis.comparison.compare.Comparison",
    "skg_bench.core.errors.UsageError",
    "skg_bench.assistant.python.contract", "skg_bench.core.assistant", "skg_bench.core.world", "skg_bench.core.domain",
)  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages that are made, and those of files to which some page links, and so on."""
    texts = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    made = {f"docs/reference/{name}.md": "\n\n".join(page()) for name, page in _MADE.items()}
    made[_NOTEBOOK] = "\n\n".join(_notebook())
    beside = {"CHANGELOG.md"}
    waiting = [*texts, *made, *beside]
    while waiting:
        path = waiting.pop()
        text = texts.get(path) or made.get(path) or _text(path)
        fresh = {target for target in _targets(path, text) if _is_beside(target)} - beside
        beside |= fresh
        waiting += fresh
    for path in sorted(beside):
        files.append(_file(config, path))
    for path, text in made.items():
        files.append(File.generated(config, uri_of(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_given: object) -> str:
    """The text with links to where files are on the site; a link to a folder becomes its name."""
    path = _paths.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if not path.endswith(".md"):
        return markdown

    def moved(match: re.Match[str]) -> str:
        words, link, anchor = match[1], match[2], match[3] or ""
        if ":" in link:
            return match[0]
        target = _resolved(path, link)
        if not (target.startswith("docs/") or _is_beside(target)):
            return words.strip("![]")
        place = posixpath.relpath(uri_of(target), posixpath.dirname(page.file.src_uri) or ".")
        return f"{words}({place}{anchor})"

    return _LINK.sub(moved, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Writes `llms.txt`: all pages of the site, with their first sentences."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for path in sorted(Path(config.docs_dir).rglob("*.md")):
        heading, _, rest = path.read_text("utf-8").partition("\n")
        first = next((line for line in rest.split("\n\n") if line.strip() and line.strip()[0].isalnum()), "")
        place = path.relative_to(config.docs_dir).with_suffix(".html")
        lines.append(f"- [{heading.removeprefix('# ')}]({place}): {' '.join(first.split()).partition('. ')[0]}")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


# ------------------------------------------------------------------------------------------ files beside docs

_paths: dict[str, str] = {}  # place on the site -> file of the repository, of those beside `docs`


def uri_of(path: str) -> str:
    """Place on the site of a file of the repository; MkDocs makes no page in a folder whose name begins with a dot."""
    if path == _NOTEBOOK:
        return "tutorials/notebook.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path == "README.md":
        return "index.md"
    if path.endswith("/README.md"):
        return f"{posixpath.dirname(path)}.md"
    if path.endswith((".md", ".svg", ".png")):
        return path.lower() if "/" not in path else path
    return f"source/{path.removeprefix('.')}.md"


def _file(config: MkDocsConfig, path: str) -> File:
    if path.endswith((".svg", ".png")):
        return File.generated(config, uri_of(path), content=(ROOT / path).read_bytes())
    _paths[uri_of(path)] = path
    text = _text(path)
    if not path.endswith(".md"):
        text = f"# {path}\n\n```````{Path(path).suffix.removeprefix('.')}\n{text}\n```````\n"
    return File.generated(config, uri_of(path), content=text)


def _text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def _resolved(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _is_beside(target: str) -> bool:
    return not target.startswith(("docs/", "..")) and target != "README.md" and (ROOT / target).is_file()


def _targets(path: str, text: str) -> Iterator[str]:
    """Files of the repository to which a page links."""
    if path.endswith(".md"):
        yield from (_resolved(path, match[2]) for match in _LINK.finditer(text) if ":" not in match[2])


# ----------------------------------------------------------------------------------------- pages that are made


def _notebook() -> Iterator[str]:
    for cell in json.loads(_text(_NOTEBOOK))["cells"]:
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
    yield '<a href="../first_notebook.ipynb" download>The notebook as a file</a>'


def _glossary() -> Iterator[str]:
    yield "# Glossary"
    yield "Words of the page and the terminal. *Of a log*: where recorded turns are replayed."
    words: list[tuple[str, str]] = [
        *WORDS.items(),
        *((f"{word}, of a log", says) for word, says in REPLAY_WORDS.items()),
    ]
    yield from (f"## {word}\n\n{says}" for word, says in words)


def _configuration() -> Iterator[str]:
    yield "# Configuration"
    yield "Each parameter with its unit, meaning and source, as the files of `conf` have them."
    yield f"## A run\n\n```yaml\n{_text('conf/config.yaml')}```"
    for seam in sorted(path for path in (ROOT / "conf").iterdir() if path.is_dir()):
        yield f"## {seam.name}"
        for option in sorted(seam.glob("*.yaml")):
            yield f"### {seam.name}={option.stem}\n\n```yaml\n{option.read_text('utf-8')}```"


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield "What `skg-bench COMMAND --help` prints."
    group = get_command(cli)
    for name, command in sorted(getattr(group, "commands", {}).items()):
        with Context(command, info_name=f"skg-bench {name}", max_content_width=100) as context:
            yield f"## {name}\n\n```text\n{Command.get_help(command, context)}\n```"


def _python() -> Iterator[str]:
    yield "# Python"
    yield "`import skg_bench` has what stands first here; the rest are the seams that a plug-in fills."
    yield from (f"::: {name}" for name in _PYTHON)


_MADE: Mapping[str, Callable[[], Iterator[str]]] = {
    "glossary": _glossary, "configuration": _configuration, "commands": _commands, "python": _python,
}  # fmt: skip
