"""A budget of calls: what a step costs, in a number that no other load of the machine changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.assistant.pipeline.stack import Stack
from tests.engine import calls


@pytest.mark.parametrize("run", calls.RUNS)
def test_a_run_makes_no_more_steps_and_calls_than_the_file_says(tmp_path: Path, run: str) -> None:
    """`python -m tests.engine.calls --write` accepts more; the commit says what they are for."""
    assert calls.over(calls.counted(calls.plan(run, tmp_path)), calls.committed()[run]) == []


def test_a_step_of_the_default_arm_makes_no_more_than_700_calls() -> None:
    """Whatever the file is made to say."""
    assert calls.committed()["default arm"].a_step <= 700


def test_one_copy_of_an_observation_more_a_step_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, views = calls.plan("default arm", tmp_path), Stack.views
    before = calls.counted(made)
    assert calls.counted(made) == before

    def copying(stack: Stack, seen: Any, *more: Any) -> Any:
        return views(stack, replace(seen), *more)

    monkeypatch.setattr(Stack, "views", copying)
    assert calls.over(calls.counted(made), before)
