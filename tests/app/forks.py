"""A process that plays commands of checkouts, each in a fork of itself: what others wrote is imported once for all,
which takes half of the CPU time of a small command, and skg_bench anew for each, from the checkout.
"""

import json
import os
import runpy
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LIBRARIES = (
    "cloudpickle", "hydra.compose", "numpy", "omegaconf", "pandas", "pyarrow.compute", "pyarrow.parquet",
    "pydantic.fields", "pydantic.types", "rich.live", "rich.progress", "rich.table", "scipy.special",
    "typer.core", "unittest.mock", "yaml",
)  # fmt: skip
CLIENT = """import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps([os.getcwd(), dict(os.environ), sys.argv[2:]]).encode() + b"\\n")
    sys.exit(server.recv(1)[0])
"""
PROGRAM = """import sys
import skg_bench
from skg_bench.app.cli import main
from tests.runs import logs_alone
if sys.argv[1] != "run":
    main()
with logs_alone():
    skg_bench.run(sys.argv[2:], progress=False)
"""  # the command line; its runs end without tables and page


@contextmanager
def forks(folder: Path) -> Iterator[str]:
    """Shell words that stand for a Python in front of CHECKOUT PROGRAM WORDS, while that process lasts. Its socket lies
    in the folder.
    """
    client, place = folder / "client.py", folder / "socket"
    client.write_text(CLIENT)
    with subprocess.Popen([sys.executable, "-P", __file__, str(place)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.read(1) == b"."
        yield f"{sys.executable} -IS {client} {place}"
        with socket.socket(socket.AF_UNIX) as goodbye:
            goodbye.connect(str(place))


def serve(place: str) -> None:
    """Commands one after another, until somebody comes without one."""
    for name in LIBRARIES:
        __import__(name)
    assert "skg_bench" not in sys.modules
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        os.write(1, b".")
        while _answered(door):
            pass


def _answered(door: socket.socket) -> bool:
    connection, _ = door.accept()
    with connection, connection.makefile() as lines:
        word, streams, *_ = socket.recv_fds(connection, 1, 3)
        if not word:
            return False
        command = json.loads(lines.readline())
        if not (child := os.fork()):
            _play(streams, *command)
        for stream in streams:
            os.close(stream)
        connection.sendall(bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255]))
    return True


def _play(streams: Sequence[int], folder: str, environment: dict[str, str], words: Sequence[str]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.fsync = lambda fd: None
    checkout, *sys.argv = words
    sys.path.insert(0, checkout)
    code: object = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  as Python ends
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    serve(sys.argv[1])
