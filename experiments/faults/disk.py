"""A disk that is full: a small file system of its own where one may be mounted, else a limit to the size of files."""

import os
import shutil
import subprocess
from pathlib import Path

from experiments.faults.lab import Bench
from experiments.faults.outcomes import Outcome

_ROOM = "256m"  # once there is room again


def full(bench: Bench) -> Outcome:
    """The disk is full after a random part of what a run writes; then there is room, and the same command goes on."""
    size = sum(file.stat().st_size for file in bench.lab.base.rglob("*") if file.is_file())
    mounted = bench.lab.mounts and mount(bench.folder / "disk", bench, int(bench.rng.uniform(0.01, 1.1) * size))
    if mounted:
        bench.inner = "disk/run"
    running = bench.start()
    if not mounted:
        largest = max(file.stat().st_size for file in bench.lab.base.rglob("*") if file.is_file())
        running.limit_files(int(bench.rng.uniform(0.02, 1.0) * largest))
    done = running.wait()
    bench.note(done, "the command on the full disk")
    if done.code == 0:
        bench.same_figures(bench.out, "the command on the full disk")
    if mounted:
        _mount(bench.folder / "disk", "remount,size=" + _ROOM)
    bench.finish()
    how = "file system" if mounted else "file size limit"
    return bench.outcome("disk full, then room again", f"{how}, {'there was room' if done.code == 0 else 'refused'}")


def mount(folder: Path, bench: Bench, size: int) -> bool:
    """Mount a file system in memory of so many bytes, until the trial ends; False: this is not allowed."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    folder.mkdir()
    if not _mount(folder, f"size={max(size, 4096)}"):
        return False
    bench.stack.callback(_unmount, folder)
    return True


def _mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "skg-faults", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)  # noqa: S603, S607
