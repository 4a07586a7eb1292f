"""Commands that read a finished run, killed with -9 and given again; a run with a recording; locks of wrong clocks."""

import json
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from experiments.bench.faults.command import Done
from experiments.bench.faults.kills import tracked_runs
from experiments.bench.faults.lab import ARMS, Bench, Lab, digests
from experiments.bench.faults.outcomes import Outcome
from skg_bench.analysis.gate import baseline as baselines
from skg_bench.analysis.gate.baseline import BUDGET, Baseline
from skg_bench.analysis.gate.panel import panel
from skg_bench.analysis.gate.rules import RULES
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

READERS = ("compare", "report", "gate", "export")  # rows, by the command that is killed
RECORDED = (  # a model that learns, behind a recording; two shards of each arm
    "run", "experiment=learning_with_a_model", "profile=smoke", "users=300", "weeks=1",
    "simulator.messages_per_day=1", "cohort=150", "contrasts=[]", "curator.llm=recorded", "curator.llm.llm=scripted",
    "arms={model: [], never: [policy=never, curator=none]}",
)  # fmt: skip
_TRIES = 5  # where the command had ended before the moment came
_YEAR = 365 * 86_400.0  # s


@dataclass(frozen=True)
class _Undisturbed:
    """A command that nothing hit."""

    done: Done
    seconds: float


@dataclass(frozen=True)
class _Recorded:
    """The run with a recording that nothing hit."""

    bytes: dict[str, str]  # digests
    seconds: float


def killed(bench: Bench) -> Outcome | None:
    """`compare`, `report`, `gate` or `export` of a finished run is killed at a random moment and given again: it has to
    end as it does undisturbed, and the run has to be as it was.

    None: it had always ended before, or MLflow is not there.
    """
    if bench.row == "export" and find_spec("mlflow") is None:
        return None
    expected = _undisturbed(bench)
    for attempt in range(_TRIES):
        bench.clear()
        shutil.copytree(bench.lab.base, bench.out)
        running = bench.lab.start(_words(bench), bench.folder)
        bench.stack.callback(running.close)
        if running.until(lambda: False, float(bench.rng.uniform(0, expected.seconds)) * 0.8**attempt):
            break
        bench.note(running.wait())
    else:
        return None
    running.kill()
    running.close()
    again = bench.lab.start(_words(bench), bench.folder)
    bench.stack.callback(again.close)
    done = again.wait()
    if done.code is None:
        bench.note(done, "the same command")
    elif (done.code, _told(bench, done)) != (expected.done.code, expected.done.out):
        bench.ends.append(("lost", f"{bench.row} ended with code {done.code} and tells something else: {done.out}"))
    if bench.row == "export" and (runs := tracked_runs(bench.folder / "mlflow.db")) != 1 + len(ARMS):
        bench.ends.append(("lost", f"the tracker has {runs} runs of it, and there are {1 + len(ARMS)}"))
    checked = bench.reader.command(["run", "--check", str(bench.out)])
    if checked.code != 0:
        bench.ends.append(("lost", f"run --check, exit code {checked.code}: {checked.out}{checked.err}"))
    bench.same_figures(bench.out, "the same command")
    return bench.outcome(f"kill -9 of {bench.row}", "at a random moment")


def _words(bench: Bench) -> list[str]:
    out = str(bench.out)
    if bench.row == "gate":
        return ["gate", "--unproven", "--baseline", str(_baseline(bench.lab)), out]  # the arm is no product
    return ["export", "mlflow", out] if bench.row == "export" else [bench.row, out]


def _undisturbed(bench: Bench) -> _Undisturbed:
    """The command on an untouched copy, once for all trials of a row."""
    home = bench.lab.home / f"undisturbed-{bench.row}"
    with bench.lab.once(bench.row):
        if bench.row not in bench.lab.known:
            alone = Bench(bench.lab, bench.reader, bench.row, bench.trial, home, bench.stack)
            shutil.copytree(bench.lab.base, alone.out)
            running = bench.lab.start(_words(alone), home)
            try:
                done = running.wait()
                seconds = running.seconds
            finally:
                running.close()
            result = Done(done.code, _told(alone, done), done.err)
            bench.lab.known[bench.row] = _Undisturbed(result, seconds)
    known = bench.lab.known[bench.row]
    assert isinstance(known, _Undisturbed)  # noqa: S101
    return known


def _told(bench: Bench, done: Done) -> str:
    """Standard output without the folder. What an export says to be new is another number the second time."""
    return "" if bench.row == "export" else done.out.replace(str(bench.folder), "FOLDER")


def _baseline(lab: Lab) -> Path:
    """A baseline of the undisturbed run."""
    file = lab.home / "baseline.json"
    if not file.exists():
        made = panel(Run(lab.base), "learns")
        file.write_text(baselines.baseline_text(Baseline(made, made, RULES, BUDGET)), "utf-8")
    return file


def recorded(bench: Bench) -> Outcome | None:
    """A run whose curator asks a model through a recording is killed at a random moment, and goes on with what was
    recorded: its logs have to be those of the undisturbed one.

    None: it had always ended before.
    """
    expected = _recorded(bench)
    for attempt in range(_TRIES):
        bench.clear()
        running = bench.lab.start([*RECORDED, f"out={bench.out}"], bench.folder)
        bench.stack.callback(running.close)
        if running.until(lambda: False, float(bench.rng.uniform(0, expected.seconds)) * 0.8**attempt):
            break
        bench.note(running.wait())
    else:
        return None
    running.kill()
    running.close()
    recorded = sum(file.stat().st_size for file in bench.out.glob("asked/*")) if bench.out.exists() else 0
    again = bench.lab.start([*RECORDED, f"out={bench.out}"], bench.folder)
    bench.stack.callback(again.close)
    done = again.wait()
    bench.note(done, "the same command")
    if done.code == 0 and (made := digests(bench.out)) != expected.bytes:
        changed = sorted({name for name, _ in set(made.items()) ^ set(expected.bytes.items())})
        bench.ends.append(("lost", f"the run with a recording differs in {', '.join(changed[:4])}"))
    elif done.code not in (0, None):
        bench.ends.append(("refused", f"exit code {done.code}: {done.message}"))
    return bench.outcome("kill -9 of a run with a recorded model", "answers recorded" if recorded else "none recorded")


def _recorded(bench: Bench) -> _Recorded:
    """Digests and seconds of the undisturbed run with a recording."""
    with bench.lab.once("recorded"):
        if "recorded" not in bench.lab.known:
            home = bench.lab.home / "undisturbed-recorded"
            running = bench.lab.start([*RECORDED, f"out={home / 'run'}"], home)
            try:
                done = running.wait()
                if done.code != 0:
                    raise UsageError(f"the undisturbed run with a recording failed: {done.message}")
                bench.lab.known["recorded"] = _Recorded(digests(home / "run"), running.seconds)
            finally:
                running.close()
    known = bench.lab.known["recorded"]
    assert isinstance(known, _Recorded)  # noqa: S101
    return known


def locks(bench: Bench) -> Outcome:
    """A lock of another machine, whose clock is up to a year off, lies in a finished or an unfinished run: nobody
    touches it, so the command goes on at once, or says when it will.
    """
    finished, ahead = bench.trial % 2 == 0, bench.trial // 2 % 2 == 0
    shutil.copytree(bench.lab.base if finished else bench.lab.unfinished(bench.trial // 4), bench.out)
    if finished:
        (bench.out / "summary.json").unlink()
    seconds = float(bench.rng.uniform(180.0, _YEAR)) * (1 if ahead else -1)
    scope = str(bench.rng.choice(["run", "tables", "part-0-of-3"]))
    file = bench.out / f".lock.{scope}.elsewhere.4711.{int(bench.rng.integers(2**32)):08x}"
    owner = {"host": "elsewhere", "process": 4711, "start": "1", "machine": "another boot 1", "since": "2030-01-01"}
    file.write_text("{" if bench.trial % 5 == 0 else json.dumps(owner) + "\n", "utf-8")
    now = file.stat().st_mtime
    os.utime(file, (now + seconds, now + seconds))
    bench.finish(real=bench.trial % 5 == 0)
    return bench.outcome("a lock of another machine, its clock up to a year off", "ahead" if ahead else "behind")
