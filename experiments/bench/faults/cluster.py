"""A Ray cluster of this machine alone: a head and nodes, which are started for a trial and end with it."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from experiments.bench.faults.lab import Bench

_START = 90.0  # s until a node is there, or until the head has noticed that it is not
_POLL = 0.02  # s
_WATCH = """
import ray, sys, time
ray.init(address=sys.argv[1], log_to_driver=False)
last = 0
while True:
    alive = sum(node["Alive"] for node in ray.nodes())
    if alive != last:
        with open(sys.argv[2], "a") as seen:
            print(time.monotonic(), alive, file=seen)
    last = alive
    time.sleep(0.02)
"""  # a process of its own, as Ray reads the token once


def has_ray() -> bool:
    """Is Ray installed?"""
    return find_spec("ray") is not None


class Cluster:
    """A head without processors, and nodes of one each, which ask for a token."""

    def __init__(self, bench: Bench, nodes: int) -> None:
        self._bench, self._address = bench, f"127.0.0.1:{_free_port()}"
        self._folder = Path(tempfile.mkdtemp(prefix="ray-"))  # of a short name: sockets lie in it
        self._seen = self._folder / "seen"  # moments, and nodes that were alive from then on
        self._seen.touch()
        self._nodes: list[subprocess.Popen[bytes]] = []
        bench.environment = {
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_ADDRESS": self._address,
        }  # fmt: skip
        bench.stack.callback(self.close)
        self._head = self._start(
            "--head", f"--port={self._address.rpartition(':')[2]}", "--num-cpus=0", "--include-dashboard=false",
            f"--temp-dir={self._folder}",
        )  # fmt: skip
        self._watch: subprocess.Popen[bytes] | None = None
        for _ in range(nodes):
            self.join()

    def join(self, *before: str) -> None:
        """A node comes, by a command with these words before it. Raises RuntimeError where it does not."""
        self._nodes.append(self._start(f"--address={self._address}", "--num-cpus=1", before=before))
        self._until(len(self._nodes))

    def kill_node(self, number: int) -> float:
        """Kill all processes of a node with -9; seconds until the head has noticed it."""
        began = time.monotonic()
        _kill(self._nodes.pop(number))
        return self._until(len(self._nodes)) - began

    def kill_head(self) -> None:
        """Kill all processes of the head with -9."""
        _kill(self._head)

    def close(self) -> None:
        """End all processes, and remove the folder."""
        for process in [*self._nodes, self._head, *([self._watch] if self._watch else [])]:
            _kill(process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        return self._process([*command, "--node-ip-address=127.0.0.1", "--object-store-memory=100000000", *words])

    def _process(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603
            command, env={**os.environ, **self._bench.environment}, cwd=self._bench.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _until(self, nodes: int) -> float:
        """Wait until so many nodes are alive beside the head; the moment, by `time.monotonic`."""
        deadline = time.monotonic() + _START
        while time.monotonic() < deadline:
            if self._watch is None or self._watch.poll() is not None:  # the head did not listen yet
                self._watch = self._process([sys.executable, "-c", _WATCH, self._address, str(self._seen)])
            lines = self._seen.read_text("utf-8").splitlines()
            if lines and int(lines[-1].split()[1]) == 1 + nodes:
                return float(lines[-1].split()[0])
            time.sleep(_POLL)
        raise RuntimeError(f"the head at {self._address} does not see {nodes} nodes after {_START:.0f} s")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
