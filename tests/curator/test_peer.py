"""Another program as a curator: what it is told, what comes of its answers, and that no bad day of it is a hang."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.asking.asking import Completion, Prompt, TextModel
from skg_bench.asking.wire import in_chat
from skg_bench.core import learning_jobs
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.curator.peer import Peer
from skg_bench.llm.budgeted import Budgeted
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted
from skg_bench.simulator.advice.levels import ACCEPTED, OUTCOME
from skg_bench.skillbook.proposals import Limits, refusals_of
from tests.curator.advised import Turn
from tests.curator.test_writers import books, operations

STAND_IN = Path(__file__).parent / "stand_in_peer.py"
LIMITS = Limits(adds=2, removes=1, tags=3, ratings=1, characters=2000, operations=10)


@dataclass(frozen=True, eq=False)
class Saying:
    """Says what it was asked, and keeps it."""

    end: Any = "ok"
    temperature: float = 0.5
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": self.temperature, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        self.prompts.extend(prompts)
        texts = [in_chat(f"noted: {prompt.user.split(' {')[0]}").text for prompt in prompts]
        return [Completion(text, None, self.end, 10, 0, 5, 0.25, 100.0, "", "served") for text in texts]


def peer(mode: str, llm: TextModel, **changes: Any) -> Peer:
    command = [sys.executable, "-S", str(STAND_IN), mode]
    made = Peer(llm, command, "stand-in", None, "v2", LIMITS, 30.0, 30.0, 5, 1000)
    return replace(made, **changes)


@pytest.fixture
def turn() -> Turn:
    """Two users whose first skill was served and accepted."""
    made = Turn(2)
    books(made, "Say the price in hours.", "Wait for a day.")
    made.hear(OUTCOME, ACCEPTED)
    return made


def test_a_run_is_known_by_the_program_of_its_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, who changed the program got the figures of before, as those of a finished run."""
    monkeypatch.chdir(tmp_path)
    table = "arms={mine: [curator=peer,'curator.command=[python3,peer.py]']}"
    words = ["experiment=guardian", "profile=smoke", table, "reference=mine", "learner=mine", "contrasts=[]"]
    seen = set()
    for text in ("FIRST", "SECOND", "FIRST"):
        Path("peer.py").write_text(text)
        seen.add(prepare(compose(words)).identity)
    assert len(seen) == 2
    with pytest.raises(UsageError, match=r"arm 'mine': curator\.command is null; give the command that starts"):
        prepare(compose([each.replace(",'curator.command=[python3,peer.py]'", "") for each in words]))


def test_a_peer_is_told_turn_and_book_asks_the_arms_model_and_proposes(turn: Turn) -> None:
    model = Saying()
    _, batch = turn.curated(peer("asks", model))
    (jobs,) = turn.jobs
    questions = [prompt.user.split(" {")[0] for prompt in model.prompts]
    assert [each[:2] + each[3:] for each in operations(turn, batch)] == [
        (0, "ADD", f"noted: {questions[0]}"), (1, "ADD", f"noted: {questions[1]}"),
    ]  # fmt: skip
    used = [prompt.user.split("used: ")[1] for prompt in model.prompts]
    assert all(label.startswith("section") for label in used)  # TAGs of them were admitted, two operations each
    assert jobs.operations.tolist() == [2, 2]
    assert jobs.result.tolist() == [learning_jobs.APPLIED] * 2
    assert (jobs.tokens_in.tolist(), jobs.tokens_out.tolist(), jobs.cost_usd.tolist()) == ([10, 10], [5, 5], [0.25] * 2)
    assert turn.texts.read(jobs.reflection, jobs.row) == ['"because"'] * 2
    assert len({prompt.draw for prompt in model.prompts}) == 2  # a sample of its own for each user
    assert all(prompt.raw is not None and prompt.limit == 1000 for prompt in model.prompts)


@pytest.mark.parametrize(
    ("mode", "result", "operations_refused", "words"),
    [
        ("dies", "error", (0, 0), "the peer ended in the middle of the job"),
        ("half", "error", (0, 0), "the peer wrote"),
        ("prints", "error", (0, 0), "'Loading...' in place of an answer"),
        ("echoes", "error", (0, 0), "{key}"),
        ("another_job", "error", (0, 0), "the peer answered another job"),
        ("floods", "error", (0, 0), "in place of an answer"),
        ("surrogate", "error", (0, 0), "in place of an answer"),
        ("insists", "error", (0, 0), "asked more than curator.asks=5 times"),
        ("hangs", "timed out", (0, 0), "peer timed out"),
        ("nonsense", "refused", (0, 1), ""),
        ("another", "refused", (0, 1), ""),
        ("nothing", "unchanged", (0, 0), ""),
        ("many", "applied", (2, 9), ""),
        ("twice", "applied", (1, 1), ""),
        ("gives_up", "error", (0, 0), "cannot, says {key}"),
    ],
)
def test_a_bad_day_of_a_peer_is_a_row_of_learning(
    turn: Turn, mode: str, result: str, operations_refused: tuple[int, int], words: str
) -> None:
    model = Saying()
    curator = peer(mode, model, seconds=1.0 if mode == "hangs" else 30.0)
    turn.curated(curator)
    (jobs,) = turn.jobs
    results = [learning_jobs.RESULTS[code].replace("_", " ") for code in jobs.result]
    assert results[0] == result
    assert results[1] == ("applied" if mode == "gives_up" else result)  # the program began anew, or went on
    assert (jobs.operations[0], jobs.refused[0]) == operations_refused
    assert words in (turn.texts.read(jobs.reason[:1], jobs.row[:1])[0] if words else "")
    asks = {"dies": 1, "hangs": 1, "insists": 5, "gives_up": 0}.get(mode, 0)
    assert jobs.tokens_in[0] == 10 * asks  # what was asked is paid for
    if mode == "another":
        (refusal,) = refusals_of(turn.texts.read(jobs.refusals[:1], jobs.row[:1])[0])
        assert refusal.code == "unknown skill"


def test_the_words_of_an_error_are_those_of_each_run(turn: Turn) -> None:
    for mode in ("echoes", "surrogate", "gives_up"):
        for _ in range(2):
            turn.curated(peer(mode, Saying()))
        first, again = (turn.texts.read(jobs.reason[:1], jobs.row[:1]) for jobs in turn.jobs[-2:])
        assert first == again  # without its key, port and number


def test_a_peer_that_ends_after_each_job_is_started_for_the_next(turn: Turn) -> None:
    turn.curated(peer("once", Saying()))
    assert turn.jobs[0].result.tolist() == [learning_jobs.APPLIED] * 2


def test_a_peer_sees_no_secret_no_proxy_and_no_home(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "http_proxy", "SKG_BENCH_DATABASE", "HF_HOME"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1")
    turn.curated(peer("environment", Saying()))
    (jobs,) = turn.jobs
    seen = json.loads(turn.texts.read(jobs.reflection[:1], jobs.row[:1])[0])
    assert "secret" not in str(seen)
    assert seen["HOME"] != os.environ.get("HOME")
    assert seen["cwd"] == ["output.txt"]  # an empty folder but for its log
    assert seen["PYTHONHASHSEED"] == "0"  # a set in a prompt has one order
    assert not {name for name in seen if name.lower().endswith("proxy")}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("named", 'first line is \'{"peer": "another one"}\', and {"peer": "stand-in"} was expected'),
        ("silent", "it said nothing within curator.starts=1 s"),
    ],
)
def test_a_peer_that_does_not_start_as_agreed_stops_the_run(turn: Turn, mode: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        turn.curated(peer(mode, Saying(), starts=1.0 if mode == "silent" else 30.0, makes="make it"))
    assert words in str(error.value)
    assert "To install it: make it" in str(error.value)


def test_a_missing_program_is_named_with_the_command_that_installs_it(turn: Turn) -> None:
    with pytest.raises(UsageError, match=r"no program runs/none/bin/python; to install it: make peers-ace"):
        turn.curated(replace(peer("asks", Saying()), command=["runs/none/bin/python"], makes="make peers-ace"))
    with pytest.raises(UsageError, match=r"curator\.command is null"):
        turn.curated(replace(peer("asks", Saying()), command=None))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": []}, "curator.command is empty"),
        ({"batches": "v3"}, "curator.batches='v3', valid are v1"),
        ({"seconds": 0.0}, "curator.seconds=0.0 must be above 0"),
        ({"starts": float("nan")}, "curator.starts=nan"),
        ({"asks": 0}, "curator.asks=0 must be at least 1"),
        ({"answer_tokens": 1}, "curator.answer_tokens=1"),
    ],
)
def test_values_that_make_no_peer_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as error:
        peer("asks", Saying(), **changes)
    assert words in str(error.value)


def test_a_failing_model_fails_the_job_and_the_peer_goes_on(turn: Turn) -> None:
    turn.curated(peer("asks", Saying(end="timeout")))
    (jobs,) = turn.jobs
    assert jobs.result.tolist() == [learning_jobs.TIMED_OUT] * 2
    assert jobs.tokens_in.tolist() == [10, 10]


def test_a_spent_budget_stops_the_run_and_ends_the_peer(turn: Turn, tmp_path: Path) -> None:
    model = Saying()
    curator = peer("asks", Budgeted(model, 15, None, str(tmp_path)))
    with pytest.raises(BudgetReached, match="the budget of 15 tokens is spent"):
        turn.curated(curator)
    assert len(model.prompts) == 1
    assert curator._jobs._parts.peer is None


def test_asks_of_a_peer_are_recorded_and_played_again_without_the_model(
    turn: Turn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Saying()
    recorded = RecordedModel(model, "both", str(tmp_path))
    _, first = turn.curated(peer("asks", recorded))
    monkeypatch.setenv("OFFLINE", "1")
    before = operations(turn, first)
    _, again = turn.curated(peer("asks", replace(recorded, llm=Saying())))
    assert operations(turn, again) == before
    assert len(model.prompts) == 2
    jobs = turn.jobs
    assert jobs[0].cost_usd.tolist() == jobs[1].cost_usd.tolist()


def test_a_peer_travels_without_its_program(turn: Turn) -> None:
    curator = peer("asks", Scripted("reader", 3.0, 15.0, 1.0))
    with pytest.raises(UsageError, match="does not know the role 'peer'"):
        turn.curated(curator)
    assert "_jobs" in vars(curator)
    assert pickle.loads(pickle.dumps(curator)) == curator  # noqa: S301


def test_no_peer_is_left_over_after_a_kill_of_the_run(tmp_path: Path) -> None:
    peer_code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    code = f"""
import time
from skg_bench.curator.shared.peer_process import PeerProcess
peer = PeerProcess.start({[sys.executable, "-S", "-c", peer_code]!r}, None)
print(peer.next(time.monotonic() + 60).decode().strip(), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        folder = Path(f"/proc/{pid}/cwd").readlink()
        os.kill(pid, 0)
        run.kill()
    until = time.monotonic() + 60
    while time.monotonic() < until and (_lives(pid) or folder.exists()):
        time.sleep(0.02)
    assert not _lives(pid)
    assert not folder.exists()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
