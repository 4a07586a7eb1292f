"""Answers that somebody else's assistant gives again have the same lift as skills; exactly, if it can forget one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.lift.first_order import Lifts, first_order
from skg_bench.app.left_out import exact_lifts
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import Run
from tests.analysis.lift.conftest import NEVER, arms
from tests.analysis.lift.test_exact import gap_of_runs
from tests.app.test_cli import call, refused

TURN = 112  # of each user, whose answer a run is made without: two users get it again


def played(name: str, **parameters: int) -> list[str]:
    given = [f"+assistant.parameters.{key}={value}" for key, value in parameters.items()]
    target = f"assistant.target=tests.assistant.python.objects.{name}"
    return ["assistant=python", target, "assistant.controls=false", *given]


@pytest.fixture(scope="module")
def answered(once: Callable[..., Path]) -> Run:
    table = {"never": NEVER, "plain": played("ExactCache"), "dropping": played("Dropping")}
    table |= {"pretending": played("Pretending"), "skipping": played("Skipping", skip=TURN)}
    options = [
        "users=6",
        "weeks=3",
        "seed=3",
        "simulator.corpus=builtin_120",
        "simulator.volume_spread=0.2",
        "workers=1",
        "reference=never",
        arms(**table),
    ]
    return Run(once("answered", lambda folder: skg_bench.run([*options, f"out={folder}"], progress=False)))


def exact(run: Run, lifts: Lifts, chosen: I64, arm: str) -> F64:
    return exact_lifts(run, arm, lifts, chosen, lambda _done, _total: None, trust=True)


def test_first_orders_of_answers_and_the_rest_are_the_whole_difference(answered: Run) -> None:
    lifts = first_order(answered, "plain", "never")
    assert lifts.whole == pytest.approx(sum(gap_of_runs(answered, "plain", "never", 6)), abs=1e-9)
    turns = answered.turns("plain", ["source_turn", "message", "answer_correct"]).to_pandas()
    again = turns[turns["source_turn"] >= 0]
    assert len(lifts.skill) == len(again.groupby(["user", "source_turn"])) > 20
    assert lifts.served.sum() == len(again)
    assert lifts.right.sum() == again["answer_correct"].sum()
    for i in (0, len(lifts.skill) - 1):
        source = turns[(turns["user"] == lifts.users[lifts.user[i]]) & (turns["turn"] == lifts.skill[i])]
        assert lifts.name[i] == source["message"].item()
    assert 0 < lifts.ratings[:, 1].sum() < len(again)


def test_an_object_that_forgets_shows_what_a_run_without_the_answer_shows(answered: Run) -> None:
    lifts = first_order(answered, "dropping", "never")
    chosen = np.flatnonzero(lifts.skill == TURN)
    assert len(chosen) == 2
    shown = gap_of_runs(answered, "dropping", "skipping", 6)
    worth = exact(answered, lifts, chosen, "dropping")
    assert worth == pytest.approx([shown[user] for user in lifts.user[chosen]], abs=1e-9)
    assert (worth != 0).any()
    others = np.setdiff1d(np.arange(6), lifts.user[chosen])  # never given again
    assert [shown[user] for user in others] == [0.0] * len(others)


def test_objects_that_cannot_forget_are_refused_with_what_to_write(answered: Run) -> None:
    message = refused("skills", str(answered.path), "--arm", "plain", "--exact", "2", "--trust")
    assert "ExactCache has no method forget; write forget(self, user, reference)" in message
    code, printed, _ = call("skills", str(answered.path), "--arm", "plain")
    assert code == 0
    assert "answers that came back of 6 users" in printed
    assert "has no skillbooks" in refused(
        "skills", str(answered.path), "--arm", "plain", "--remove", "2", "--out", str(answered.path / "books")
    )


def test_an_object_that_only_pretends_to_forget_is_found_out(answered: Run) -> None:
    lifts = first_order(answered, "pretending", "never")
    with pytest.raises(UsageError, match=r"Pretending.forget dropped nothing: user \d was given the answer of turn"):
        exact(answered, lifts, np.arange(3), "pretending")
