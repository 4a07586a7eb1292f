"""The start of a large run: `python -m experiments.speed.population`. It ends when the first shard is written.

The mark: the process that hands out the tasks holds less than 1 GiB, however many users there are.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start

MARK = 1.0  # GiB


@dataclass(frozen=True)
class Start:
    """What a run needed up to its first shard; times are seconds from the first line of the program."""

    turns: int  # of all arms
    counted: float  # the number of turns is known
    first_turns: float  # workers report turns
    first_shard: float
    memory: float  # most that the driver held, GiB


class _EnoughError(Exception):
    """The first shard is there."""


def measured(overrides: list[str], begun: float) -> Start:
    """Start a run with these overrides in a folder that is then deleted."""
    total, seconds = 0, dict[str, float]()

    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"

        def progress(done: int, turns: int) -> None:
            nonlocal total
            total, now = turns, time.perf_counter() - begun
            seconds.setdefault("counted", now)
            if done:
                seconds.setdefault("first_turns", now)
            if any(out.glob("turns/*.parquet")):
                seconds["first_shard"] = now
                raise _EnoughError

        try:
            start(prepare(compose([*overrides, f"out={out}"])), progress)
        except _EnoughError:
            return Start(total, seconds["counted"], seconds["first_turns"], seconds["first_shard"], _most())
    raise SystemExit("the run ended before its first shard was seen; give it more users")


def _most() -> float:
    """Peak resident memory of this process, GiB (Linux)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return int(status["VmHWM"].split()[0]) / 2**20


def main() -> None:
    """Print the figures."""
    begun = time.perf_counter()
    parser = argparse.ArgumentParser(prog="python -m experiments.speed.population", description=__doc__)
    parser.add_argument("overrides", nargs="*", help="such as users=10000 weeks=4")
    overrides = ["users=200000", "weeks=26", "workers=2", *parser.parse_args().overrides]
    result = measured(overrides, begun)
    print(
        f"{' '.join(overrides)}: {result.turns:,} turns\n"
        f"  counted after {result.counted:.1f} s, first turns after {result.first_turns:.1f} s, first shard after "
        f"{result.first_shard:.1f} s\n"
        f"  driver at most {result.memory:.2f} GiB (mark {MARK:.2f}: {result.memory / MARK:.2f}x)"
    )


if __name__ == "__main__":
    # one BLAS thread, as in the workers: set before numpy's first product
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, "-m", "experiments.speed.population", *sys.argv[1:]])  # noqa: S606
    main()
