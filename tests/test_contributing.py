"""CONTRIBUTING.md leads to files, tests, targets and commands that exist."""

import re
from pathlib import Path

import typer

from skg_bench.app.cli import app
from tests.test_sentences_of_readme import MOST, sentences, words

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TOP = {path.name for path in ROOT.iterdir()}


def places(page: str) -> set[str]:
    """Paths in links and in code, from the root of the checkout."""
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page)}
    code = " ".join(re.findall(r"`([^`\n]+)`", page)) + " " + " ".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    tokens = {token.rstrip(",.;:") for token in code.split() if "/" in token}
    return linked | {token for token in tokens if token.split("/")[0] in TOP}


def missing(page: str) -> list[str]:
    """Places that are not there. A part in capitals stands for any name: its folder must hold one."""
    return [place for place in sorted(places(page)) if not any(ROOT.glob(pattern(place)))]


def pattern(place: str) -> str:
    """For `SEAM/NAME.py` any file in any folder."""
    return place if (ROOT / place).exists() else re.sub(r"(?<![^/])[A-Z]+(?=[./]|$)", "*", place.strip("/"))


def test_every_place_that_contributing_names_is_there() -> None:
    assert len(places(PAGE)) > 40
    assert missing(PAGE) == []


def test_a_place_that_is_gone_is_found() -> None:
    gone = "[a](docs/gone.md) and `skg_bench/gone/NAME.py` and `.venv/bin/python -m pytest tests/gone`"
    assert missing(gone) == ["docs/gone.md", "skg_bench/gone/NAME.py", "tests/gone"]
    assert missing("`skg_bench/SEAM/NAME.py`, `experiments/NAME/`, [b](CONTRIBUTING.md#a)") == []


def test_every_target_and_command_that_contributing_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {word for line in re.findall(r"(?:^|`)make ([a-z -]+)", PAGE, re.MULTILINE) for word in line.split()}
    assert {"demo", "lint", "types", "layers", "gate", "test", "soak"} <= named
    assert named <= targets
    commands = set(re.findall(r"skg-bench ([a-z]+)", PAGE))
    assert commands
    assert commands <= set(typer.main.get_group(app).commands)


def test_the_tour_takes_thirty_minutes_and_its_sentences_are_short() -> None:
    assert sum(int(minutes) for minutes in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)) == 30
    long = [s for s in sentences(PAGE) if words(s) > MOST]
    assert not long, "\n".join(f"{words(s)} words: {s}" for s in long)
