"""What is asked twice is embedded once, by any number of processes, whatever became of the file."""

import logging
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I64
from skg_bench.embedder import cache
from tests.work import calls_in

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 384

MODEL = """
import sys, time
import numpy as np
from skg_bench.embedder import cache
from tests.work import calls_in

def embed(texts):
    time.sleep(0.02)
    with open(sys.argv[1], "a") as asked:
        asked.writelines(f"{text}\\n" for text in texts)
    return np.array([[int(text.split()[1])] * 384 for text in texts], np.int16)

texts = [f"text {i}" for i in range(int(sys.argv[2]), int(sys.argv[3]))]
"""


class Model:
    """Text `text 7` to a vector of sevens; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> I16:
        self.asked += texts
        return meant(np.array([int(text.split()[1]) for text in texts]))


def meant(numbers: I64) -> I16:
    """The vectors of the texts of these numbers."""
    return np.repeat(numbers.astype(np.int16)[:, None], WIDTH, axis=1)


def texts(numbers: I64 | range) -> list[str]:
    return [f"text {i}" for i in numbers]


def process(code: str, *arguments: object) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-c", MODEL + code, *map(str, arguments)]
    return subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE)


def filled(n: int) -> Path:
    """The file of model `m` with `n` texts in it."""
    cache.through("m", texts(range(n)), Model())
    return cache.file("m")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_asked_twice_is_embedded_once_and_comes_in_the_order_asked() -> None:
    model, numbers = Model(), np.random.default_rng(0).integers(0, 900, 2000)
    vectors = cache.through("m", texts(numbers), model)
    assert vectors.dtype == np.int16
    assert np.array_equal(vectors, meant(numbers))
    assert sorted(model.asked) == sorted(set(texts(numbers)))
    again = np.random.default_rng(1).permutation(numbers)[:700]
    assert np.array_equal(cache.through("m", texts(again), model), meant(again))
    assert len(model.asked) == len(set(numbers.tolist()))


def test_models_do_not_share_vectors() -> None:
    first, other = Model(), Model()
    for digest, model in (("one 1", first), ("one 2", other)):
        cache.through(digest, ["text 3"], model)
    assert first.asked == other.asked == ["text 3"]


def test_progress_counts_the_texts_that_were_not_there() -> None:
    filled(100)
    counts: list[tuple[int, int]] = []
    cache.through("m", texts(range(700)), Model(), lambda done, total: counts.append((done, total)))
    assert counts[0] == (0, 600)
    assert counts[-1] == (600, 600)
    assert sorted(counts) == counts
    counts.clear()
    cache.through("m", texts(range(700)), Model(), lambda done, total: counts.append((done, total)))
    assert counts == []


def test_vectors_that_a_model_refuses_to_give_leave_nothing_behind() -> None:
    def refuse(_: Sequence[str]) -> I16:
        raise UsageError("nonsense")

    with pytest.raises(UsageError, match="nonsense"):
        cache.through("m", ["text 1"], refuse)
    model = Model()
    assert np.array_equal(cache.through("m", ["text 1"], model), meant(np.array([1])))


def test_two_processes_at_once_embed_each_text_once(tmp_path: Path) -> None:
    code = "assert (cache.through('m', texts, embed)[:, 0] == range(int(sys.argv[2]), int(sys.argv[3]))).all()"
    log = tmp_path / "asked"
    pair = [process(code, log, first, first + 1800) for first in (0, 200)]
    assert [worker.communicate(timeout=100)[1] for worker in pair] == [b"", b""]
    assert [worker.returncode for worker in pair] == [0, 0]
    lines = log.read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 2000
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(2000)), model), meant(np.arange(2000)))
    assert model.asked == []


def test_a_killed_process_loses_no_more_than_a_block(tmp_path: Path) -> None:
    code = "import os, signal\ndef die(done, total):\n    if done >= 1000: os.kill(os.getpid(), signal.SIGKILL)\n"
    killed = process(code + "cache.through('m', texts, embed, die)", tmp_path / "asked", 0, 2000)
    killed.communicate(timeout=100)
    assert killed.returncode == -signal.SIGKILL
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(2000)), model), meant(np.arange(2000)))
    assert 0 < len(model.asked) <= 2000 - 1000


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.999])
def test_a_torn_file_is_made_again_and_said_so(share: float, caplog: pytest.LogCaptureFixture) -> None:
    file = filled(600)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(600)), model), meant(np.arange(600)))
    assert model.asked
    assert bool(warnings(caplog)) == (share > 0)  # an empty file is an empty cache
    model.asked.clear()
    cache.through("m", texts(range(600)), model)
    assert model.asked == []


def test_a_changed_byte_anywhere_changes_no_vector() -> None:
    file = filled(600)
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for position in [*rng.integers(0, 8192, 40), *rng.integers(0, len(whole), 40)]:
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        assert np.array_equal(cache.through("m", texts(range(600)), Model()), meant(np.arange(600))), position


def test_a_pickle_in_the_place_of_the_file_is_not_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Planted:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "loaded",)

    file = filled(10)
    file.write_bytes(pickle.dumps(Planted()) * 100)
    assert np.array_equal(cache.through("m", texts(range(10)), Model()), meant(np.arange(10)))
    assert not (tmp_path / "loaded").exists()
    assert "is damaged (file is not a database)" in warnings(caplog)[0]


def test_a_damaged_block_is_counted_and_only_its_texts_are_embedded_again(caplog: pytest.LogCaptureFixture) -> None:
    file = filled(600)
    with sqlite3.connect(file) as open_:
        open_.execute("UPDATE block SET vectors = zeroblob(length(vectors)) WHERE id = 2")
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(600)), model), meant(np.arange(600)))
    assert len(model.asked) == 256
    assert warnings(caplog) == [f"256 vectors in {file} are damaged: they are made again"]


def test_where_no_cache_can_be_made_the_run_goes_on_and_says_what_it_costs(
    own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own_cache.parent.mkdir()
    own_cache.write_text("a file where the folder should be", "utf-8")
    assert np.array_equal(cache.through("m", texts(range(300)), Model()), meant(np.arange(300)))
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].startswith(f"300 vectors could not be kept in {cache.file('m')} (")
    cache.keep_bytes(own_cache / "models" / "one.onnx", b"model")
    assert "one.onnx could not be kept" in warnings(caplog)[1]


def test_a_read_only_cache_is_read_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    filled(300)
    connect: Any = sqlite3.connect

    def read_only(file: Path, **options: Any) -> Any:
        return connect(f"file:{file}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(350)), model), meant(np.arange(350)))
    assert sorted(model.asked) == sorted(texts(range(300, 350)))
    (warning,) = warnings(caplog)
    assert warning.startswith("50 vectors could not be kept")
    assert "readonly" in warning


def test_a_full_disk_costs_the_vectors_that_did_not_fit(tmp_path: Path) -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))  # no file may grow beyond that, as on a full disk
assert (cache.through('m', texts, embed)[:, 0] == range(2000)).all()
"""
    full = process(code, tmp_path / "asked", 0, 2000)
    errors = full.communicate(timeout=100)[1].decode()
    assert full.returncode == 0, errors
    assert "vectors could not be kept in" in errors
    assert len(errors.splitlines()) == 1
    model = Model()
    assert np.array_equal(cache.through("m", texts(range(2000)), model), meant(np.arange(2000)))
    assert 0 < len(model.asked) < 2000


def test_a_process_that_hangs_with_the_cache_in_hand_is_not_waited_for_forever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache, "_PATIENCE", 0.05)
    hanging = sqlite3.connect(filled(10), isolation_level=None)
    hanging.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(cache, "_WAIT", 0.01)
    assert np.array_equal(cache.through("m", texts(range(20)), Model()), meant(np.arange(20)))
    assert "10 vectors could not be kept" in warnings(caplog)[0]
    hanging.close()


def test_ten_thousand_vectors_are_loaded_with_four_calls_each() -> None:
    messages = texts(range(10_000))
    filled(10_000)
    assert calls_in(lambda: cache.through("m", messages, Model())) < 4.2 * len(messages)  # 20 to 50 ms


def test_the_cache_is_of_one_user_and_holds_no_text(own_cache: Path) -> None:
    file = filled(300)
    assert file.is_relative_to(own_cache)
    assert file.parent.stat().st_mode & 0o077 == 0
    assert b"text" not in file.read_bytes().replace(b"texts", b"")
