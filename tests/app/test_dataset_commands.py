"""`skg-bench data`: list, get from a publisher or from a copy, and leave nothing behind that is not whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from skg_bench.app import dataset_commands as command
from skg_bench.app.cli import app
from skg_bench.simulator.datasets import Dataset

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["data", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout + done.stderr


@contextmanager
def publisher(files: dict[str, bytes]) -> Iterator[str]:
    """A server that gives out these files; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `get` puts what it gets."""
    monkeypatch.setenv("SKG_BENCH_SHARED", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "skg_bench" / "datasets" / "greeting"


def known(monkeypatch: pytest.MonkeyPatch, address: str, **files: str) -> None:
    dataset = Dataset("greeting", "words", "public domain", "nobody", address, "nothing", files)
    monkeypatch.setattr(command, "datasets", lambda: {"greeting": dataset})


def test_a_dataset_is_fetched_from_its_publisher_and_listed_where_it_lies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publisher({"/hello": b"hello"}) as address:
        known(monkeypatch, address, hello=HELLO)
        assert "greeting: skg-bench data get greeting" in " ".join(call("list")[1].split())
        code, output = call("get", "greeting")
    assert code == 0
    assert "public domain; nobody" in output
    assert (home / "hello").read_bytes() == b"hello"
    assert "no: data get" not in call("list")[1]


@pytest.mark.parametrize("below", ["", "greeting"])
def test_a_dataset_is_taken_from_a_copy(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    known(monkeypatch, "https://example.org/", hello=HELLO)
    (tmp_path / "copy" / below).mkdir(parents=True)
    (tmp_path / "copy" / below / "hello").write_bytes(b"hello")
    assert call("get", "greeting", "--from", str(tmp_path / "copy"))[0] == 0
    assert (home / "hello").read_bytes() == b"hello"


def test_one_file_of_another_checksum_and_none_is_put_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with publisher({"/hello": b"hello", "/again": b"hallo"}) as address:
        known(monkeypatch, address, hello=HELLO, again=HELLO)
        code, output = call("get", "greeting")
    assert code == 2
    assert "/again is not the again of greeting that is known here" in output
    assert not home.exists()


def test_what_cannot_be_had_is_said_with_what_to_do(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publisher({}) as address:
        known(monkeypatch, address, hello=HELLO)
        code, output = call("get", "greeting")
    assert code == 2
    assert "cannot be fetched: Not Found; with a copy of hello: skg-bench data get greeting --from FOLDER" in output
    code, output = call("get", "greeting")  # nobody listens there any more
    assert code == 2
    assert "cannot be fetched: [Errno" in output
    code, output = call("get", "greeting", "--from", str(tmp_path))
    assert code == 2
    assert f"there is neither {tmp_path / 'hello'} nor {tmp_path / 'greeting' / 'hello'}" in output
    code, output = call("get", "greting")
    assert code == 2
    assert "there is no dataset 'greting'; did you mean 'greeting'?" in output
    assert not home.exists()


def test_the_real_manifest_is_listed(home: Path) -> None:
    code, output = call("list")
    assert code == 0
    assert "clinc150" in output
    assert "CC BY 3.0" in output
