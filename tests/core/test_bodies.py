"""Bodies of servers: whatever comes, no more than the limit is held, and the address is named (R4)."""

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from skg_bench.app import run_trackers
from skg_bench.core import bodies
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.tracker.opik import Opik
from tests.foreign.test_special import within
from tests.llm.asks import endpoint, free

GIGABYTE = gzip.compress(bytes(2**24), 1) * 64  # so many members
TWICE = gzip.compress(gzip.compress(bytes(2**24), 9), 9)
OPEN = b"Transfer-Encoding: chunked\r\n\r\n"
Body = Callable[[], Iterator[bytes]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def endless(data: bytes, head: bytes = b"") -> Body:
    def parts() -> Iterator[bytes]:
        yield head + OPEN
        while True:
            yield chunk(data)

    return parts


def packed(data: bytes, how: bytes) -> Body:
    return lambda: iter([b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (how, len(data)), data])


ONE = zlib.compressobj(1, wbits=31)
BODIES: dict[str, tuple[Body, str]] = {
    "never ends": (endless(b"x" * 2**16), "answers with more than 8,388,608 bytes"),
    "ends late": (lambda: iter([b"Content-Length: 9000000\r\n\r\n", bytes(9_000_000)]), "more than 8,388,608 bytes"),
    "gzip bomb": (packed(GIGABYTE, b"gzip"), "more than 8,388,608 bytes"),
    "gzip without an end": (
        endless(ONE.compress(bytes(2**24)) + ONE.flush(zlib.Z_SYNC_FLUSH), b"Content-Encoding: gzip\r\n"),
        "more than 8,388,608 bytes",
    ),
    "gzip, and then nothing that ends": (
        lambda: iter([b"Content-Encoding: gzip\r\n" + OPEN, chunk(gzip.compress(b"{}")), *[chunk(bytes(2**20))] * 9]),
        "more than 8,388,608 bytes",
    ),
    "packed twice": (packed(TWICE, b"gzip, gzip"), "compresses its answer as 'gzip, gzip'; valid is gzip"),
    "packed as brotli": (packed(b"\x1b", b"br"), "compresses its answer as 'br'; valid is gzip, or no compression"),
    "no gzip": (packed(b"{}", b"gzip"), "sent gzip that is damaged"),
}


@contextmanager
def talking(body: Body, status: bytes = b"200 OK") -> Iterator[str]:
    """Address of a server that answers everybody with these bytes, until its client has enough."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(20)
            connection.recv(2**16)
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\n")
            for part in body():
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(2**16):  # what was sent and not read would end the connection at once
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


@pytest.mark.parametrize("kind", BODIES)
def test_a_model_server_that_says_too_much_is_an_error_that_names_it(kind: str) -> None:
    body, says = BODIES[kind]
    with (
        talking(body) as address,
        within(kind),
        pytest.raises(UsageError, match=f"^{address}/v1 .*{says}"),
    ):
        endpoint(f"{address}/v1", tries=1).complete([free()])


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("status", [b"200 OK", b"500 Oh No"])
def test_an_opik_that_says_too_much_is_said(kind: str, status: bytes, opiks: Run) -> None:
    body, says = BODIES[kind]
    with talking(body, status) as address, within(kind):
        line, complete = run_trackers.deliver(Opik(f"{address}/api", 1, None), opiks)
    assert not complete
    assert f"{address}/api/v1/private/ " in line
    assert says in line


@pytest.fixture(scope="module")
def opiks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    import skg_bench

    few = ("workers=1", "users=1", "weeks=1", "arms={skg: [], never: [policy=never]}")
    return skg_bench.run([*few, f"out={tmp_path_factory.mktemp('runs') / 'few'}"])


def test_what_a_server_packs_as_it_may_is_read(tmp_path: Path) -> None:
    text = b'{"says": "' + b"tea " * 500_000 + b'"}'
    for how in (b"gzip", b"identity", b"X-GZIP"):
        data = text if how == b"identity" else gzip.compress(text)
        with talking(packed(data, how), b"404 Not Found") as address, httpx.stream("GET", address) as response:
            whole = bodies.received(response, address)
        assert (whole.status_code, whole.content) == (404, text)
        assert whole.json()["says"].startswith("tea ")
        assert str(whole.url) == address
