"""Systems of others that conf/assistant names: rules of their stand-ins, and the systems themselves where they are.

What needs a package runs in its environment only: `make peers-assistants`.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.asking.http_server import HttpReply, HttpRequest
from skg_bench.assistant.endpoint.fake_qdrant import FakeQdrant
from skg_bench.assistant.python.component import Python
from skg_bench.assistant.python.contract import AskedModel
from skg_bench.assistant.python.gptcache import GPTCache
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, SCALE
from skg_bench.core.spoken import answer_words
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.runfolder.run import Run
from tests.app.test_cli import ROOT
from tests.runs import logs_alone

WORLD = (
    "profile=smoke", "users=6", "weeks=1", "simulator.one_off_share=0.1", "simulator.concentration=1",
    "simulator.discount=0", "simulator.volume_spread=0.2", "simulator.active_low=1", "simulator.messages_per_day=4",
    "reference=never",
)  # fmt: skip
ONCE = "assistant.controls=false"  # of a class that another arm has played for its controls
STAND_INS = "assistant.target=experiments.elsewhere.stand_ins"
ROWS = ("serving", "source_turn", "answer_correct", "user_satisfaction", "tokens_in", "cost_usd", "latency_ms")
needs_gptcache = pytest.mark.skipif(find_spec("gptcache") is None, reason="GPTCache is not installed")
needs_litellm = pytest.mark.skipif(shutil.which("litellm") is None, reason="LiteLLM is not installed")


def playing(name: str, *more: str) -> list[str]:
    return ["assistant=python", f"{STAND_INS}.{name}", *more]


def words(out: Path, *overrides: str, **arms: list[str]) -> list[str]:
    texts = {"never": ["policy=never"], **arms}
    table = "arms={" + ", ".join(f"{name}: {json.dumps(each)}" for name, each in texts.items()) + "}"
    return [*WORLD, *overrides, table, f"out={out}"]


def run(out: Path, *overrides: str, **arms: list[str]) -> Run:
    """A run without tables and page, at which no test here looks."""
    with logs_alone():
        return skg_bench.run(words(out, *overrides, **arms))


def rows(made: Run, arm: str, *names: str) -> dict[str, list[object]]:
    return {name: made.turns(arm, [name])[name].to_pylist() for name in names or ROWS}


ARMS = {
    "exact": ["router=exact", "curator=everything", "policy=always"],
    "pass_on": playing("PassOn"),
    "dict": playing("ExactCache"),
    "litellm": playing("SemanticCache", "assistant.parameters={threshold: 0.8}"),
    "gptcache": playing("SemanticCache", "assistant.parameters={threshold: 0.9, scale: half}", ONCE),
    "default": playing("SemanticCache", "assistant.parameters={threshold: 0.8, scale: half}", ONCE),
    "mem0": playing("NearestInPrompt", "assistant.parameters={threshold: 0}"),
    "prompted": playing("NearestInPrompt", "assistant.parameters={threshold: 0.8}", ONCE),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("runs") / "made", **ARMS)


# ------------------------------------------------------------------------------------------------ stand-ins


def test_three_identities_hold_on_stand_ins(made: Run) -> None:
    assert rows(made, "pass_on") == rows(made, "never")
    assert rows(made, "dict", *ROWS[:3]) == rows(made, "exact", *ROWS[:3])
    assert rows(made, "gptcache") == rows(made, "litellm")
    hits = [rows(made, arm)["serving"].count("stored") for arm in ("dict", "gptcache", "default")]
    assert 10 < hits[0] < hits[1] < hits[2]


def test_a_model_gives_vectors_of_the_runs_embedder(made: Run) -> None:
    """The nearest message from a cosine of 0.8 on, as twelve lines of numpy find it."""
    turns = made.turns("litellm", ["user", "turn", "message", "source_turn"]).to_pylist()
    vectors = Precomputed(None).embed([row["message"] for row in turns]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    books: dict[int, list[int]] = {}
    for i, row in enumerate(turns):
        book = books.setdefault(row["user"], [])
        cosines = vectors[book] @ vectors[i]
        hit = bool(book) and cosines.max() >= 0.8 - 1e-9
        assert row["source_turn"] == (turns[book[int(cosines.argmax())]]["turn"] if hit else -1)
        if not hit:
            book.append(i)


def test_a_memory_without_a_threshold_prompts_at_all_turns_but_the_first(made: Run) -> None:
    serving, turn = (made.turns("mem0", [name])[name].to_pylist() for name in ("serving", "turn"))
    assert sum(each == "prompted" for each in serving) > 0.97 * sum(each > 0 for each in turn)
    assert 0 < rows(made, "prompted")["serving"].count("prompted") < serving.count("prompted")


UNCHECKED = {name: [*texts, ONCE] for name, texts in ARMS.items() if name != "exact"}


def test_cohorts_and_workers_change_no_row_of_a_stand_in(made: Run, tmp_path: Path) -> None:
    again = run(tmp_path / "again", "cohort=3", "workers=2", **UNCHECKED)
    for arm in UNCHECKED:
        assert rows(again, arm) == rows(made, arm), arm


def test_stand_ins_have_the_same_rows_after_a_kill(made: Run, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    some = {arm: UNCHECKED[arm] for arm in ("litellm", "mem0", "prompted")}
    command = [sys.executable, "-m", "skg_bench", "run", *words(out, "cohort=1", "workers=1", **some)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        until = time.monotonic() + 60
        while not list(out.glob("turns/litellm.*")) and time.monotonic() < until:
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
    assert list(out.glob("turns/litellm.*"))
    assert not list(out.glob("turns/prompted.0000005*"))
    again = run(out, "cohort=1", "workers=1", **some)
    for arm in some:
        assert rows(again, arm) == rows(made, arm), arm


# ------------------------------------------------------------------------------------------------ without packages


def model(message: str) -> AskedModel:
    def vectors(texts: Sequence[str]) -> I16:
        return (np.eye(4)[[len(text) % 4 for text in texts]] * SCALE).astype(np.int16)

    return AskedModel(lambda _prompt: answer_words(message, 7), vectors)


@pytest.mark.skipif(find_spec("gptcache") is not None, reason="GPTCache is installed")
def test_gptcache_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GPTCache needs gptcache, which is not installed; `make peers-assistants`"):
        run(tmp_path / "refused", mine=["assistant=gptcache"])


def test_gptcache_unpickles_no_file_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data_map.txt").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    with pytest.raises(UsageError, match=r"unpickles the file data_map.txt of the current folder"):
        GPTCache().answer("a", FIRST_MONDAY, "hello", model("hello"))
    assert [file.name for file in tmp_path.iterdir()] == ["data_map.txt"]


@pytest.mark.skipif(find_spec("mem0") is not None, reason="mem0 is installed")
def test_mem0_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mem0 needs mem0, which is not installed; `make peers-assistants`"):
        run(tmp_path / "refused", mine=["assistant=mem0"])


@pytest.mark.parametrize(("name", "target"), {"mem0": "mem0.Mem0", "GPTCache": "gptcache.GPTCache"}.items())
def test_a_memory_of_others_says_before_a_run_that_it_cannot_be_frozen(name: str, target: str) -> None:
    """A copy would share it: what the frozen one is asked then stands in the memory that goes on."""
    unfrozen = Python(f"skg_bench.assistant.python.{target}", None, {}, "user", False, True).unfrozen()
    assert unfrozen is not None
    assert f"copy.deepcopy fails: TypeError: {name} cannot be copied" in unfrozen


def test_the_stand_in_for_qdrant_finds_the_nearest_of_its_key() -> None:
    qdrant = FakeQdrant("secret")

    def call(method: str, path: str, body: object = None, key: str = "secret") -> HttpReply:
        sent = b"" if body is None else json.dumps(body).encode()
        return asyncio.run(qdrant.handle(HttpRequest(method, f"/collections/answers{path}", {"api-key": key}, sent)))

    def found(vector: list[float], key: str) -> list[object]:
        filtered = {"must": [{"key": "litellm_cache_key", "match": {"value": key}}]}
        answer = json.loads(call("POST", "/points/search", {"vector": vector, "filter": filtered}).parts[0])
        return [(round(hit["score"], 3), hit["payload"]["text"]) for hit in answer["result"]]

    assert call("GET", "/exists", key="another").status == 401
    assert json.loads(call("GET", "/exists").parts[0]) == {"result": {"exists": False}}
    assert json.loads(call("PUT", "", {"vectors": {"size": 2, "distance": "Cosine"}}).parts[0])["result"]
    assert json.loads(call("GET", "/exists").parts[0]) == {"result": {"exists": True}}
    assert call("GET", "").status == call("PUT", "/index", {"field_name": "litellm_cache_key"}).status == 200
    for key, vector, text in (("a", [1.0, 0.0], "east"), ("a", [0.0, 2.0], "north"), ("b", [1.0, 0.0], "other")):
        payload = {"litellm_cache_key": key, "text": text}
        call("PUT", "/points", {"points": [{"id": text, "vector": vector, "payload": payload}]})
    assert found([0.6, 0.8], "a") == [(0.8, "north")]
    assert found([1.0, 0.0], "b") == [(1.0, "other")]
    assert found([1.0, 0.0], "c") == []


# ------------------------------------------------------------------------------------------------ with packages


@needs_gptcache
def test_gptcache_has_the_rows_of_its_stand_in_and_never_calls_pip(made: Run, tmp_path: Path) -> None:
    import gptcache.utils

    names = {"gptcache": "0.9", "default": "0.8"}
    arms = {name: ["assistant=gptcache", f"assistant.parameters.threshold={at}"] for name, at in names.items()}
    real = run(tmp_path / "real", **arms)
    for name in arms:
        assert rows(real, name) == rows(made, name)
    with pytest.raises(UsageError, match="GPTCache needs a_package"):
        gptcache.utils.prompt_install("a_package")


@pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")
def test_mem0_has_the_prompts_of_its_stand_in(made: Run, tmp_path: Path) -> None:
    real = run(tmp_path / "real", mem0=["assistant=mem0"])
    assert rows(real, "mem0", *ROWS[:3]) == rows(made, "mem0", *ROWS[:3])


@needs_litellm
def test_litellm_has_the_rows_of_its_stand_ins(made: Run, tmp_path: Path) -> None:
    real = run(tmp_path / "real", semantic=["assistant=litellm_semantic"], exact=["assistant=litellm"])
    assert rows(real, "semantic") == rows(made, "litellm")
    assert rows(real, "exact", *ROWS[:3]) == rows(made, "dict", *ROWS[:3])
