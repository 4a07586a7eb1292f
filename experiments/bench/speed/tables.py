"""Tables and pages of a large run: processor time and memory of each command that reads all of its turns.

The run is one that is there already, of two arms or more; its tables and its page are made again, as at the end of a
run. Each command has a process of its own. The marks are those of `compare` at 20 million turns of all arms.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import DEVNULL, Popen

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError

MARK_TURNS = 20_000_000  # of all arms
MARK_CPU, MARK_MEMORY = 10.0, 1.0  # of `compare` of so many turns: seconds, GiB
_GIB = 2.0**30
_MADE_AGAIN = """import sys
from pathlib import Path
from skg_bench.app.launch import write_outputs
write_outputs(Path(sys.argv[1]))
"""
COMMAND = "skg-bench experiment speed/tables {run} --write reports"
HEADINGS = ("command", "CPU time", "time", "largest memory")


@dataclass(frozen=True)
class Taken:
    """Needs of a process."""

    cpu: float  # seconds
    seconds: float
    memory: float  # most that it held, GiB


def taken(words: Sequence[str]) -> Taken:
    """Needs of a Python process with these arguments.

    Raises SystemExit if it fails.
    """
    command = [sys.executable, *words]
    begun = time.perf_counter()
    process = Popen(command, stdout=DEVNULL)  # noqa: S603  our own command
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Taken(used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss * 1024.0 / _GIB)


def analyse(run: OneRun) -> Report:
    """As expected if `compare` takes 10 s of CPU time and 1 GiB at most for 20 million turns of all arms."""
    if not run.finished or len(run.arms) < 2:
        raise UsageError(f"{run.path} is not a finished run of two arms or more; give one that is")
    turns, folder = sum(run.rows().values()) * len(run.arms), str(run.path)
    last = max(users.stop for users in run.rows()) - 1
    commands = {
        "tables and page at the end of a run": ["-c", _MADE_AGAIN, folder],
        "compare": ["-m", "skg_bench", "compare", folder],
        "report": ["-m", "skg_bench", "report", folder],
        f"report --user {last}": ["-m", "skg_bench", "report", folder, "--user", str(last)],
    }
    took = {name: taken(words) for name, words in commands.items()}
    size = (run.path / "report.html").stat().st_size
    rows = [
        (name, f"{need.cpu:.1f} s", f"{need.seconds:.1f} s", f"{need.memory:.2f} GiB") for name, need in took.items()
    ]
    about = f"{run.manifest['users']:,} users x {run.manifest['weeks']} weeks, {turns:,} turns of {len(run.arms)} arms"
    share, of_compare = turns / MARK_TURNS, took["compare"]
    note = (
        f"For {MARK_TURNS:,} turns `compare` is to take {MARK_CPU:g} s of CPU time and {MARK_MEMORY:g} GiB at most: "
        f"here {of_compare.cpu / share / MARK_CPU:.2f}x and {of_compare.memory / MARK_MEMORY:.2f}x of that. The page "
        f"has {size / 1e6:.1f} MB. {os.getloadavg()[0]:.0f} processes of all users wanted a core on {os.cpu_count()} "
        "cores in the last minute: a core that others share takes longer for the same work, also in CPU time."
    )
    parts: list[Table | str] = [Table(about, HEADINGS, rows), note]
    holds = of_compare.cpu <= MARK_CPU * share and of_compare.memory <= MARK_MEMORY
    return Report(parts, page("Tables of a large run", COMMAND.format(run=folder), *parts), holds=holds)


EXPERIMENT = Experiment(analyse, one_thread=True)
