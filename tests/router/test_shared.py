"""An index over a shared skillbook: what it finds, that files are checked, and that it routes as MaxSim does."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32, F64, I16, I32
from skg_bench.engine.vectors import Pinned, Rows
from skg_bench.router.maxsim import MaxSim
from skg_bench.router.shared.index import Index, IndexKind, build_index, load_index
from skg_bench.router.shared.one_book import shared_book
from skg_bench.router.shared.route import SharedMaxSim
from tests.core import samples

faiss = pytest.importorskip("faiss")
KINDS: tuple[IndexKind, ...] = ("flat", "hnsw", "ivf")
E, SKILLS, D = 6000, 60, 384


@pytest.fixture(scope="module")
def vectors() -> I16:
    """Examples, and 200 messages after them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(600, D))
    return quantise(centres[rng.integers(0, 600, E + 200)] + 0.8 * rng.normal(size=(E + 200, D)))


@pytest.fixture(scope="module")
def skill() -> I32:
    return np.sort(np.random.default_rng(1).integers(0, SKILLS, E)).astype(np.int32)


@pytest.fixture(scope="module", params=KINDS)
def index(request: pytest.FixtureRequest, vectors: I16, skill: I32) -> Index:
    return build_index(vectors[:E], skill, request.param)


def exact(vectors: I16, k: int) -> tuple[np.ndarray, np.ndarray]:
    dots = vectors[E:].astype(np.float32) @ vectors[:E].astype(np.float32).T
    return -np.sort(-dots, axis=1)[:, :k], dots


def test_dot_products_are_exact_and_in_order_whatever_the_index(index: Index, vectors: I16) -> None:
    _, dots = exact(vectors, 1)
    example, products = index.search(vectors[E:], 10)
    assert example.dtype == np.int32
    assert products.dtype == np.float32
    assert (example >= 0).all()
    assert np.array_equal(products, np.take_along_axis(dots, example, axis=1))
    assert (np.diff(products, axis=1) <= 0).all()
    again = index.search(vectors[E:], 10)
    assert np.array_equal(again[0], example)
    one_by_one = [index.search(vectors[E + i : E + i + 1], 10)[1][0] for i in range(20)]
    assert np.array_equal(np.stack(one_by_one), products[:20])


def test_a_flat_index_finds_all_of_the_nearest_and_the_others_most(index: Index, vectors: I16) -> None:
    nearest, _ = exact(vectors, 10)
    examples = index.search(vectors[E:], 10)[1]
    recall = np.mean([np.isin(f, n).mean() for f, n in zip(examples, nearest, strict=True)])
    assert recall == 1 if index.kind == "flat" else recall > 0.9


@pytest.mark.req("K06")
def test_a_saved_index_comes_back_and_finds_the_same(index: Index, vectors: I16, tmp_path: Path) -> None:
    index.save(tmp_path / "book")
    again = load_index(tmp_path / "book")
    assert (again.kind, again.dimensions) == (index.kind, D)
    for array, other in zip(index.search(vectors[E:], 5), again.search(vectors[E:], 5), strict=True):
        assert np.array_equal(array, other)


@pytest.mark.parametrize("file", ["vectors.npy", "skill.npy", "index.json"])
def test_files_that_changed_are_refused(file: str, vectors: I16, skill: I32, tmp_path: Path) -> None:
    build_index(vectors[:100], skill[:100], "flat").save(tmp_path)
    content = bytearray((tmp_path / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / file).write_bytes(content)
    with pytest.raises(UsageError, match="build"):
        load_index(tmp_path)
    with pytest.raises(UsageError, match="holds no index"):
        load_index(tmp_path / "nowhere")


def test_a_description_of_another_index_is_refused(vectors: I16, skill: I32, tmp_path: Path) -> None:
    build_index(vectors[:100], skill[:100], "flat").save(tmp_path)
    description = json.loads((tmp_path / "index.json").read_text())
    (tmp_path / "index.json").write_text(json.dumps(description | {"dimensions": 128}))
    with pytest.raises(UsageError, match="says 100 examples of 128 dimensions, the files hold 100 of 384"):
        load_index(tmp_path)


def test_an_index_holds_no_pickle(vectors: I16, skill: I32, tmp_path: Path) -> None:
    np.save(tmp_path / "evil.npy", np.array([print], dtype=object), allow_pickle=True)
    build_index(vectors[:100], skill[:100], "flat").save(tmp_path)
    description = json.loads((tmp_path / "index.json").read_text())
    (tmp_path / "evil.npy").rename(tmp_path / "skill.npy")
    from skg_bench.router.shared.index import _digest

    description["blake2b"]["skill.npy"] = _digest(tmp_path / "skill.npy")
    (tmp_path / "index.json").write_text(json.dumps(description))
    with pytest.raises(UsageError, match="nothing is unpickled"):
        load_index(tmp_path)


def test_files_that_no_save_wrote_are_refused_although_their_digests_are_right(
    vectors: I16, skill: I32, tmp_path: Path
) -> None:
    """Of a flat index: examples or skills of another kind. Of an hnsw one: what FAISS cannot read, and distances."""
    from skg_bench.router.shared.index import _digest

    def altered(kind: IndexKind, name: str, write: Callable[[Path], object]) -> Path:
        folder = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
        build_index(vectors[:100], skill[:100], kind).save(folder)
        write(folder / name)
        description = json.loads((folder / "index.json").read_text())
        description["blake2b"][name] = _digest(folder / name)
        (folder / "index.json").write_text(json.dumps(description))
        return folder

    distances = faiss.IndexFlatL2(384)
    distances.add(vectors[:100].astype(np.float32))
    for folder in (
        altered("flat", "vectors.npy", lambda file: np.save(file, np.full((100, 384), np.nan))),
        altered("flat", "skill.npy", lambda file: np.save(file, np.int32(3))),
        altered("flat", "skill.npy", lambda file: np.save(file, skill[:100] - 1)),
        altered("flat", "skill.npy", lambda file: np.save(file, skill[:100].astype("U4"))),
        altered("hnsw", "index.faiss", lambda file: file.write_bytes(b"garbage")),
        altered("hnsw", "index.faiss", lambda file: faiss.write_index(distances, str(file))),
    ):
        with pytest.raises(UsageError, match="build"):
            load_index(folder)
    for text in ("[" * 100_000, "null", json.dumps({"kind": "annoy"})):
        (folder / "index.json").write_text(text)
        with pytest.raises(UsageError, match="holds no index"):
            load_index(folder)


def test_no_message_has_no_neighbours_and_no_neighbour_is_an_error(index: Index, vectors: I16) -> None:
    example, dots = index.search(vectors[:0], 5)
    assert example.shape == dots.shape == (0, 5)
    with pytest.raises(UsageError, match="0 nearest examples; ask for 1 or more"):
        index.search(vectors[E:], 0)


def test_what_is_on_a_gpu_orders_ties_as_elsewhere_and_is_not_saved(tmp_path: Path) -> None:
    """An index of whole examples, as a flat one is there."""
    whole, skill = np.ones((8, 16), np.int16), np.array([7, 6, 5, 4, 3, 2, 1, 0], np.int32)
    flat = faiss.IndexFlatIP(16)
    flat.add(whole.astype(np.float32))
    index = Index("flat", 16, skill, flat, gpu=True)
    assert index.search(whole[:1], 2)[0].tolist() == [[7, 6]]
    with pytest.raises(UsageError, match="save the one from which `on_gpu` made it"):
        index.save(tmp_path)


def test_fewer_examples_than_wanted_leave_the_rest_empty(vectors: I16) -> None:
    for kind in KINDS:
        small = build_index(vectors[:3], np.array([4, 2, 4], np.int32), kind)
        example, dots = small.search(vectors[E : E + 5], 6)
        assert (example[:, 3:] == -1).all()
        assert (dots[:, 3:] == 0).all()
        assert sorted(example[0, :3].tolist()) == [0, 1, 2]


def test_equal_examples_are_ordered_by_skill_and_then_by_place(vectors: I16) -> None:
    same = np.repeat(vectors[:1], 4, axis=0)
    example, _ = build_index(same, np.array([3, 1, 3, 0], np.int32), "flat").search(vectors[:1], 4)
    assert example.tolist() == [[3, 1, 0, 2]]


def test_an_index_of_other_dimensions_and_settings_without_sense_are_refused(vectors: I16, skill: I32) -> None:
    small = build_index(vectors[:100], skill[:100], "flat")
    with pytest.raises(UsageError, match=r"messages of shape \(2, 128\) in an index of 384 dimensions"):
        small.search(vectors[:2, :128], 1)
    with pytest.raises(UsageError, match="one vector and skill an example"):
        build_index(vectors[:0], skill[:0], "flat")
    with pytest.raises(UsageError, match="float64; an index takes int16 on the grid"):
        build_index(np.full((3, 4), np.nan), skill[:3], "flat")
    with pytest.raises(UsageError, match="kind='annoy', valid are flat, hnsw, ivf"):
        build_index(vectors[:9], skill[:9], "annoy")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="links=0, probes=0 must be at least 1"):
        build_index(vectors[:9], skill[:9], "hnsw", links=0, probes=0)
    with pytest.raises(UsageError, match="lists=50 is too many for 100 examples; at most 2"):
        build_index(vectors[:100], skill[:100], "ivf", lists=50)


def test_a_gpu_that_is_not_there_is_an_error(vectors: I16, skill: I32) -> None:
    with pytest.raises(UsageError, match="hnsw index does not run on a GPU"):
        build_index(vectors[:100], skill[:100], "hnsw").on_gpu()
    if getattr(faiss, "get_num_gpus", int)():
        pytest.skip("this machine has one")
    with pytest.raises(UsageError, match="no GPU that FAISS can use"):
        build_index(vectors[:100], skill[:100], "flat").on_gpu()


# ----------------------------------------------------------------------------------------------------- routing


def test_with_a_flat_index_and_all_neighbours_it_is_maxsim_to_the_bit(vectors: I16, skill: I32) -> None:
    example = np.arange(E, dtype=np.int32)
    dense = np.unique(skill, return_inverse=True)[1].astype(np.int32)
    text = np.arange(E, E + 40, dtype=np.int32)
    books = shared_book(vectors, example, dense, 40)
    query = samples.query(text, Pinned(vectors, example), books)
    expected = MaxSim(5).route(query, books)
    made = SharedMaxSim(build_index(vectors[:E], dense, "flat"), vectors, 5, E).route(query, books)
    assert np.array_equal(made.skill, expected.skill)
    assert np.array_equal(made.similarity, expected.similarity)
    near = SharedMaxSim(build_index(vectors[:E], dense, "hnsw"), vectors, 5, 50).route(query, books)
    assert np.mean(near.skill[:, 0] == expected.skill[:, 0]) > 0.9


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_an_exact_search_is_maxsim_to_the_bit_with_ties_duplicates_and_zero_rows(data: st.DataObject) -> None:
    """Few different coordinates: most products tie. The first search asks for so few examples that most go on."""
    skills, largest = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 2048, 2896]))
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=skills, max_size=skills))
    e, b = sum(sizes), data.draw(st.integers(1, 3))
    vectors = data.draw(arrays(np.int16, (e + b, 2), elements=st.sampled_from([-largest, 0, largest])))
    books = shared_book(vectors, np.arange(e, dtype=np.int32), np.arange(skills).repeat(sizes).astype(np.int32), b)
    books = replace(books, active=data.draw(arrays(np.bool_, (b, skills))))
    text, top_k = np.arange(e, e + b, dtype=np.int32), data.draw(st.integers(1, skills + 1))
    expected = MaxSim(top_k).route(samples.query(text, Rows(vectors), books), books)
    index = build_index(vectors[:e], books.examples.skill[0], "flat")
    with patch("skg_bench.router.shared.route._FIRST", data.draw(st.integers(1, 4))):
        made = SharedMaxSim(index, vectors, top_k).route(samples.query(text, Rows(vectors), books), books)
    assert np.array_equal(made.skill, expected.skill)
    assert np.array_equal(made.similarity, expected.similarity)


def test_an_exact_search_asks_for_few_examples_and_reads_a_byte_a_coordinate(
    vectors: I16, skill: I32, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    candidates = Index.candidates

    def counted(index: Index, messages: I16, k: int) -> tuple[I32, F32, F64]:
        asked.append(k * len(messages))
        return candidates(index, messages, k)

    monkeypatch.setattr(Index, "candidates", counted)
    books = shared_book(vectors, np.arange(E, dtype=np.int32), skill, 40)
    text = np.arange(E, E + 40, dtype=np.int32)
    query = samples.query(text, Rows(vectors), books)
    index = build_index(vectors[:E], skill, "flat")
    made = SharedMaxSim(index, vectors, 5).route(query, books)
    assert np.array_equal(made.skill, MaxSim(5).route(query, books).skill)
    assert 40 * E / 100 < sum(asked) < 40 * E / 10
    assert index.found.code_size == D


def beyond(index: Index, messages: I16, k: int) -> F64:
    """By how much the nearest of the examples that are no candidates is nearer than the bound says, `[B]`."""
    assert index.rounded is not None
    example, _, bound = index.candidates(messages, k)
    products = messages.astype(np.float64) @ index.rounded.whole.T.astype(np.float64)
    np.put_along_axis(products, example.astype(np.int64), -np.inf, axis=1)
    further: F64 = products.max(axis=1) - bound
    return further


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_example_is_nearer_than_the_bound_of_the_others(data: st.DataObject) -> None:
    """Whole vectors of any length, so that rounding is coarse, and rows of zeros among them."""
    e, b, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 3, 16, 64]))
    largest = data.draw(st.sampled_from([1, 126, 127, 128, 381, 4000, 32767]))
    coordinates = st.one_of(st.just(0), st.integers(-largest, largest))
    vectors = data.draw(arrays(np.int16, (e + b, d), elements=coordinates))
    index = build_index(vectors[:e], np.zeros(e, np.int32), "flat")
    assert (beyond(index, vectors[e:], data.draw(st.integers(1, e - 1))) <= 0).all()


def test_a_bound_that_leaves_out_what_rounding_lost_is_noticed() -> None:
    """Two examples of one code, of which the other one is nearer."""
    whole = np.array([[12700, 0], [51, 120], [149, 120]], np.int16)
    index = build_index(whole, np.zeros(3, np.int32), "flat")
    message = np.array([[127, 127]], np.int16)
    assert index.rounded is not None
    assert (beyond(index, message, 2) <= 0).all()
    careless = replace(index, rounded=replace(index.rounded, rest=0.0, length=0.0))
    assert (beyond(careless, message, 2) > 0).all()


def test_archived_skills_are_not_found_and_another_book_is_refused(vectors: I16, skill: I32) -> None:
    example = np.arange(E, dtype=np.int32)
    books = shared_book(vectors, example, skill, 8)
    query = samples.query(np.arange(E, E + 8, dtype=np.int32), Pinned(vectors, example), books)
    router = SharedMaxSim(build_index(vectors[:E], skill, "flat"), vectors, 3, 500)
    first = router.route(query, books).skill[:, 0]
    without = router.route(query, replace(books, active=np.arange(SKILLS) != first[:, None]))
    assert not (without.skill == first[:, None]).any()
    with pytest.raises(UsageError, match="an index of 6000 examples of 60 skills, and a book with 100 of 2"):
        router.route(query, shared_book(vectors, example[:100], skill[:100], 8))
    other = skill.copy()
    other[np.flatnonzero(np.diff(skill))[0]] += 1  # as many examples and skills, and one of them is another skill's
    with pytest.raises(UsageError, match="or of others; build the index again"):
        router.route(query, shared_book(vectors, example, other, 8))
    with pytest.raises(UsageError, match=r"router\.neighbours=0 must be at least 1"):
        SharedMaxSim(router.index, vectors, 3, 0)
