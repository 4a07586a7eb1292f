"""Budgeted: what a run may spend, what it counts, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.asking.asking import Completion, Kept, placed
from skg_bench.asking.spending import Spending, SpendingFile
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.llm.budgeted import Budgeted
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted
from tests.llm.models import Streaming, Whole, prompts, sent

ROOT = Path(__file__).resolve().parents[2]
EACH = 15  # tokens of an ask of these models, which costs 0.5 USD


@pytest.fixture
def model(tmp_path: Path) -> Streaming:
    return Streaming(str(tmp_path / "sent"), in_flight=4)


def budgeted(model: Whole, folder: Path, tokens: int | None = None, usd: float | None = None) -> Budgeted:
    return Budgeted(model, tokens, usd, str(folder / "asked"))


def total(folder: Path) -> Spending:
    return SpendingFile(folder / "asked" / "spent.jsonl").total()


@pytest.mark.parametrize("kind", [Whole, Streaming])
def test_without_a_limit_answers_are_those_of_the_model_and_all_are_counted(kind: type[Whole], tmp_path: Path) -> None:
    model = kind(str(tmp_path / "sent"))
    assert budgeted(model, tmp_path).complete(prompts(70)) == [model.answer(ask) for ask in prompts(70)]
    assert total(tmp_path) == Spending(70, 70 * EACH, 35.0)


def test_answers_without_a_value_cost_what_they_say(tmp_path: Path) -> None:
    model = Whole(str(tmp_path / "sent"), ends="timeout")
    budgeted(model, tmp_path).complete(prompts(3))
    assert total(tmp_path).tokens == 30
    assert total(tmp_path).usd == pytest.approx(0.3)


@pytest.mark.parametrize("limit", [{"tokens": 10 * EACH}, {"tokens": 10 * EACH - 1}, {"usd": 5.0}, {"usd": 4.8}])
def test_at_the_budget_no_ask_is_sent_what_is_under_way_ends_and_is_handed_on(
    limit: dict[str, Any], model: Streaming, tmp_path: Path
) -> None:
    handed: dict[int, Completion] = {}
    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, **limit).each(prompts(40), handed.update)
    assert 10 <= len(sent(model)) <= 10 + model.in_flight
    assert len(handed) == len(sent(model)) == total(tmp_path).asks
    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, **limit).complete(prompts(1, 50))
    assert len(handed) == len(sent(model))


def test_a_model_that_answers_calls_as_a_whole_goes_over_by_a_call_at_most(tmp_path: Path) -> None:
    model = Whole(str(tmp_path / "sent"))
    handed: dict[int, Completion] = {}
    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, tokens=70 * EACH).each(prompts(1_000), handed.update)
    assert len(sent(model)) == len(handed) == 128


def test_the_end_says_what_was_spent_and_how_to_go_on(model: Streaming, tmp_path: Path) -> None:
    message = (
        r"the budget of 1 tokens and 100 USD is spent: 4 asks took 60 tokens and 2\.0000 USD\. Run the same "
        r"command with a larger curator\.llm\.tokens to go on: what is recorded \(curator\.llm=recorded\) is not asked "
        r"again, finished users never"
    )
    with pytest.raises(BudgetReached, match=f"^{message}$"):
        budgeted(model, tmp_path, 1, 100).complete(prompts(40))
    with pytest.raises(BudgetReached, match=r"larger curator.llm\.usd to go on"):
        budgeted(model, tmp_path, None, 0.1).complete(prompts(40))


@pytest.mark.parametrize("asks", [5, 7, 8])
def test_a_budget_that_is_reached_while_the_last_asks_are_under_way_ends_no_call(
    asks: int, model: Streaming, tmp_path: Path
) -> None:
    last = budgeted(model, tmp_path, tokens=asks * EACH)
    assert len(last.complete(prompts(8))) == 8
    assert last.complete([]) == []
    with pytest.raises(BudgetReached):
        last.complete(prompts(1))


def test_a_larger_budget_goes_on_from_what_was_spent(model: Streaming, tmp_path: Path) -> None:
    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, tokens=10 * EACH).complete(prompts(40))
    count = len(sent(model))
    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, tokens=20 * EACH).complete(prompts(40, 100))
    assert 20 <= len(sent(model)) <= 20 + model.in_flight
    assert total(tmp_path).asks == len(sent(model)) > count


def test_a_recorded_run_at_its_budget_goes_on_and_pays_for_no_ask_twice(model: Streaming, tmp_path: Path) -> None:
    def run(tokens: int) -> RecordedModel:
        return placed(RecordedModel(Budgeted(model, tokens, None, None), "both", None), tmp_path)

    with pytest.raises(BudgetReached):
        run(10 * EACH).complete(prompts(40))
    assert len(sent(model)) < 20
    assert run(100 * EACH).complete(prompts(40)) == [model.answer(ask) for ask in prompts(40)]
    assert len(sent(model)) == 40
    assert total(tmp_path) == Spending(40, 40 * EACH, 20.0)
    assert run(1).complete(prompts(40)) == [model.answer(ask) for ask in prompts(40)]  # what is played costs nothing


def test_an_error_of_the_model_or_the_caller_passes(model: Streaming, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the key is wrong"):
        budgeted(replace(model, fails_at=5), tmp_path, tokens=10**9).complete(prompts(20))

    def done(_: Mapping[int, Completion]) -> None:
        raise BudgetReached("another one's")

    with pytest.raises(BudgetReached, match="another one's"):
        budgeted(model, tmp_path, tokens=10**9).each(prompts(1), done)


def test_an_answer_that_could_not_be_handed_on_after_the_budget_was_reached_ends_in_its_error(
    model: Streaming, tmp_path: Path
) -> None:
    taken: dict[int, Completion] = {}

    def done(answers: Mapping[int, Completion]) -> None:
        if taken:
            raise UsageError("the disk is full")
        taken.update(answers)

    with pytest.raises(BudgetReached):
        budgeted(model, tmp_path, tokens=EACH).each(prompts(2), done)
    assert len(taken) == 1


@pytest.mark.parametrize("limit", [{"tokens": 0}, {"tokens": -5}, {"usd": 0}, {"usd": -0.5}, {"usd": float("nan")}])
def test_a_budget_of_nothing_is_refused(limit: dict[str, Any], model: Streaming, tmp_path: Path) -> None:
    (name,) = limit
    with pytest.raises(UsageError, match=rf"llm\.{name}={limit[name]} must be more than 0; null is no limit"):
        budgeted(model, tmp_path, **limit)


def test_a_budget_in_usd_needs_prices(model: Streaming, tmp_path: Path) -> None:
    unpriced = replace(model, priced=False)
    budgeted(unpriced, tmp_path, tokens=5)
    with pytest.raises(
        UsageError, match=r"curator.llm\.usd=1\.0 needs the prices .* usd_per_million_in, .*usd_per_million_out"
    ):
        budgeted(unpriced, tmp_path, usd=1.0)


def test_a_folder_that_is_not_given_is_the_runs_own_and_one_that_is_given_stays(model: Streaming) -> None:
    made = placed(Budgeted(model, 5, None, None), Path("run"))
    assert isinstance(made, Kept)
    assert made.folder == "run/asked"
    assert placed(made, Path("other")) is made
    with pytest.raises(UsageError, match=r"set curator.llm\.folder"):
        Budgeted(model, 5, None, None).complete(prompts(1))


def test_what_the_model_is_comes_from_the_one_inside() -> None:
    model = Scripted("learner", 3.0, 15.0, 4000)
    made = Budgeted(model, 5, None, None)
    assert (made.settings, made.prices) == (model.settings, model.prices)
    assert set(made.beside) == {f.name for f in fields(made)} - {"llm"}


ASKS = """
import sys
from pathlib import Path
from skg_bench.core.errors import BudgetReached
from skg_bench.llm.budgeted import Budgeted
from tests.llm.models import Streaming, prompts

model = Streaming(sys.argv[2], in_flight=4, seconds=0.004)
try:
    Budgeted(model, int(sys.argv[3]), None, sys.argv[1]).complete(prompts(500))
except BudgetReached:
    sys.exit(2)
"""


def started(folder: Path, asks: int) -> "subprocess.Popen[bytes]":
    arguments = [str(folder / "asked"), str(folder / "sent"), str(asks * EACH)]
    return subprocess.Popen(
        [sys.executable, "-c", ASKS, *arguments], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT
    )


def test_two_processes_go_over_by_the_asks_in_flight_at_most(model: Streaming, tmp_path: Path) -> None:
    processes = [started(tmp_path, 60) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [2, 2]
    assert 60 <= len(sent(model)) <= 60 + 2 * model.in_flight
    assert total(tmp_path) == Spending(len(sent(model)), len(sent(model)) * EACH, len(sent(model)) / 2)


def test_totals_outlive_a_process_that_is_killed(model: Streaming, tmp_path: Path) -> None:
    process = started(tmp_path, 10_000)
    deadline = time.monotonic() + 60
    while len(sent(model)) < 30:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    before, count = total(tmp_path).asks, len(sent(model))
    assert count - model.in_flight <= before <= count
    budgeted(model, tmp_path).complete(prompts(5))
    assert total(tmp_path).asks == before + 5


def test_a_last_line_that_is_torn_at_any_byte_does_not_count_and_is_replaced(model: Streaming, tmp_path: Path) -> None:
    budgeted(model, tmp_path).complete(prompts(3))
    path = tmp_path / "asked" / "spent.jsonl"
    data = path.read_bytes()
    ends = [0, *(match.end() for match in re.finditer(b"\n", data))]
    answer = model.answer(prompts(1)[0])
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends) - 1
        assert total(tmp_path).asks == whole
        assert SpendingFile(path).add([answer]).asks == whole + 1
        assert path.read_bytes() == data[: ends[whole]] + path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(data + b"x" * 500)
    SpendingFile(path).add([answer])
    assert b"x" not in path.read_bytes()


@pytest.mark.parametrize("line", ["half a line", "[]", '{"asks": 1}', '{"asks": "x", "tokens": 1, "usd": 1}'])
def test_totals_that_cannot_be_read_are_refused(line: str, model: Streaming, tmp_path: Path) -> None:
    budgeted(model, tmp_path).complete(prompts(3))
    path = tmp_path / "asked" / "spent.jsonl"
    with path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UsageError, match=r"spent\.jsonl does not say what is spent: its last line .* move it away"):
        budgeted(model, tmp_path).complete(prompts(3))
    path.write_bytes(b"x" * 10_000)
    with pytest.raises(UsageError, match="it has no line break near its end"):
        budgeted(model, tmp_path).complete(prompts(3))


def test_a_long_ledger_is_read_from_its_end(model: Streaming, tmp_path: Path) -> None:
    ledger = SpendingFile(tmp_path / "asked" / "spent.jsonl")
    answer = model.answer(prompts(1)[0])
    totals = [ledger.add([answer]).asks for _ in range(300)]
    assert totals == list(range(1, 301))
    assert ledger.path.stat().st_size > 10_000


def test_only_the_user_may_read_what_was_spent_and_a_place_that_cannot_be_written_is_refused(
    model: Streaming, tmp_path: Path
) -> None:
    budgeted(model, tmp_path).complete(prompts(1))
    assert (tmp_path / "asked").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "asked" / "spent.jsonl").stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="what is spent cannot be kept in"):
        budgeted(model, tmp_path / "file").complete(prompts(1))
