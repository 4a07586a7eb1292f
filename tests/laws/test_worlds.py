"""A world that remembers: users with moods, who say two kinds of things, keep all laws of the engine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.compute as pc
import pytest

from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.gate.panel import panel
from skg_bench.app.counterexample.shrink import smallest_case
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, feedback_rows, joined_rows
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.world import FALLBACK, RIGHT, Draws, Event, Reaction, Response, Served, Stream, Supposing, World
from skg_bench.runfolder.run import Run
from tests.laws import world
from tests.laws.worlds_apart import Front
from tests.runs import save

USERS, FEW, DAY = 24, 8, 86_400


@dataclass(frozen=True)
class Mood:
    """How content users are."""

    good: F64  # [B]


@dataclass
class Touchy(Front):
    """Who is out of temper rates nothing, and a day later everybody says whether the LLM's answer was of use."""

    stream: Stream = "stateful"

    def begin(self, seed: int, users: I32, weeks: int) -> Any:
        return self.world.begin(seed, users, weeks), Mood(np.ones(len(users)))

    def events(self, state: Any, turn: int) -> Event:
        return self.world.events(state[0], turn)

    def merge(self, state: Any, event: Event, row: I64, earlier: I32, draws: Draws) -> Any:
        return self.world.merge(state[0], event, row, earlier, draws), state[1]

    def judge(self, state: Any, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        return self.world.judge(state[0], event, row, answer, supposing)

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        users, response = self.world.respond(state[0], event, served, draws)
        good = 0.75 * state[1].good + 0.25 * (response.quality == RIGHT)
        ratings = response.feedback.rows(good[response.feedback.row] > 0.6)
        useful = np.where(served.how == FALLBACK, response.quality == RIGHT, -1)
        later = feedback_rows(AGREES, useful, np.full(len(good), DAY))
        return (users, Mood(good)), replace(response, feedback=joined_rows([ratings, later]))

    def offer(self, state: Any, event: Event, offers: Bool, draws: Draws) -> tuple[Any, Reaction]:
        users, reaction = self.world.offer(state[0], event, offers, draws)
        return (users, state[1]), reaction


def run(out: Path, arms: Sequence[str], cohort: int, stream: Stream = "stateful", users: int = USERS) -> Run:
    """Arms of the dense world, with moods."""
    plan = world.plan(users, tuple(arms))
    touchy = cast("World[Any]", Touchy(plan.simulator, stream))
    return world.carry_out(replace(plan, seed=world.EVEN, simulator=touchy), out, users, cohort)


def test_moods_and_two_kinds_of_feedback_are_the_same_bits_in_any_cohort_stack_and_fork(tmp_path: Path) -> None:
    arms = ("skg", "as_before", "hindsight", "donor", "always", "vcache")
    whole, small = run(tmp_path / "whole", arms, 256), run(tmp_path / "small", arms, 5, users=FEW)
    alone = run(tmp_path / "alone", ("skg", "as_before"), 256)
    assert world.differences(whole, small, range(FEW)) == []
    assert world.differences(whole, alone, range(USERS), ["skg", "as_before"]) == []
    live, fork = (world.rows(whole, "turns", arm, range(USERS)).drop_columns(["arm"]) for arm in ("skg", "as_before"))
    assert live.equals(fork)  # a mood goes on in a fork


def test_what_is_done_to_users_changes_what_they_say(tmp_path: Path) -> None:
    touchy = run(tmp_path / "run", ("never", "always"), 256)
    rated, late = {}, {}
    for arm in touchy.arms:
        rows = touchy.feedback(arm)
        rated[arm] = pc.sum(pc.equal(rows["kind"], "rating")).as_py()
        late[arm] = rows.filter(pc.equal(rows["kind"], "agrees"))
    assert rated["always"] < 0.9 * rated["never"]  # served wrongly, they fall silent
    gap = pc.subtract(late["never"]["known_at"], late["never"]["time"]).cast("int64").to_numpy()
    assert set(gap.tolist()) == {DAY * 1000}


def test_where_events_depend_on_what_was_done_nothing_is_paired_by_event(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"stream: reactive.* skg and as_before cannot be held against one another"):
        run(tmp_path / "run", ("skg", "as_before"), 256, "reactive")
    alone = run(tmp_path / "alone", ("skg",), 256, "reactive")
    manifest = json.loads((alone.path / "manifest.json").read_text()) | {"stream": "reactive"}
    save(alone.path, manifest)
    for what, pair in (("a comparison", compare), ("a gate", lambda runs: panel(runs[0], "skg")),
                       ("a counterexample", lambda runs: smallest_case(runs[0], "skg", "skg"))):  # fmt: skip
        with pytest.raises(UsageError, match=rf"other answers \(stream: reactive\), and {what} holds"):
            pair([Run(alone.path)])
