"""The laws in the Guardian's world: same bits, blindness, books from logs, forks, and runs that were killed."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.compute as pc
import pytest

from skg_bench.app.skillbook.rebuilt import updates
from skg_bench.core.content import Content
from skg_bench.core.domain import outcome_fields
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.world import Draws, Event, Response, Served, Silence, SkillsSaid, Supposing, World
from skg_bench.engine.ensembles import stacks
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.advice.outcome import Outcome
from skg_bench.skillbook.skillbook import rebuild
from tests.laws import kernels, shoppers, world
from tests.laws.worlds_apart import Front, Place, columns, places_of
from tests.processes import await_end, needs_proc
from tests.processes import workers as workers_of

USERS, SOME, FEW = 30, 4, 2  # of the run that others are held against, and of those
EVEN = 9  # a seed whose first users ask equally often: a run takes as many steps as its busiest user has turns
LASTING = (  # arms that have something to go on from
    "live", "thompson", "asked", "population", "model", "slow", "serial", "as_before", "slow_on",
)  # fmt: skip
TRUTH = {f.name for f in schema.turns(5, outcome_fields(Outcome)) if f.metadata[b"truth"] == b"yes"}


@pytest.fixture(scope="module")
def base(once: Callable[..., Path]) -> Run:
    return Run(once("shoppers", lambda folder: shoppers.run(folder, USERS, 512)))


def words(run: Run, arm: str, log: Any, column: str) -> set[str | None]:
    """What a column says."""
    return set(world.rows(run, log, arm, range(USERS))[column].to_pylist())


def test_the_world_is_rich_enough_to_mean_something(base: Run) -> None:
    assert words(base, "live", "turns", "outcome") == {"accepted", "wait", "abandoned", "overridden", "auto_approved"}
    assert words(base, "live", "turns", "tier") == {"analyst", "negotiator", "therapist"}
    assert words(base, "live", "feedback", "kind") == {"outcome", "satisfaction"}
    assert words(base, "live", "updates", "op") == {"ADD", "UPDATE", "TAG", "REMOVE"}
    assert words(base, "live", "learning", "channel") == {"outcome", "satisfaction"}
    assert len(words(base, "live", "turns", "strategy")) > 8
    for arm in ("live", "thompson", "sham", "oracle", "nearest"):
        share = 1 - np.mean(base.turns(arm, ["fallback_to_llm"])["fallback_to_llm"].to_numpy())
        assert 0.05 < share < 0.95, arm
    decided = {arm: base.turns(arm, ["skill", "book_hash"]).to_pydict() for arm in base.arms}
    alike = [(a, b) for i, a in enumerate(base.arms) for b in base.arms[i + 1 :] if decided[a] == decided[b]]
    assert alike == [("live", "as_before"), ("slow", "slow_on")]
    lost = {"slow": "aside", "replayed": "misdirected", "blind": "overwritten"}
    for arm in (*lost, "serial"):
        jobs = base.learning(arm).to_pandas()
        assert ((jobs.meanwhile > 0).mean() > 0.02) == (arm in lost), arm
        assert {"applied", "timed_out", "under_way"} <= set(jobs.result), arm
        assert arm not in lost or jobs[lost[arm]].sum() > 0, arm


def test_kernels_cohorts_and_workers_change_no_bit(base: Run, tmp_path: Path, root: Path) -> None:
    """All at once."""
    kernels.elsewhere("other", root, "-m", "tests.laws.shoppers", str(tmp_path / "there"), str(FEW), "8", "2")
    assert world.differences(base, Run(tmp_path / "there"), range(FEW)) == []


def test_every_skillbook_is_rebuilt_from_the_log_to_the_hash(base: Run) -> None:
    batches = 0
    learning = ("live", "pro", "replace", "separate", "sham", "population", "model", "bare")
    for arm in (*learning, "slow", "replayed", "blind", "serial"):
        for user in range(0, USERS, 3):
            book, count = rebuild(updates(base, arm, user))
            batches += count
            last = base.turns(arm, ["book_version", "book_size"], users=[user]).to_pylist()[-1]
            assert (book.version, sum(skill.active for skill in book.skills)) == (
                last["book_version"], last["book_size"],
            )  # fmt: skip
    assert batches > 1000


@pytest.mark.req("P18")
@pytest.mark.parametrize("arm", ["slow", "serial"])
def test_a_job_begins_when_its_feedback_is_known_and_after_those_of_the_same_sitting(base: Run, arm: str) -> None:
    jobs, said = base.learning(arm).to_pandas(), base.feedback(arm).to_pandas()
    known = said.groupby(["user", "turn", "kind", "value"], observed=True).known_at.max()
    at = known.loc[list(zip(jobs.user, jobs.about, jobs.channel, jobs.value, strict=True))].to_numpy()
    waited = (jobs.start - at).dt.total_seconds()
    assert waited.min() == 0.0
    assert (jobs.end >= jobs.start).all()
    steps = jobs.drop_duplicates(["user", "turn", "about"]).sort_values(["user", "start"])
    apart = steps.groupby("user").start.diff().dt.total_seconds().dropna()
    if arm == "serial":
        ends = steps.groupby("user").end.shift()
        assert (steps.start >= ends)[ends.notna()].all()
    else:
        assert apart.min() == 6.0
        assert (waited > 0).mean() < 0.5  # who says one thing is not kept waiting


def test_a_fork_with_the_same_components_goes_on_as_its_trunk(base: Run) -> None:
    for log in world.LOGS:
        for pair in (("live", "as_before"), ("slow", "slow_on")):
            trunk, fork = (world.rows(base, log, arm, range(USERS)).drop_columns(["arm"]) for arm in pair)
            assert world.unlike(trunk, fork) == [], (log, pair)


def test_without_a_mood_nothing_wears_off(base: Run) -> None:
    turns = {arm: base.turns(arm, ["worth_expected", "worth_fresh"]).to_pandas() for arm in ("fresh", "live")}
    assert (turns["fresh"].worth_expected == turns["fresh"].worth_fresh).all()
    assert (turns["live"].worth_expected != turns["live"].worth_fresh).mean() > 0.3


def test_no_choice_is_worth_more_than_the_best_and_the_oracle_takes_the_best_of_its_book(base: Run) -> None:
    for arm in base.arms:
        turns = base.turns(arm, ["worth_fresh", "worth_book", "worth_best"]).to_pandas()
        assert (turns.worth_book <= turns.worth_best).all(), arm
        assert (turns.worth_fresh <= turns.worth_book).all(), arm
        assert (turns.worth_fresh == turns.worth_book).all() == (arm == "oracle"), arm


# ------------------------------------------------------------------------------------------------------ blindness


@dataclass
class Shown(Front):
    """The world behind, as a world of advice, with what users said and did by event and arm of one stack."""

    said: dict[Place, list[tuple[int, int, int]]] = field(default_factory=dict)
    done: dict[Place, tuple[int, bool]] = field(default_factory=dict)  # outcome, silent

    @property
    def kinds(self) -> Sequence[str]:
        """As behind."""
        return cast("Any", self.world).kinds  # type: ignore[no-any-return]

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """As behind."""
        return cast("Any", self.world).read(contents)  # type: ignore[no-any-return]

    def worth(self, state: Any, event: Any, about: I32, sound: Bool) -> F64:
        """As behind."""
        return cast("Any", self.world).worth(state, event, about, sound)  # type: ignore[no-any-return]

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """As behind, and kept."""
        state, response = self.world.respond(state, event, served, draws)
        did, silent = response.outcome.outcome, cast("Silence", response.case).unspoken
        keys = places_of(draws)
        self.said.update({key: [] for key in keys})
        for row, *rest in zip(*(column.tolist() for column in columns(response.feedback)), strict=True):
            self.said[keys[row]].append(tuple(rest))
        self.done.update(zip(keys, zip(did.tolist(), silent.tolist(), strict=True), strict=True))
        return state, response


@dataclass
class LyingOfAdvice(Shown):
    """Users say and do what they said and did in `told`; all that is true is another thing."""

    told: Shown | None = None

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """Other kinds, and sound where it is not."""
        kind, sound = super().read(contents)
        return ((kind + 5) % len(self.kinds)).astype(np.int32), ~sound

    def worth(self, state: Any, event: Any, about: I32, sound: Bool) -> F64:
        """The less, the more it is."""
        return -super().worth(state, event, about, sound)

    def judge(self, state: Any, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """The contrary of what is."""
        contrary: I32 = 2 - self.world.judge(state, event, row, answer, supposing)
        return contrary

    def events(self, state: Any, turn: int) -> Event:
        """The same messages, about something else, wanted where they are not, of users who like other kinds."""
        event = cast("Any", self.world.events(state, turn))
        order = np.random.default_rng(turn).permutation(len(event.type))
        truth = {name: getattr(event, name)[order] for name in ("type", "intent", "context")}
        return cast("Event", replace(event, **truth, wanted=~event.wanted, logits=event.logits[:, ::-1]))

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """What was done and said the first time, in another mood."""
        said = cast("SkillsSaid", served.said)
        other = replace(served, said=replace(said, fresh=not said.fresh))
        state, response = self.world.respond(state, event, other, draws)
        told, keys = cast("Shown", self.told), places_of(draws)
        rows = [(row, *what) for row, key in enumerate(keys) for what in told.said[key]]
        row, kind, value, delay = np.array(rows, np.int64).reshape(-1, 4).T
        feedback = replace(
            response.feedback, row=row, kind=kind.astype(np.int32), value=value.astype(np.int32), delay=delay
        )
        code, silent = (np.array(column) for column in zip(*(told.done[key] for key in keys), strict=True))
        outcome = replace(response.outcome, outcome=code.astype(np.int32))
        quality = 2 - response.quality
        return state, replace(response, feedback=feedback, outcome=outcome, case=Silence(silent), quality=quality)


def test_what_is_wanted_liked_and_felt_can_be_others_and_no_decision_changes(tmp_path: Path) -> None:
    every = replace(shoppers.plan(SOME, shoppers.BLIND), seed=EVEN, weeks=3)
    for stack in stacks(every.arms):
        plan = replace(every, arms=tuple(every.arms[i] for i in stack))
        told = Shown(plan.simulator)
        first, second = (
            shoppers.carry_out(replace(plan, simulator=cast("World[Any]", simulator)), folder, SOME, 512)
            for simulator, folder in (
                (told, tmp_path / f"first {stack[0]}"),
                (LyingOfAdvice(plan.simulator, told=told), tmp_path / f"second {stack[0]}"),
            )
        )
        for arm in first.arms:
            differ = {difference.split()[-1] for difference in world.differences(first, second, range(SOME), [arm])}
            assert differ <= TRUTH, arm
            assert {"wanted", "worth_expected", "answer_correct", "intent"} <= differ, arm  # it was another truth


# ---------------------------------------------------------------------------------------------------------- kill


@needs_proc
def test_a_run_that_is_killed_goes_on_to_the_same_rows(base: Run, tmp_path: Path, root: Path) -> None:
    out, killed = tmp_path / "killed", 0
    for workers, moment in (("1", 0.3), ("2", 0.1)):
        command = [sys.executable, "-m", "tests.laws.shoppers", str(out), str(SOME), "16", workers, *LASTING]
        process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(list(out.glob("[tp]*s/*.p*")))
        while len(list(out.glob("[tp]*s/*.p*"))) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(moment)
        killed += process.poll() is None
        orphans = workers_of(process.pid) if process.poll() is None else []
        process.kill()
        process.wait()
        await_end(orphans)
    assert killed
    shoppers.run(out, SOME, 16, 1, LASTING)
    assert world.differences(base, Run(out), range(SOME), LASTING) == []
    assert pc.sum(Run(out).turns("live")["skill_learned"]).as_py() > 0
