"""What messages, names and paths say is printed; what they would make a terminal do is not done."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
import yaml
from rich.text import Text

import skg_bench
from skg_bench.analysis.report import picture
from skg_bench.app import progress
from skg_bench.app.plain_errors import plain_errors
from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA
from tests.app.test_cli import call
from tests.runs import tables_alone

TITLE, CLEAR, C1 = "\x1b]0;owned\x07", "\x1b[2J", "\x9b2J\x85"
EVIL = f"{TITLE}{CLEAR}{C1}\x08\x7f"
LEFT = "]0;owned[2J2J"  # what is no control character


def clean(*texts: str) -> bool:
    """Is there no control character but ends of lines and tabs?"""
    return all(sign in "\n\t" or not (ord(sign) < 32 or 127 <= ord(sign) < 160) for text in texts for sign in text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> skg_bench.Run:
    """Users whose every message is made to command a terminal, under a low and a high threshold."""
    folder = tmp_path_factory.mktemp("evil")
    (folder / "corpus" / "intents").mkdir(parents=True)
    for file in sorted((DATA / "corpus" / "intents").glob("*.yaml")):
        domain = yaml.safe_load(file.read_text("utf-8"))
        for one in domain["intents"]:
            one["wordings"] = [f"{words} {EVIL}" for words in one["wordings"]]
        (folder / "corpus" / "intents" / file.name).write_text(yaml.safe_dump(domain), "utf-8")
    one_offs = (DATA / "corpus" / "one_offs.txt").read_text("utf-8")
    (folder / "corpus" / "one_offs.txt").write_text(one_offs, "utf-8")
    arms = "arms={skg: [], low: [policy.threshold=0.05], never: [policy=never]}"
    words = ["users=4", "weeks=1", f"simulator.corpus={folder / 'corpus'}", "embedder=hashing", arms]
    with tables_alone():
        return skg_bench.run([*words, f"out={folder / 'run'}"])


def commands(run: skg_bench.Run, case: Path) -> Sequence[Sequence[str]]:
    place = str(run.path)
    return (
        ["skillbook", "show", place, "--arm", "skg", "--user", "0"],
        ["compare", place, "--flips", "3"],
        ["counterexample", "find", place, "--arm", "low", "--reference", "skg", "--out", str(case), "--trust"],
    )


def test_messages_reach_no_terminal_as_commands(run: skg_bench.Run, tmp_path: Path) -> None:
    case = tmp_path / "case.json"
    for words in commands(run, case):
        code, out, err = call(*words)
        assert code == 0, err
        assert "owned" in out, words  # the messages are there
        assert clean(out, err), words
    text = case.read_text("utf-8")
    case.write_text(text.replace('"threshold": 0.05', '"threshold": 0.9'), "utf-8")
    code, out, err = call("counterexample", "replay", str(case), "--trust")
    assert code == 1, err
    assert "owned" in out
    assert clean(out, err)


@pytest.mark.parametrize(
    "words",
    [
        ["report", f"/nowhere{EVIL}"],
        ["run", f"experiment={EVIL}"],
        ["run", f"out=/proc/nowhere{EVIL}", "profile=smoke"],
        ["list", f"router{EVIL}"],
        ["claims", f"K{EVIL}"],
        ["data", "get", f"x{EVIL}"],
    ],
)
def test_errors_reach_no_terminal_as_commands(words: list[str]) -> None:
    code, out, err = call(*words)
    assert code == 2
    assert "owned" in err
    assert clean(out, err)


def test_errors_are_cleaned_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere typer itself leaves some sequences out."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(typer.Exit), plain_errors():
        raise UsageError(f"row 3: {EVIL}é → ü")
    assert capsys.readouterr().err == f"error: row 3: {LEFT}é → ü\n"


def test_an_error_of_the_picture_is_cleaned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert picture.main([f"{tmp_path}/{EVIL}", str(tmp_path / "figure.svg")]) == 2
    err = capsys.readouterr().err
    assert LEFT in err
    assert clean(err)


def test_the_programs_own_colours_and_bars_stay_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = progress.console()
    screen.file = io.StringIO()
    screen.print(Text(f"bold {EVIL}\nnext", style="bold"))
    assert screen.file.getvalue() == f"\x1b[1mbold {LEFT}\x1b[0m\n\x1b[1mnext\x1b[0m\n"
    screen.file = io.StringIO()
    with progress.progress_bars(EVIL, screen) as (report, _):
        report(1, 2)
    written = screen.file.getvalue()
    assert "\x1b[2K" in written or "\x1b[?25l" in written  # the bar draws itself again
    assert "owned" in written
    assert TITLE not in written
    assert CLEAR not in written
    assert "\x9b" not in written
