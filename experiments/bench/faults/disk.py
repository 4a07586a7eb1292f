"""A disk that is full: a small file system of its own where one may be mounted, else a limit to the size of files."""

import os
import shutil
import subprocess
from pathlib import Path

from experiments.bench.faults.kills import moment, phase
from experiments.bench.faults.lab import Bench
from experiments.bench.faults.outcomes import Outcome

_ROOM = "256m"  # once there is room again


def full(bench: Bench) -> Outcome:
    """The disk is full after a random number of bytes or, every other time, from a moment in some phase of the run on;
    then there is room, and the same command goes on.
    """
    late, disk = bench.trial % 2 == 1, bench.folder / "disk"
    size = sum(file.stat().st_size for file in bench.lab.base.rglob("*") if file.is_file())
    room = _ROOM if late else str(max(int(bench.rng.uniform(0.01, 2.5) * size), 4096))
    mounted = bench.lab.mounts and mount(disk, bench, room)
    if mounted:
        bench.inner = "disk/run"
    running = bench.start()
    if mounted and late and moment(bench, running, 0, tracked=False):
        _fill(disk)
    if not mounted:
        largest = max(file.stat().st_size for file in bench.lab.base.rglob("*") if file.is_file())
        running.limit_files(int(bench.rng.uniform(0.02, 1.0) * largest))
    done = running.wait()
    bench.note(done, "the command on the full disk")
    if done.code == 0:
        bench.same_figures(bench.out, "the command on the full disk")
    reached = "there was room" if done.code == 0 else phase(bench)
    if mounted:
        _mount(disk, "remount,size=" + _ROOM)
    bench.finish()
    how = "file system" if mounted else "file size limit"
    return bench.outcome("disk full, then room again", f"{how}, {reached}")


def _fill(disk: Path) -> None:
    """Leave no room. What is written at the same moment may need some, so that it takes several tries."""
    for _ in range(50):
        state = os.statvfs(disk)
        if _mount(disk, f"remount,size={(state.f_blocks - state.f_bfree) * state.f_frsize}"):
            return


def mount(folder: Path, bench: Bench, size: str) -> bool:
    """Mount a file system in memory of so many bytes, until the trial ends; False: this is not allowed."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    folder.mkdir()
    if not _mount(folder, f"size={size}"):
        return False
    bench.stack.callback(_unmount, folder)
    return True


def _mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "skg-faults", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)  # noqa: S603, S607
