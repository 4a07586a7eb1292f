"""Modules of the current folder: twelve files that have the names of modules, of which no command runs any (R2)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import skg_bench
from tests.app.test_cli import ROOT
from tests.tracker.databases import put_new

SHADOWS = (
    "multiprocessing", "json", "numpy", "random", "logging", "typing", "pickle", "queue", "mlflow", "httpx", "yaml",
    "hydra",
)  # fmt: skip
SMALL = "users=2 weeks=1 profile=smoke arms={skg:[],never:[policy=never]} simulator.messages_per_day=3"
# each command once, of which those that start processes do so
COMMANDS = (
    f"run {SMALL} workers=2 tracker=opik out=two",
    f"run {SMALL} workers=1 out=one",
    "export opik two",
    "export mlflow two",  # in a process that starts as one beside a run does
    "report one two",
    "compare two",
    "gate --baseline missing.json two",
    "estimate missing.csv --policy a=1",
    "plan missing --arm skg",
    "probe assistant=python assistant.target=json.JSONDecoder",
    "list",
    "init log fresh",
    "skills runs/none",
    "data label runs/none",
    "forget runs/none --user nobody",
    "runs .",
    "claims --make --dry-run locking",  # which reads the files of claims; the table composes 13 runs, in 13 s
    "experiment grid --help",
    "data check log.csv",
    "data list",
    "data import log.csv --out imported",
    "data get nothing",
    "counterexample find two --arm skg",
    "counterexample replay missing.json",
    "skillbook show missing.json",
    "skillbook diff missing.json missing.json",
    "skillbook apply missing.json missing.json",
    "skillbook convert missing.json other.json",
    "skillbook replay missing.json",
    "skillbook push missing.json",
    "skillbook pull missing.json",
)
SCRIPT = """
import sys
from skg_bench.app.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        print("exit", end.code, line, flush=True)
    except BaseException as error:
        print("exit", repr(error), line, flush=True)
"""


@pytest.fixture
def shadowed(tmp_path: Path) -> Path:
    """A folder with such files, each of which writes its name into `hit`."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'hit')!r}, 'a').write('{name} ')\n")
    rows = "".join(f"anna,2026-01-0{day}T10:00:00,what is the time\n" for day in range(1, 10))
    (folder / "log.csv").write_text(f"user,time,message\n{rows}")
    return folder


def python(folder: Path, *words: str, given: str = "") -> str:
    """What Python prints, which is started in `folder` as a person does."""
    unsafe = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=unsafe, input=given, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_no_command_runs_a_module_of_the_current_folder(shadowed: Path, once: Callable[..., Path]) -> None:
    hit, script = shadowed.parent / "hit", shadowed.parent / "bin" / "skg-bench"
    script.parent.mkdir()
    put_new(once, shadowed / "mlflow.db")
    script.write_text(SCRIPT)  # as a console script, whose folder is another one
    python(shadowed, "-c", "import queue")
    assert hit.read_text() == "queue "  # so this would be seen
    hit.unlink()
    out = python(shadowed, str(script), given="\n".join(COMMANDS))
    assert not hit.exists(), hit.read_text() + out
    codes = {line.split(maxsplit=2)[2]: line.split()[1] for line in out.splitlines() if line.startswith("exit ")}
    assert len(codes) == len(COMMANDS), out
    assert {codes[words] for words in COMMANDS[:2]} == {"0"}, out
    assert set(codes.values()) <= {"0", "1", "2", "3"}, out
    assert "mlflow: " in out
    assert "opik: " in out
    assert "workers in a row died" not in out


def test_python_m_runs_none_either(shadowed: Path) -> None:
    assert f"skg-bench {skg_bench.__version__}" in python(shadowed, "-m", "skg_bench", "--version")
    assert "seam" in python(shadowed, "-m", "skg_bench", "list")
    assert not (shadowed.parent / "hit").exists()


def test_each_command_is_tried() -> None:
    from skg_bench.app.cli import app

    def names(group: object) -> set[str]:
        own = {str(each.name or each.callback.__name__.rstrip("_")) for each in group.registered_commands}  # type: ignore[attr-defined]
        for inner in group.registered_groups:  # type: ignore[attr-defined]
            own |= {f"{inner.name or inner.typer_instance.info.name} {name}" for name in names(inner.typer_instance)}
        return own

    assert {name for name in names(app) if not any(f"{words} ".startswith(f"{name} ") for words in COMMANDS)} == set()
    assert (ROOT / "skg_bench" / "__main__.py").exists()


def test_only_one_module_starts_processes() -> None:
    """All others go through it, so that what they start is clean."""
    starters = {"core/processes.py", "launcher/local.py", "app/run_trackers.py"}  # those two by `processes.starting`
    starters |= {
        "assistant/endpoint/served_system.py",
        "asking/supervisor.py",
        "curator/shared/peer_process.py",
    }  # by path, and the system itself
    for file in (ROOT / "skg_bench").rglob("*.py"):
        text, name = file.read_text("utf-8"), file.relative_to(ROOT / "skg_bench").as_posix()
        started = any(
            word in text for word in (".Process(", "Popen(", "os.fork(", "ProcessPoolExecutor", "posix_spawn")
        )
        assert not started or name in starters, name
        if started and name != "core/processes.py":
            assert text.count(".Process(") == text.count("processes.starting("), name
