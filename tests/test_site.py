"""The site of the docs: built strictly, whole without a network, and its start page leaves no word unexplained."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mkdocs.config import load_config

from skg_bench.analysis.report.glossary import WORDS

ROOT = Path(__file__).resolve().parents[1]
START = (ROOT / "docs" / "index.md").read_text("utf-8")


@pytest.fixture(scope="module")
def site(once: Callable[..., Path]) -> Path:
    """The site; a link that leads nowhere, or a docstring that cannot be read, would have stopped its building."""

    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)

    return once("site", build)


def test_files_beside_the_docs_are_pages_of_the_site(site: Path) -> None:
    for place in (
        "changelog.html", "experiments/controls.html", "reports/clusters.html", "reports/assistant_growth.svg",
        "source/skg_bench/core/world.py.html",
    ):  # fmt: skip
        assert (site / place).is_file(), place


def test_what_python_keeps_of_the_hooks_is_no_page() -> None:
    left_out = load_config(str(ROOT / "mkdocs.yml")).exclude_docs
    assert left_out is not None
    assert left_out.match_file("__pycache__/site.cpython-311.pyc")
    assert left_out.match_file("site.py")
    assert not left_out.match_file("index.md")


def test_no_link_is_dead(site: Path) -> None:
    """MkDocs says nothing of a page that it does not make, such as one in a folder whose name begins with a dot."""
    links = {
        page: re.findall(r'(?:href|src)="([^"#?:]+)[^":]*"', page.read_text("utf-8"))
        for page in site.rglob("*.html")
        if page.name != "404.html"  # which is shown at any place
    }
    assert len(links[site / "how_it_works.html"]) > 30
    dead = [(page.name, link) for page in links for link in links[page] if not (page.parent / link).exists()]
    assert dead == []


def test_no_link_of_a_readme_is_dead_in_the_checkout() -> None:
    """Not all of them are pages of the site."""
    readmes = [ROOT / "README.md", *(ROOT / "experiments").rglob("README.md")]
    links = [
        (page, link) for page in readmes for link in re.findall(r"\]\(([^)#\s:]+)[^):]*\)", page.read_text("utf-8"))
    ]
    assert len(links) > 100
    assert [(str(page.relative_to(ROOT)), link) for page, link in links if not (page.parent / link).exists()] == []


def test_the_reference_has_every_parameter_and_command(site: Path) -> None:
    configuration = (site / "reference" / "configuration.html").read_text("utf-8")
    for option in (ROOT / "conf").glob("*/*.yaml"):
        assert f"{option.parent.name}={option.stem}<" in configuration, option
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    for name in ("run", "compare", "gate", "probe", "init", "data", "skillbook"):
        assert f'id="{name}"' in commands, name
    python = (site / "reference" / "python.html").read_text("utf-8")
    assert 'id="skg_bench.app.evaluating.evaluate"' in python
    assert "Raises UsageError" in python


def test_tutorials_have_what_the_folders_of_init_say(site: Path) -> None:
    for kind in ("ablation", "assistant", "log", "gate"):
        page = (site / "tutorials" / f"{kind}.html").read_text("utf-8")
        readme = (ROOT / "data" / "templates" / kind / "README.md").read_text("utf-8")
        prose = re.sub(r"```.*?```", "", readme, flags=re.DOTALL).partition("\n")[2]
        longest = max(re.split(r"[`.\n]", prose), key=len).strip()
        assert longest in page, kind


def test_the_notebook_is_a_page_with_its_cells_and_a_file(site: Path) -> None:
    page = (site / "tutorials" / "notebook.html").read_text("utf-8")
    assert "A first notebook" in page
    assert page.count('<div class="highlight">') >= 8
    assert 'href="../first_notebook.ipynb"' in page
    assert (site / "first_notebook.ipynb").read_bytes() == (ROOT / "docs" / "first_notebook.ipynb").read_bytes()
    assert 'href="tutorials/notebook.html"' in (site / "index.html").read_text("utf-8")


def test_nothing_of_it_is_asked_for_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        asked = re.findall(r'<(?:script|img|iframe|link rel="stylesheet")[^>]+="(\w+:[^"]+)"', page.read_text("utf-8"))
        assert asked == [], page
    assert (site / "search" / "search_index.js").is_file()
    assert 'src="assets/iframe-worker.js"' in (site / "index.html").read_text("utf-8")  # which lets files search


def test_a_program_finds_all_pages_in_one_file(site: Path) -> None:
    lines = (site / "llms.txt").read_text("utf-8").splitlines()
    pages = [re.fullmatch(r"- \[.+\]\((\S+)\): \S.*", line) for line in lines if line.startswith("- ")]
    places = [page[1] for page in pages if page]
    assert len(places) == len(list((ROOT / "docs").rglob("*.md"))) > 15
    assert all((site / place).is_file() for place in places)


def test_words_of_the_glossary_are_explained_where_the_start_page_uses_them_first() -> None:
    """Whoever begins there has read nothing else."""
    terms = {word.strip().lower() for entry in WORDS for word in entry.split(",")}
    prose = re.sub(r"```.*?```|\]\([^)]*\)", "", START, flags=re.DOTALL)
    used = {}
    for term in (*terms, "utility", "interval", "verdict"):
        if first := re.search(rf"\b{re.escape(term)}s?\b", prose, re.IGNORECASE):
            used[term] = prose[max(0, first.start() - 2) : first.end() + 2]
    assert {"arm", "skill", "utility", "interval", "verdict"} <= used.keys()
    unexplained = {term for term, words in used.items() if not words.startswith("**")}
    assert unexplained == set()
