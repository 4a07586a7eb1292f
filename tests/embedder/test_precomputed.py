"""Vectors that lie on disk are found by text; files that do not fit together are refused."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import yaml

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, SCALE
from skg_bench.core.package import CONF, DATA
from skg_bench.embedder.precomputed import Precomputed, save_vectors
from skg_bench.simulator.answers import corpus as corpora
from skg_bench.skillbook.library.strategies import strategies

TEXTS = ("turn on the light", "light off", "wetter in köln")


def vectors(rows: int = 3, width: int = 1024) -> I16:
    return quantise(np.random.default_rng(0).standard_normal((rows, width)))


@pytest.fixture
def stem(tmp_path: Path) -> Path:
    """Path without suffix of three texts and their vectors."""
    save_vectors(tmp_path / "own.v2", TEXTS, vectors(), "a model")
    return tmp_path / "own.v2"


def describe(stem: Path, **changes: object) -> None:
    file = stem.with_name(stem.name + ".json")
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


@pytest.mark.req("K05")
def test_a_text_gets_its_own_vector_of_1024_dimensions_in_any_order(stem: Path) -> None:
    embedder = Precomputed(str(stem))
    messages = [TEXTS[2], TEXTS[0], TEXTS[0]]
    rows = embedder.embed(messages)
    assert rows.dtype == np.int16
    assert np.array_equal(rows, vectors()[[2, 0, 0]])
    assert embedder.embed([]).shape == (0, 1024)


def test_a_text_without_a_vector_is_named(stem: Path) -> None:
    with pytest.raises(UsageError, match=r"2 of 3 texts have no vector .*first: 'Light off'"):
        Precomputed(str(stem)).embed([TEXTS[0], "Light off", "never said"])


def test_texts_of_several_files_are_found_and_files_of_two_models_refused(stem: Path) -> None:
    other = stem.with_name("other")
    save_vectors(other, ["a lamp"], vectors(4)[3:], "a model")
    both = Precomputed([str(stem), str(other)])
    assert np.array_equal(both.embed(["a lamp", TEXTS[1]]), vectors(4)[[3, 1]])
    assert both.digest == f"{Precomputed(str(stem)).digest}+{Precomputed(str(other)).digest}"
    with pytest.raises(UsageError, match=r"1 of 1 texts have no vector in .*own\.v2\.npy, .*other\.npy"):
        both.embed(["never said"])
    describe(other, model="another model")
    says = r"other\.json has vectors of another model, another model; valid is that of .*own\.v2\.json, a model"
    with pytest.raises(UsageError, match=says):
        Precomputed([str(stem), str(other)]).embed(["a lamp"])
    describe(other, model="a model", dimensions=3)
    with pytest.raises(UsageError, match=r"vectors of another width, 3; valid"):
        Precomputed([str(stem), str(other)]).digest  # noqa: B018
    with pytest.raises(UsageError, match="names no vectors"):
        Precomputed([]).embed([])


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_missing_file_is_named(stem: Path, suffix: str) -> None:
    stem.with_name(stem.name + suffix).unlink()
    with pytest.raises(UsageError, match=r"embedder\.path: .*own\.v2.*must both exist"):
        Precomputed(str(stem)).embed(TEXTS)


@pytest.mark.parametrize(("array", "holds"), [
    (vectors(2), r"int16 \(2, 1024\)"),
    (vectors(3, 8), r"int16 \(3, 8\)"),
    (vectors().ravel(), r"int16 \(3072,\)"),
    (vectors().astype(np.float32), r"float32 \(3, 1024\)"),
    (np.full((3, 1024), np.nan), r"float64 \(3, 1024\)"),
])  # fmt: skip
def test_vectors_of_another_shape_or_type_are_refused(stem: Path, array: npt.NDArray[np.generic], holds: str) -> None:
    np.save(stem.with_name(stem.name + ".npy"), array)
    with pytest.raises(UsageError, match=rf"holds {holds}, its description says int16 \(3, 1024\)"):
        Precomputed(str(stem)).embed(TEXTS)


def test_vectors_of_other_contents_are_refused(stem: Path) -> None:
    np.save(stem.with_name(stem.name + ".npy"), np.roll(vectors(), 1, axis=0))
    with pytest.raises(UsageError, match="other contents"):
        Precomputed(str(stem)).embed(TEXTS)


@pytest.mark.parametrize("keep", [0, 5, 100, 4_000])
def test_a_torn_array_is_refused(stem: Path, keep: int) -> None:
    file = stem.with_name(stem.name + ".npy")
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"own\.v2\.npy is not a whole array"):
        Precomputed(str(stem)).embed(TEXTS)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"texts": ["zz"], "dimensions": 1, "blake2b": "0"}', '{"texts": 1}']
)
def test_a_description_that_describes_nothing_is_refused(stem: Path, text: str) -> None:
    stem.with_name(stem.name + ".json").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"own\.v2\.json does not describe vectors"):
        Precomputed(str(stem)).embed(TEXTS)


def test_a_file_of_no_vectors_is_refused(tmp_path: Path) -> None:
    save_vectors(tmp_path / "none", [], vectors(0), "a model")
    with pytest.raises(UsageError, match=r"none\.json describes no vectors"):
        Precomputed(str(tmp_path / "none")).embed(TEXTS)


def test_the_digest_is_that_of_the_vectors(stem: Path) -> None:
    before = Precomputed(str(stem)).digest
    save_vectors(stem, TEXTS, np.roll(vectors(), 1, axis=0), "a model")
    assert Precomputed(str(stem)).digest != before
    save_vectors(stem, TEXTS, vectors(), "a model")
    assert Precomputed(str(stem)).digest == before
    describe(stem, blake2b="0" * 32)
    with pytest.raises(UsageError, match="other contents"):
        Precomputed(str(stem)).embed(TEXTS)


def test_the_built_in_vectors_are_small_on_the_grid_and_those_of_every_message() -> None:
    assert sum((DATA / folder / "minilm.npy").stat().st_size for folder in ("corpus", "more")) <= 17_000_000
    messages = corpora.load_corpus().messages
    rows = Precomputed(None).embed(messages)
    assert rows.shape == (len(messages), 384)
    norm = np.sqrt((rows.astype(np.float64) ** 2).sum(1))
    assert np.abs(norm - SCALE).max() < 10
    description = json.loads((DATA / "corpus" / "minilm.json").read_text("utf-8"))
    assert description["model"] == "all-MiniLM-L6-v2"
    assert description["rebuild"] == "python data/rebuild_vectors.py"
    assert (DATA.parent / description["rebuild"].split()[1]).is_file()


def test_the_vectors_of_the_guardians_triggers_are_those_of_every_one_wherever_a_run_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    offered = yaml.safe_load((CONF / "embedder" / "guardian_minilm.yaml").read_text("utf-8"))
    embedder, triggers = Precomputed(offered["path"]), strategies().triggers.text
    rows = embedder.embed(triggers)
    assert rows.shape == (len(triggers), 384)
    assert len(np.unique(rows, axis=0)) == len(triggers)
    norm = np.sqrt((rows.astype(np.float64) ** 2).sum(1))
    assert np.abs(norm - SCALE).max() < 10
    files = [DATA / "guardian" / f"minilm{suffix}" for suffix in (".npy", ".json")]
    assert sum(file.stat().st_size for file in files) < 2_000_000
    assert len(json.loads(files[1].read_text("utf-8"))["texts"]) == len(triggers)


def test_a_name_below_the_packages_data_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"embedder\.path: .*data/nowhere/minilm\.json and minilm\.npy must both exist"
    ):
        Precomputed("data:nowhere/minilm").embed(TEXTS)
