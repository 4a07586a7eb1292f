"""Several processes that record in one folder, and one that is killed."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from skg_bench.asking import recording
from skg_bench.asking.asking import Completion
from skg_bench.llm.recorded import RecordedModel
from tests.llm.models import Streaming, prompts, sent

ROOT = Path(__file__).resolve().parents[2]
ASKS = """
import sys
from skg_bench.llm.recorded import RecordedModel
from tests.llm.models import Streaming, prompts

model = Streaming(sys.argv[2], salt=sys.argv[3], in_flight=4, seconds=float(sys.argv[4]))
recorded = RecordedModel(model, "both", sys.argv[1])

def done(answers):
    for i, answer in answers.items():
        print(f"question {first + i}", answer.text, flush=True)

for first in range(0, 60, 20):
    recorded.each(prompts(20, first), done)
"""


def started(folder: Path, salt: str = "", seconds: float = 0.0) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OFFLINE": ""}
    arguments = [str(folder / "asked"), str(folder / "sent"), salt, str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-c", ASKS, *arguments], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


def lines(answers: Sequence[Completion]) -> list[str]:
    return [f"question {i} {answer.text}" for i, answer in enumerate(answers)]


def test_processes_whose_model_answers_differently_are_given_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = [started(tmp_path, "pid", 0.002) for _ in range(3)]
    outputs = [sorted(process.communicate(timeout=120)[0].splitlines()) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs[0] == outputs[1] == outputs[2]
    monkeypatch.setenv("OFFLINE", "1")
    played = RecordedModel(Streaming(str(tmp_path / "sent")), "both", str(tmp_path / "asked")).complete(prompts(60))
    assert sorted(lines(played)) == outputs[0]


@pytest.mark.parametrize("after", [1, 7, 24, 41])
def test_a_run_that_was_killed_sends_again_only_what_was_under_way(after: int, tmp_path: Path) -> None:
    process = started(tmp_path, seconds=0.005)
    model = Streaming(str(tmp_path / "sent"))
    deadline = time.monotonic() + 60
    while len(sent(model)) < after:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    handed_on = process.communicate(timeout=60)[0].splitlines()
    before = len(sent(model))
    kept = recording.Recording(tmp_path / "asked")
    kept.refresh()
    assert len(handed_on) <= len(kept) <= before
    output, _ = started(tmp_path).communicate(timeout=60)
    assert sorted(output.splitlines()) == sorted(lines([model.answer(ask) for ask in prompts(60)]))
    assert len(sent(model)) == 60 + before - len(kept)
    again = {line for line, count in Counter(sent(model)).items() if count > 1}
    assert not again & {" ".join([*line.split()[:2], "1"]) for line in handed_on}


def test_a_process_that_forks_shares_no_file_with_its_child(tmp_path: Path) -> None:
    recorded = RecordedModel(Streaming(str(tmp_path / "sent")), "both", str(tmp_path / "asked"))
    recorded.complete(prompts(2))
    child = os.fork()
    if child == 0:
        recorded.complete(prompts(2, 10))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    recorded.complete(prompts(2, 20))
    assert len(list((tmp_path / "asked").glob("*.jsonl.zst"))) == 2
    kept = recording.Recording(tmp_path / "asked")
    kept.refresh()
    assert len(kept) == 6
