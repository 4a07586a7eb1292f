"""Conformance of every component that `conf/` offers, found there: a new yaml is tested without a change here."""

import importlib
import pickle
import re
from dataclasses import fields, is_dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, Protocol

import numpy as np
import pytest
import yaml

from skg_bench.app.building import build
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking import asking
from skg_bench.core import deciding, launching, types
from skg_bench.core import store as core_store
from skg_bench.core import world as core_world
from skg_bench.core.batch import ADD, NO_OPERATIONS, OPERATIONS, REMOVE, UPDATE, Batch
from skg_bench.core.content import Content
from skg_bench.core.deciding import Memoryless, Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS, KnownFeedback
from skg_bench.core.grid import I16
from skg_bench.core.state import check_state, rows
from skg_bench.core.types import Curator, Observation, Router, Shortlist, TurnTruth
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.embedder.packaged import PACKAGED
from skg_bench.simulator.answers import corpus
from tests.core import samples
from tests.policy.played import Living, candidates, decided, keys

ROOT = Path(__file__).resolve().parents[1]
SEAMS = ("simulator", "embedder", "router", "reranker", "policy", "curator", "llm", "store", "launcher")
B = 24


def yamls(*seams: str) -> list[Any]:
    cases = [(seam, path) for seam in seams for path in sorted((ROOT / "conf" / seam).glob("*.yaml"))]
    return [pytest.param(path, id=f"{seam}={path.stem}") for seam, path in cases]


def made(path: Path) -> Any:
    (node,) = hydra_trees().options(path.parent.name, [path.stem])
    return build(path.parent.name, node, COMMAND_LINE)


def llms(*, of_texts: bool) -> pytest.MarkDecorator:
    """Models that meter users' calls, or those that read and write texts. One that answers in words has such a one."""
    kind = "settings" if of_texts else "ability"
    cases = yamls("llm")
    nodes = hydra_trees().options("llm", [case.values[0].stem for case in cases])  # one call of Hydra for all
    models = [build("llm", node, COMMAND_LINE) for node in nodes]
    return pytest.mark.parametrize(
        "path", [case for case, llm in zip(cases, models, strict=True) if hasattr(llm, kind)]
    )


def each(seam: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", yamls(seam))


def world(seed: int = 0, users: int = B, examples: int = 40) -> tuple[types.Query, types.Skillbooks]:
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, users, examples, skills=10)
    contents = samples.TEXTS.contents
    keys = np.array([contents.add(Content("context", f"issue {i}")) for i in range(books.active.shape[1])], np.uint64)
    books = replace(books, content=np.where(books.name >= 0, keys, 0))
    quality = rng.integers(0, 3, books.active.shape).astype(np.int32)
    kind = rng.integers(-1, 9, users).astype(np.int32)
    query = samples.query(rng.integers(0, 100, users).astype(np.int32), samples.table(rng, 100, 32), books)
    return replace(
        query,
        truth=TurnTruth(quality, kind, np.zeros(users, np.bool_), np.zeros((users, 0))),
        contents=samples.TEXTS.contents,
    ), books


# ----------------------------------------------------------------------------------------- one word per seam


@pytest.mark.parametrize("seam", SEAMS)
def test_a_seam_is_one_word_for_its_yamls_its_package_its_tests_and_its_protocol(seam: str) -> None:
    assert list((ROOT / "conf" / seam).glob("*.yaml"))
    assert (ROOT / "skg_bench" / seam / "__init__.py").is_file()
    assert list((ROOT / "tests" / seam).glob("test_*.py"))
    protocol = {"llm": "LLM", "simulator": "World"}.get(seam, seam.capitalize())
    home = {"policy": deciding, "launcher": launching, "simulator": core_world, "store": core_store}.get(seam, types)
    assert getattr(getattr(home, protocol), "_is_protocol", False)


@pytest.mark.parametrize("path", yamls(*SEAMS))
def test_a_yaml_names_a_class_of_its_own_seam(path: Path) -> None:
    module, _, name = yaml.safe_load(path.read_text("utf-8"))["_target_"].rpartition(".")
    rooms = path.parent.name, "simulator"  # a component for one world alone may live in the room of its world
    assert module.startswith(tuple(f"skg_bench.{room}." for room in rooms))
    assert is_dataclass(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("path", yamls("router", "reranker", "policy", "curator", "llm", "store"))
def test_a_component_lives_in_the_module_of_its_name(path: Path) -> None:
    node = yaml.safe_load(path.read_text("utf-8"))
    assert node["_target_"].split(".")[2] == node.get("defaults", [path.stem])[0]  # the yaml that it is made from


@pytest.mark.parametrize("seam", ["router", "reranker", "policy", "curator", "llm", "store"])
def test_every_module_of_a_seam_can_be_chosen(seam: str) -> None:
    modules = {path.stem for path in (ROOT / "skg_bench" / seam).glob("*.py")} - {"__init__"}
    files = [path.read_text("utf-8") for path in (ROOT / "conf" / seam).glob("*.yaml")]
    assert modules == set(re.findall(rf"^_target_: skg_bench\.{seam}\.(\w+)\.", "\n".join(files), re.MULTILINE))


@pytest.mark.parametrize("path", yamls("router", "reranker", "policy", "curator", "llm"))
def test_a_component_is_a_frozen_value_that_travels_between_processes(path: Path) -> None:
    component = made(path)
    assert component == made(path)
    assert pickle.loads(pickle.dumps(component)) == component  # noqa: S301
    assert type(component).__dataclass_params__.frozen
    bases = [base for base in type(component).__mro__[1:] if base not in (Memoryless, Proposer, Protocol, Generic)]
    assert bases == [object]  # but for a policy that learns nothing, and a curator that proposes


# -------------------------------------------------------------------------------------------- what each gives


@each("router")
@pytest.mark.req("K08")
def test_a_router_gives_active_skills_and_then_nothing_for_any_user_by_itself(path: Path) -> None:
    router: Router = made(path)
    query, books = world()
    shortlist = router.route(query, books)
    assert shortlist.skill.dtype == np.int32
    assert shortlist.similarity.dtype == np.float64
    assert shortlist.skill.shape == shortlist.similarity.shape
    assert ((shortlist.skill[:, 1:] < 0) | (shortlist.skill[:, :-1] >= 0)).all()
    row, place = np.nonzero(shortlist.skill >= 0)
    assert len(row)
    assert books.active[row, shortlist.skill[row, place]].all()
    assert (shortlist.similarity[shortlist.skill < 0] == 0).all()
    assert router.sees_truth == (path.stem == "oracle")
    order = np.random.default_rng(1).permutation(B)
    mixed = router.route(samples.some_queries(query, order), samples.some(books, order))
    assert same(mixed, shortlist, order, Shortlist)
    if not router.sees_truth:
        assert same(router.route(replace(query, truth=None), books), shortlist, np.arange(B), Shortlist)
    nothing = router.route(*world(examples=0))
    assert (nothing.skill == -1).all()


@each("policy")
def test_a_policy_gives_a_distribution_over_the_fallback_and_its_shortlist_for_any_user_by_itself(path: Path) -> None:
    policy: Policy[Any] = made(path)
    living = Living(policy, B)
    for state in (policy.start(B), living.live(30)):  # new, and as one who has learned
        check_state(state, B, policy)
        c = candidates(0, B, skills=5)
        share = policy.propensities(c, state)
        assert share.dtype == np.float64
        assert share.shape == (B, 6)
        assert (share >= 0).all()
        assert share.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert not share[:, 1:][c.skill < 0].any()
        decision = decided(policy, c, state, living.turn, keys(0, B))
        assert ((decision.place >= -1) & (decision.place < (c.skill >= 0).sum(axis=1))).all()
        assert ((decision.propensity > 0) & (decision.propensity <= 1)).all()
        order = np.random.default_rng(1).permutation(B)
        assert np.array_equal(policy.propensities(c.rows(order), rows(state, order)), share[order])
    assert set(policy.reads) <= set(FEEDBACK_KINDS)


@each("embedder")
def test_a_texts_vector_is_the_same_bits_in_any_company_where_an_embedder_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder: types.Embedder = made(path)
    if getattr(embedder, "model", PACKAGED) != PACKAGED:
        pytest.skip("its weights lie on a hub")
    assert embedder.pure
    texts = corpus.load_corpus().messages[:200:5]
    folders = count()

    def embedded(*rows: int) -> I16:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(next(folders))))  # nothing is kept
        return embedder.embed([texts[i] for i in rows])

    try:
        whole = embedded(*range(len(texts)))
    except UsageError as error:
        pytest.skip(str(error))  # its libraries are not installed
    companies: list[list[int]] = [np.random.default_rng(0).permutation(len(texts)).tolist(), [7, 3], [3, 7, 3]]
    for some in [*companies, *([i] for i in range(0, 40, 8))]:
        assert np.array_equal(embedded(*some), whole[some])


@each("curator")
def test_a_curator_gives_operations_that_the_books_can_take(path: Path) -> None:
    curator: Curator[Any] = made(path)
    query, books = world()
    hit = books.active[:, 0] & (np.arange(B) % 2 == 0)
    context = samples.context(np.random.default_rng(0), query.text, books, 9)
    context = replace(context, truth=query.truth if curator.sees_truth else None)
    seen = Observation(
        query.time, 9, query.text, np.where(hit, 0, -1).astype(np.int32), np.full(B, 0.7),
        (np.arange(B) % 4 - 1).astype(np.int32), context,
    )  # fmt: skip
    state = curator.start(B)
    check_state(state, B, curator)
    asks = curator.offers(seen, state)
    assert asks.dtype == np.bool_
    assert not asks[hit].any()
    offer = np.where(asks, np.arange(B) % 3, -1).astype(np.int32)
    name = np.where((offer == 0) | (offer == 1), np.arange(B), -1).astype(np.int32)
    reaction = Reaction(offer, name, name)
    later, batch = curator.curate(seen, reaction, KnownFeedback(*np.zeros((5, 0), np.int32)), books, state)
    check_state(later, B, curator)
    for f in fields(Batch):
        assert getattr(batch, f.name).dtype == (np.uint64 if f.name == "content" else np.int32), f.name
        assert getattr(batch, f.name).shape == batch.op.shape, f.name
    assert set(batch.op.tolist()) <= set(range(len(OPERATIONS)))
    assert ((batch.reason >= 0) & (batch.reason < max(len(curator.reasons), 1))).all()
    assert np.array_equal(batch.skill < 0, batch.op == ADD)
    assert (batch.skill < books.n_skills[batch.row]).all()
    assert np.array_equal(batch.text >= 0, np.isin(batch.op, [ADD, UPDATE]))
    assert (batch is NO_OPERATIONS) == (path.stem == "none")
    assert np.array_equal(batch.about >= 0, batch.op != REMOVE)  # what is archived was not learned from one turn
    assert (batch.about <= seen.turn).all()


@llms(of_texts=False)
@pytest.mark.req("K20")
def test_an_llm_meters_its_calls_and_says_how_able_it_is_but_not_whether_it_was_right(path: Path) -> None:
    llm: types.LLM = made(path)
    words, draws = np.arange(B, dtype=np.int32), samples.draws(np.random.default_rng(0), B)
    calls = llm.complete(types.Prompts(words, words % 2 == 0, draws.length, draws.latency))
    assert {f.name for f in fields(calls)} == {"tokens_in", "tokens_out", "cost_usd", "latency_ms"}
    assert calls.tokens_in.dtype == calls.tokens_out.dtype == np.int32
    assert calls.cost_usd.dtype == calls.latency_ms.dtype == np.float64
    assert all(getattr(calls, f.name).shape == (B,) for f in fields(calls))
    assert all((getattr(calls, f.name) > 0).all() for f in fields(calls))
    for fitting in (True, False):
        ability = llm.ability(words % 2 == 0, fitting=fitting)
        assert ability.dtype == np.float64
        assert ability.shape == (B,)
        assert (np.isnan(ability) | ((ability >= 0) & (ability <= 1))).all()


@llms(of_texts=True)
def test_a_model_of_texts_says_what_decides_its_answers_and_what_it_charges(path: Path) -> None:
    model: asking.TextModel = made(path)
    assert set(model.settings) == {"model", "temperature", "top_p"}
    assert model.settings["model"]
    assert all(type(model.settings[name]) is float for name in ("temperature", "top_p"))
    assert model.prices is None or min(model.prices.tokens_in, model.prices.tokens_out) >= 0
    assert model.complete([]) == []
    assert {*getattr(model, "beside", ())} <= {f.name for f in fields(type(model))}  # type: ignore[arg-type]


def same(mixed: Any, whole: Any, order: np.ndarray, kind: type[Any]) -> bool:
    """Are the values of users in another order those of the users?"""
    return all(np.array_equal(getattr(mixed, f.name), getattr(whole, f.name)[order]) for f in fields(kind))
