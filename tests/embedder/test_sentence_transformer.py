"""Models that torch runs: what is missing, torn or not trusted is said at once; nothing is fetched, no code is run."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
import yaml

from skg_bench.app.building import build
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.embedder import packaged, sentence_transformer
from skg_bench.embedder.minilm import MiniLM
from skg_bench.embedder.sentence_transformer import SentenceTransformer
from tests.embedder.test_minilm import mixed, sample

OWN = SentenceTransformer(packaged.PACKAGED, None, None, None, None, "cpu", trust_remote_code=False)
CODE = """
from pathlib import Path
Path({ran!r}).touch()
from transformers import BertConfig as Config, BertModel as Model
from sentence_transformers.sentence_transformer import modules

class Transformer(modules.Transformer):
    forward_kwargs = {{"task"}}

    def forward(self, features, task=None, **options):
        Path({ran!r}).write_text(str(task))
        return super().forward(features, **options)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights and 8 dimensions, in a folder."""
    library = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    transformers = pytest.importorskip("transformers")
    import torch

    folder = tmp_path_factory.mktemp("model")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words), "utf-8")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(config).save_pretrained(folder / "bert")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = modules.Transformer(str(folder / "bert"), max_seq_length=64)
    pooling = modules.Pooling(transformer.get_embedding_dimension())
    library.SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder / "whole"))
    return folder / "whole"


@pytest.mark.usefixtures("offline")
@pytest.mark.req("K04", "K05")
def test_the_paper_s_model_is_ready_and_one_of_its_kind_gives_1024_dimensions(made: Path, tmp_path: Path) -> None:
    node = yaml.safe_load((CONF / "embedder" / "jina.yaml").read_text("utf-8"))
    jina: SentenceTransformer = build("embedder", node, COMMAND_LINE)
    assert jina.model == "jinaai/jina-embeddings-v3"
    assert jina.task == "text-matching"
    assert not jina.trust_remote_code
    transformers = pytest.importorskip("transformers")
    config = transformers.JinaEmbeddingsV3Config(
        vocab_size=60, hidden_size=1024, num_hidden_layers=1, intermediate_size=64, max_position_embeddings=600,
        pad_token_id=0,
    )  # fmt: skip
    kind = copy(made, tmp_path)
    for file in ("config.json", "model.safetensors"):
        (kind / file).unlink()
    transformers.JinaEmbeddingsV3Model(config, add_pooling_layer=False).save_pretrained(kind)
    edit(kind / "1_Pooling" / "config.json", embedding_dimension=1024)
    vectors = replace(jina, model=str(kind), task=None).embed(["hello", "good morning", "hello"])
    assert vectors.shape == (3, 1024)
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Torch's threads wait for one another where others work, too."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    sentence_transformer._loaded.cache_clear()


def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def edit(file: Path, **changes: Any) -> None:
    before = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(before | changes), "utf-8")


@pytest.mark.usefixtures("offline")
def test_minilm_has_the_same_vectors_under_torch_and_onnx_runtime() -> None:
    pytest.importorskip("onnxruntime")
    texts = sample(60, seed=3)
    torch, onnx = (model.embed(texts).astype(np.float64) for model in (OWN, MiniLM()))
    cosine = (torch * onnx).sum(1) / np.linalg.norm(torch, axis=1) / np.linalg.norm(onnx, axis=1)
    assert cosine.min() >= 0.9999


@pytest.mark.usefixtures("offline")
def test_a_text_has_the_same_bits_alone_among_others_and_in_any_order(made: Path) -> None:
    for what, texts in ((replace(OWN, model=str(made)), mixed()), (OWN, sample(30))):
        whole = sentence_transformer._embed(what, texts)
        order = np.random.default_rng(0).permutation(len(texts))
        assert np.array_equal(sentence_transformer._embed(what, [texts[i] for i in order]), whole[order])
        alone = [sentence_transformer._embed(what, [text]) for text in texts[:20]]
        assert np.array_equal(np.concatenate(alone), whole[:20])


@pytest.mark.usefixtures("offline")
def test_a_model_in_a_folder_is_cut_as_it_is_told_and_its_vectors_are_kept(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(OWN, model=str(made))
    whole = model.embed(["hello there", "hello there you"])
    assert whole.shape == (2, 8)
    assert replace(model, dimensions=4).embed(["hello there"]).shape == (1, 4)
    cut = replace(model, max_tokens=4)
    assert np.array_equal(cut.embed(["ab cd"]), cut.embed(["ab xyz q"]))
    assert not np.array_equal(model.embed(["ab cd"]), model.embed(["ab xyz q"]))
    assert model.embed([]).shape == (0, 8)
    monkeypatch.setattr(sentence_transformer, "_embed", lambda *_: pytest.fail("asked again"))
    assert np.array_equal(model.embed(["hello there you", "hello there"]), whole[::-1])


@pytest.mark.usefixtures("offline")
def test_the_digest_is_of_what_the_model_is_and_of_what_is_done_with_it(made: Path, tmp_path: Path) -> None:
    model = replace(OWN, model=str(made))
    digests = {model.digest, replace(model, dimensions=4).digest, replace(model, max_tokens=9).digest, OWN.digest}
    assert len(digests) == 4
    changed = copy(made, tmp_path)
    same = replace(model, model=str(changed)).digest
    assert same.replace(str(changed), "") == model.digest.replace(str(made), "")
    edit(changed / "config_sentence_transformers.json", prompts={"x": "y"})
    assert replace(model, model=str(changed)).digest != same


@pytest.mark.usefixtures("offline")
def test_a_model_that_is_edited_between_two_runs_of_a_process_is_read_again(made: Path, tmp_path: Path) -> None:
    edited = copy(made, tmp_path)
    model, texts = replace(OWN, model=str(edited)), ["a text of some length, and more of it"]
    digest, vectors = model.digest, model.embed(texts)
    edit(edited / "sentence_bert_config.json", max_seq_length=4)
    assert model.digest != digest
    assert np.array_equal(model.embed(texts), replace(model, max_tokens=4).embed(texts))
    assert not np.array_equal(model.embed(texts), vectors)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("model", ["no-such-model", "nobody/no-such-model", "not a name!", "a/b/c", "/no/such/folder"])
def test_a_model_that_cannot_be_had_is_named_at_once_without_a_network(model: str) -> None:
    begun = monotonic()
    with pytest.raises(UsageError, match=rf"embedder\.model='{model}' cannot be loaded: it is no folder"):
        _ = replace(OWN, model=model).digest
    assert monotonic() - begun < 10


def test_a_hub_that_does_not_answer_is_given_up_after_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    httpx = pytest.importorskip("httpx")
    timeouts: list[float] = []

    def silent(_self: object, _model: str, *, revision: str | None, timeout: float) -> None:
        timeouts.append(timeout)
        raise httpx.ReadTimeout("The read operation timed out")

    monkeypatch.setattr(hub.HfApi, "model_info", silent)
    with pytest.raises(UsageError, match=r"hub does not give it \(The read operation timed out\); .* hf download a/b"):
        _ = replace(OWN, model="a/b").digest
    assert timeouts == [5.0]


def test_a_downloaded_model_is_known_by_its_commit_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "models--a--b"
    for file, contents in ((f"snapshots/{commit}/config.json", "{}"), ("refs/main", commit)):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(contents, "utf-8")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    sentence_transformer._weights.cache_clear()
    assert f"a/b {commit} " in replace(OWN, model="a/b").digest


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "modules.json", "tokenizer.json"])
@pytest.mark.parametrize("keep", [0, 100])
def test_a_torn_model_is_refused(made: Path, tmp_path: Path, file: str, keep: int) -> None:
    torn = copy(made, tmp_path)
    (torn / file).write_bytes((torn / file).read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"embedder\.model='.*copy' cannot be loaded"):
        replace(OWN, model=str(torn)).embed(["hello"])


@pytest.mark.usefixtures("offline")
def test_code_that_a_model_brings_is_run_only_when_the_user_says_so(made: Path, tmp_path: Path) -> None:
    model, ran = copy(made, tmp_path), tmp_path / "ran"
    modules = json.loads((model / "modules.json").read_text("utf-8"))
    modules[0]["type"] = "own_code.Transformer"
    (model / "modules.json").write_text(json.dumps(modules), "utf-8")
    (model / "own_code.py").write_text(CODE.format(ran=str(ran)), "utf-8")
    with pytest.raises(UsageError, match=r"read that first, then set embedder\.trust_remote_code=true"):
        replace(OWN, model=str(model)).embed(["hello"])
    assert not ran.exists()
    trusted = replace(OWN, model=str(model), trust_remote_code=True, task="text-matching")
    assert trusted.embed(["hello"]).shape == (1, 8)
    assert ran.read_text("utf-8") == "text-matching"


@pytest.mark.usefixtures("offline")
def test_a_model_cannot_say_for_itself_that_it_is_trusted(made: Path, tmp_path: Path) -> None:
    model, ran = copy(made, tmp_path), tmp_path / "ran"
    edit(
        model / "config.json",
        model_type="ours",
        auto_map={"AutoConfig": "own_code.Config", "AutoModel": "own_code.Model"},
    )
    for key in ("model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "processor_kwargs"):
        edit(model / "sentence_bert_config.json", **{key: {"trust_remote_code": True}})
    (model / "own_code.py").write_text(CODE.format(ran=str(ran)), "utf-8")
    with pytest.raises(UsageError, match="cannot be loaded"):
        replace(OWN, model=str(model)).embed(["hello"])
    assert not ran.exists()


@pytest.mark.usefixtures("offline")
def test_a_task_that_the_model_does_not_know_is_refused(made: Path) -> None:
    with pytest.raises(UsageError, match=r"embedder\.task='text-matching', but .* knows no tasks"):
        replace(OWN, model=str(made), task="text-matching").embed(["hello"])


def test_a_gpu_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=r"embedder\.device=cuda, but torch finds no GPU here"):
        replace(OWN, device="cuda").embed(["hello"])


@pytest.mark.parametrize(("field", "value"), [("dimensions", 0), ("max_tokens", -1)])
def test_sizes_below_one_are_refused(field: str, value: int) -> None:
    with pytest.raises(UsageError, match=rf"embedder\.{field}={value} must be at least 1, or null"):
        replace(OWN, **{field: value})  # type: ignore[arg-type]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_a_model_that_says_nonsense_is_refused(made: Path, monkeypatch: pytest.MonkeyPatch, bad: float) -> None:
    what = replace(OWN, model=str(made))
    model = sentence_transformer._loaded(what, sentence_transformer._stamps(what))
    monkeypatch.setattr(model, "encode", lambda texts, **_: np.full((len(texts), 8), bad))
    with pytest.raises(UsageError, match=r"1 of 1 embedding vectors are zero or not finite"):
        what.embed(["a"])


def test_an_absent_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    sentence_transformer._loaded.cache_clear()
    with pytest.raises(
        UsageError,
        match=r"needs sentence_transformers: .*pip install .* '\.\[sentence-transformers\]'",
    ):
        sentence_transformer._embed(OWN, ["hello"])
