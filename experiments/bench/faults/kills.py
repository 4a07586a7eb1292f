"""Processes that are killed with -9: the command itself, and its workers."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from experiments.bench.faults.command import Running
from experiments.bench.faults.lab import ARMS, Bench, turn_shards
from experiments.bench.faults.outcomes import Outcome

PHASES = ("start", "manifest", "simulation", "tables", "page", "tracker")
_EACH = 10  # one in so many runs has a tracker, whose start takes longer than the run
_TRIES = 5  # where the command had ended before the moment came


def parent(bench: Bench) -> Outcome | None:
    """The command is killed at a random moment of its whole life, or soon after a phase has begun; then it goes on.

    None: it had always ended before.
    """
    tracked = bench.trial % _EACH == _EACH - 1 and find_spec("mlflow") is not None
    fault, more = "kill -9 of the command", ["tracker=mlflow"] if tracked else []
    for attempt in range(_TRIES):
        bench.clear()
        running = bench.start(*more)
        if moment(bench, running, attempt, tracked=tracked):
            break
        bench.note(running.wait())
    else:
        return None
    reached = phase(bench)
    running.kill()
    bench.finish(*more)
    if tracked:
        _once(bench)
    return bench.outcome(fault, f"{reached}, mlflow" if tracked else reached)


def moment(bench: Bench, running: Running, attempt: int, *, tracked: bool) -> bool:
    """Wait for the moment; False: the command had ended before."""
    lab, out, rng = bench.lab, bench.out, bench.rng
    life = lab.seconds * 0.8**attempt * (3.0 if tracked else 1.0)
    if bench.trial % 2 == 0 and not tracked:
        return running.until(lambda: False, float(rng.uniform(0, life)))
    whole = turn_shards(lab.base)
    begun: dict[str, Callable[[], bool]] = {
        "start": lambda: True,
        "manifest": lambda: any(out.glob("*manifest.json*")),
        "simulation": lambda: any((out / "turns").glob("*")),
        "tables": lambda: turn_shards(out) >= whole,
        "page": lambda: (out / "summary.json").exists(),
        "tracker": lambda: (out / "report.html").exists(),
    }
    longest = {"start": life / 3, "manifest": 0.02, "simulation": life / 4, "tables": 0.2, "page": 0.2, "tracker": 0.05}
    which = "tracker" if tracked and bench.trial % 4 == 1 else PHASES[bench.trial // 2 % len(PHASES)]
    delay = float(rng.uniform(0, 4.0 if tracked and which == "tracker" else longest[which])) * 0.6**attempt
    return running.until(begun[which], lab.limit) and running.until(lambda: False, delay)


def phase(bench: Bench) -> str:
    """The phase that a run has reached, by what is in its folder."""
    out = bench.out
    if not (out / "manifest.json").exists():
        return "before the manifest"
    if not any((out / "turns").glob("*.parquet")):
        return "between pieces" if any((out / "pieces").glob("*")) else "before the first result"
    if turn_shards(out) < turn_shards(bench.lab.base):
        return "between shards"
    if not all((out / name).exists() for name in ("summary.json", "curves.csv")):
        return "tables"
    return "after the page" if (out / "report.html").exists() else "page"


def _once(bench: Bench) -> None:
    """The tracker has to have the run once, with a run for each arm."""
    runs = tracked_runs(bench.folder / "mlflow.db")
    if runs > 1 + len(ARMS):
        bench.ends.append(("lost", f"the tracker has {runs} runs of it, and there are {1 + len(ARMS)}"))


def tracked_runs(database: Path) -> int:
    """Runs that an MLflow database has."""
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("select count(*) from runs").fetchone()[0])


def worker(bench: Bench) -> Outcome | None:
    """A worker of two is killed, in every other trial after the first result; the command has to end by itself.

    None: no worker could be killed in time.
    """
    for attempt in range(_TRIES):
        bench.clear()
        running = bench.start("workers=2")
        late = bench.trial % 2 == 0 and attempt < _TRIES - 2
        delay = float(bench.rng.uniform(0, bench.lab.seconds / (10 if late else 2))) * 0.6**attempt
        if not (_begun(bench, running, late=late) and running.until(_never, delay)):
            bench.note(running.wait())
            continue
        reached, workers = phase(bench), running.workers()
        if workers and running.kill_worker(int(bench.rng.choice(workers))):
            done = running.wait()
            bench.note(done, "the command whose worker was killed")
            if done.code == 0:
                bench.same_figures(bench.out, "the command whose worker was killed")
            else:
                bench.finish("workers=2")
            return bench.outcome("kill -9 of a worker", reached)
        running.close()
    return None


def _begun(bench: Bench, running: Running, *, late: bool) -> bool:
    """Wait for the first worker, `late` for a result of one too; False: the command had ended before."""
    logs = bench.out / "turns", bench.out / "pieces"
    limit = bench.lab.limit
    return running.until(
        lambda: bool(running.workers()) and (not late or any(any(folder.glob("*")) for folder in logs)), limit
    )


def _never() -> bool:
    return False
