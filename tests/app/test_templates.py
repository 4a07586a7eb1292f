"""Folders that `skg-bench init` makes: each works as a stranger would use it, by the commands of its README."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from skg_bench.app.templates import STARTERS, template_names
from tests.app.forks import PROGRAM, forks
from tests.app.test_cli import ROOT, call

SMALL = ("users=40", "weeks=2", "workers=1", "simulator.volume_spread=0.2", "seed=1")  # the assistant is ahead


def test_templates_are_named_in_the_help() -> None:
    assert template_names() == ["ablation", "assistant", "gate", "log"]
    _, out, _ = call("init", "--help")
    assert all(name in out for name in template_names())


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What plays the commands of all folders."""
    with forks(tmp_path_factory.mktemp("forks")) as words:
        yield words


@pytest.fixture
def shell(tmp_path: Path, python: str) -> dict[str, str]:
    """An environment whose `skg-bench` and `python` have what is installed in PYTHONPATH, and whose git knows a
    person.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (("skg-bench", '"${PROGRAM:-$PYTHONPATH/skg_bench/__main__.py}"'), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {python} "$PYTHONPATH" {words} "$@"\n', "utf-8")
        (folder / name).chmod(0o755)
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    person = {f"GIT_{name}": "me@example.org" for name in names}
    paths = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return {**os.environ, **person, **paths, "GIT_CONFIG_GLOBAL": os.devnull}


def made(kind: str, folder: Path) -> list[str]:
    """Makes a folder of a template; returns its commands, as printed."""
    code, out, err = call("init", kind, str(folder))
    assert (code, err) == (0, "")
    first, heading, enter, *commands = out.splitlines()
    assert first.startswith(f"{folder}: ")
    assert (heading, enter) == ("next:", f"  cd {folder}")
    readme = (folder / "README.md").read_text("utf-8")
    assert [line.strip() for line in commands] == readme.split("```sh\n")[1].split("\n```")[0].splitlines()
    return [line.strip() for line in commands]


def said(command: str, folder: Path, shell: dict[str, str]) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=shell, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_an_ablation_prints_what_one_change_does(tmp_path: Path, shell: dict[str, str]) -> None:
    (command,) = made("ablation", tmp_path / "mine")
    few = '"users=6", "weeks=2", "workers=1", "simulator.corpus=builtin_120"'
    smaller(tmp_path / "mine" / "ablation.py", '"profile=smoke"', few)
    out = said(command, tmp_path / "mine", shell)
    assert re.search(r"^\* (Not shown that )?mine .* base.*: [+-]\d\.\d+ utility a request", out, re.MULTILINE)
    assert re.search(r"^mine +utility +[+-]\d\.\d+", out, re.MULTILINE)
    assert (tmp_path / "mine" / out.split("page: ")[1].splitlines()[0]).is_file()


def test_an_assistant_gets_a_verdict_and_is_probed(tmp_path: Path, shell: dict[str, str]) -> None:
    alone, probe, beside = made("assistant", tmp_path / "mine")
    few = '["users=20", "weeks=4", "simulator.corpus=builtin_120", "workers=1"]'
    smaller(tmp_path / "mine" / "assistant.py", "(Assistant, ", f"(Assistant, {few}, ")
    out = " ".join(said(alone, tmp_path / "mine", shell).split())
    assert "Assistant serves its users better than never" in out
    assert "asks its model" in said(probe, tmp_path / "mine", shell)
    assert "mine" in said(f"{beside} --dry-run", tmp_path / "mine", shell)


def test_a_log_is_checked_and_replayed(tmp_path: Path, shell: dict[str, str]) -> None:
    check, replay, label = made("log", tmp_path / "mine")
    few = '"arms={skg: [], never: [policy=never, curator=none]}", "workers=1"'
    smaller(tmp_path / "mine" / "replay.py", '"embedder=hashing"]', f'"embedder=hashing", {few}]')
    assert "left out: no row" in said(check, tmp_path / "mine", shell)
    out = said(replay, tmp_path / "mine", shell)
    assert "8 users, 320 turns of each arm" in out
    assert (tmp_path / "mine" / "run" / "report.html").is_file()
    assert "answers to judge: label.html" in said(label, tmp_path / "mine", shell)
    assert "wrong" in (tmp_path / "mine" / "label.html").read_text()


def test_the_gate_lets_the_same_pass_and_a_worse_one_fail(
    tmp_path: Path, shell: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the harness itself no commit is asked for: it is no repository where it is installed. Only the first run ends
    with tables and page.
    """
    installed = tmp_path / "site"
    for name in ("skg_bench", "conf", "data", "experiments"):
        shutil.copytree(ROOT / name, installed / name)
    shell["PYTHONPATH"] = str(installed)
    folder = tmp_path / "mine"
    commands = made("gate", folder)
    smaller(folder / "gate.sh", "users=40 weeks=8", " ".join(SMALL))
    smaller(folder / "gate.sh", ":Assistant]", ":Assistant,assistant.controls=false]")
    for command in commands:
        said(command, folder, shell)
    shell["PROGRAM"] = str(tmp_path / "program.py")
    Path(shell["PROGRAM"]).write_text(PROGRAM, "utf-8")
    (installed / "tests").symlink_to(ROOT / "tests")
    smaller(folder / "assistant.py", "{earlier}\\n\\n{message}", "{earlier} {message}")
    said("sh gate.sh", folder, shell)
    smaller(folder / "assistant.py", "        words = model(", "        words = earlier or model(")
    worse = subprocess.run(["sh", "gate.sh"], cwd=folder, env=shell, capture_output=True, text=True, check=False)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "Gate FAILED" in worse.stdout


def smaller(file: Path, before: str, after: str) -> None:
    """Replaces what stands once in a file."""
    text = file.read_text("utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, after), "utf-8")


def test_a_folder_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object, to: Path) -> None:
        raise OSError(28, "No space left on device", str(to))

    monkeypatch.setattr(shutil, "copyfile", failing)
    code, _, err = call("init", "log", str(tmp_path / "mine"))
    assert (code, err) == (2, f"error: {tmp_path / 'mine'}: No space left on device\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["file", "full", "link", "here"])
def test_what_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str) -> None:
    folder = tmp_path / "mine"
    if taken == "file":
        folder.write_text("mine", "utf-8")
    elif taken == "link":
        folder.symlink_to(tmp_path / "nowhere")
    else:
        folder.mkdir()
    if taken == "full":
        (folder / "mine").write_text("mine", "utf-8")
    if taken == "here":
        monkeypatch.chdir(folder)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call("init", "log", "." if taken == "here" else str(folder))
    assert (code, out) == (2, "")
    assert "give the name of a new folder" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unknown_template_is_refused(tmp_path: Path) -> None:
    code, _, err = call("init", "gat", str(tmp_path / "mine"))
    assert code == 2
    assert "there is no template 'gat'; did you mean 'gate'?" in err
    assert not (tmp_path / "mine").exists()
    assert STARTERS.is_dir()
