"""Procedures fill slots and call tools, fail as declared, and are stored answers where nothing generalises."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.app.api import run as simulate
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64
from skg_bench.core.types import CAUSES
from skg_bench.core.world import (
    NEAR,
    PROCEDURE,
    RIGHT,
    STORED,
    UNREAD,
    WRONG,
    Draws,
    Event,
    Execution,
    Response,
    Served,
)
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.judging import Users
from skg_bench.simulator.answers.procedures import Procedures, Running
from skg_bench.simulator.answers.world import AssistantUsers
from tests.core import samples
from tests.runs import tables_alone
from tests.simulator.users import assistant, at, earlier_answers, moment, small_corpus

N = 20_000
EGG, PARIS_ZONE, OSAKA_ZONE, PARIS_RAIN, OSAKA_RAIN, NEWS = range(6)
DRAWS = replace(samples.draws(np.random.default_rng(3), N), event=key(0, np.arange(N)))
SURE: Mapping[str, Any] = {
    "procedures_exist": 1.0, "generalises": 1.0, "generalises_again": 0.0, "slots_filled": 1.0, "lost_per_word": 0.0,
    "lost_unlike": 0.0, "silent": 0.5, "tool_fails": 0.0,
}  # fmt: skip


def world(folder: Path, **changes: Any) -> AssistantUsers:
    return assistant(corpus=small_corpus(folder), **{**SURE, **changes})


def served(
    users: AssistantUsers, how: int, asked: int, source: int, *, right: bool = True, general: bool = True, age: int = 60
) -> Response:
    """N users who ask for `asked` are served by what was made of an answer to `source`; the model is always right."""
    event, served, before = procedure_turn(N, asked, source, right=right, general=general, age=age)
    return users.respond(before, event, replace(served, how=np.full(N, how, np.int32)), DRAWS)[1]


def procedure_turn(
    n: int, asked: int, source: int, *, right: bool = True, general: bool = True, age: int = 60
) -> tuple[Event, Served, Users]:
    """The turn of `n` such users, who are served by procedures."""
    event = moment(np.full(n, asked, np.int32), number=1)
    before = earlier_answers(
        n, np.array([source, -1], np.int32), np.array([right, False]), np.array([age, 0]), np.zeros(2, np.int32),
        np.array([general, False]),
    )  # fmt: skip
    one, none = np.ones(n), np.full(n, -1, np.int32)
    return event, Served(none + 1 + PROCEDURE, none + 1, one, 0 * one, none, UNREAD, none[:, None]), at(event, before)


def draws_of(rows: I64) -> Draws:
    """Those of some users."""
    return samples.some_draws(DRAWS, rows)


def test_a_general_procedure_serves_other_slot_values_and_later_times_of_its_intent(tmp_path: Path) -> None:
    users, year = world(tmp_path), 366 * 86_400
    for asked, source in ((PARIS_ZONE, OSAKA_ZONE), (PARIS_RAIN, OSAKA_RAIN), (NEWS, NEWS), (EGG, EGG)):
        assert (served(users, PROCEDURE, asked, source, age=year).quality == RIGHT).all()
    assert (served(users, PROCEDURE, EGG, NEWS).quality == WRONG).all()
    assert (served(users, PROCEDURE, PARIS_ZONE, OSAKA_ZONE, right=False).quality == WRONG).all()


@pytest.mark.parametrize("change", [{"general": False}, {"procedures_exist": 0.0}])
def test_where_nothing_generalises_a_procedure_is_a_stored_answer(tmp_path: Path, change: dict[str, Any]) -> None:
    users = world(tmp_path, **({} if "general" in change else change))
    for asked in range(-1, 6):
        for source in range(-1, 6):
            for right in (True, False):
                general = change.get("general", True)
                run = served(users, PROCEDURE, asked, source, right=right, general=general, age=7200)
                stored = served(users, STORED, asked, source, right=right, age=7200)
                assert np.array_equal(run.quality, stored.quality)
                assert isinstance(run.case, Execution)
                assert not run.case.failed.any()
                assert (run.case.cause == -1).all()


def test_what_holds_for_ever_is_run_as_rightly_as_it_is_returned(tmp_path: Path) -> None:
    users = world(tmp_path, slots_filled=0.3, tool_fails=0.7)
    for right in (True, False):
        run, stored = (served(users, how, EGG, EGG, right=right).quality for how in (PROCEDURE, STORED))
        assert np.array_equal(run, stored)


@pytest.mark.parametrize(("filled", "silent"), [(0.7, 0.5), (0.2, 0.0), (0.0, 1.0)])
def test_slots_are_filled_wrongly_as_often_as_declared_and_seen_in_part(
    tmp_path: Path, filled: float, silent: float
) -> None:
    made = served(world(tmp_path, slots_filled=filled, silent=silent), PROCEDURE, PARIS_ZONE, OSAKA_ZONE)
    execution, slot = made.case, CAUSES.index("slot")
    assert isinstance(execution, Execution)
    wrong = execution.cause == slot
    assert abs(wrong.mean() - (1 - filled)) < 0.015
    assert abs((wrong & ~execution.failed).mean() - (1 - filled) * silent) < 0.015
    assert (made.quality[wrong & ~execution.failed] == NEAR).all()
    assert (made.quality[execution.failed] == RIGHT).all()  # by the model, which is asked then
    assert np.array_equal(made.answer == 1, execution.failed)  # and whose answer is minted
    assert not execution.latency_ms.any()


def test_what_is_looked_up_needs_a_tool_which_fails_as_declared(tmp_path: Path) -> None:
    users = world(tmp_path, tool_fails=0.25, tool_latency_ms=700.0, tool_usd=0.01)
    made, tool = served(users, PROCEDURE, NEWS, NEWS).case, CAUSES.index("tool")
    assert isinstance(made, Execution)
    assert abs((made.cause == tool).mean() - 0.25) < 0.015
    assert np.array_equal(made.failed, made.cause == tool)
    assert (made.latency_ms == 700).all()
    assert (made.cost_usd == 0.01).all()


def running(**changes: Any) -> Running:
    return Running(Procedures(**{**SURE, "tool_latency_ms": 0.0, "tool_usd": 0.0, **changes}), assistant()._corpus)


def test_longer_messages_and_other_words_make_slots_harder() -> None:
    made, corpus = running(slots_filled=0.9, lost_per_word=0.01, lost_unlike=0.2), assistant()._corpus
    text = np.arange(2_000, dtype=np.int32)
    words = np.array([len(message.replace("'", " ").split()) for message in corpus.messages[:2_000]])
    every = np.zeros(len(text), np.int64)
    same = made.filled(every, text, text)
    short = words <= 6
    assert np.allclose(same[short], 0.9)
    assert same[words > 14].max() < 0.9 - 0.03
    other: I32 = np.roll(text, 900)
    assert (made.filled(every, text, other) <= same + 1e-12).all()
    assert 0.1 < (same - made.filled(every, text, other)).mean() <= 0.2


def test_more_intents_have_procedures_the_larger_their_share() -> None:
    intents: I32 = np.arange(len(assistant().intents), dtype=np.int32)
    every = np.zeros(len(intents), np.int64)
    few, many = (running(procedures_exist=share).exists(every, intents) for share in (0.3, 0.6))
    assert (few <= many).all()
    assert abs(few.mean() - 0.3) < 0.13
    assert abs(many.mean() - 0.6) < 0.13
    assert not running(procedures_exist=1.0).exists(every[:1], np.array([-1], np.int32)).any()  # of one-offs
    general = running(generalises=0.8).general(np.arange(N), DRAWS.event)
    assert abs(general.mean() - 0.8) < 0.015


def test_rows_whose_procedures_differ_are_served_as_users_of_such_procedures_alone(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"procedures_exist": 0.0}, {"slots_filled": 0.4, "silent": 0.0, "generalises": 0.3},
        {"tool_fails": 0.6, "tool_latency_ms": 900.0, "generalises_again": 0.5, "lost_unlike": 0.4},
    ]  # fmt: skip
    ways = [world(tmp_path, **change) for change in changes]
    way_of = np.random.default_rng(0).integers(0, len(ways), N)
    parameters = Procedures(*(np.array([getattr(w.procedures, f.name) for w in ways])[way_of]
                              for f in fields(Procedures)))  # fmt: skip
    mixed = replace(ways[0].judging, running=ways[0].judging.running.under(parameters))
    for asked, source in ((PARIS_ZONE, OSAKA_ZONE), (NEWS, NEWS)):
        for n in (N, N // 3):  # users leave from the end: a later step has fewer rows
            event, served, users = procedure_turn(n, asked, source)
            quality, answer, execution = mixed.answered(users.ledger, event, served, draws_of(np.arange(n)))
            mixed.merge(users.ledger, event, np.arange(1, n, 2), np.zeros(n // 2, np.int32), draws_of(np.arange(n)))
            assert execution is not None
            for j, way in enumerate(ways):
                rows = np.flatnonzero(way_of[:n] == j)
                event_, served_, users_ = procedure_turn(len(rows), asked, source)
                expected = way.judging.answered(users_.ledger, event_, served_, draws_of(rows))
                odd = np.flatnonzero(rows % 2)
                way.merge(users_, event_, odd, np.zeros(len(odd), np.int32), draws_of(rows))
                assert np.array_equal(quality[rows], expected[0])
                assert np.array_equal(answer[rows], expected[1])
                assert expected[2] is not None
                for f in fields(execution):
                    assert np.array_equal(getattr(execution, f.name)[rows], getattr(expected[2], f.name))
                assert np.array_equal(users.ledger.general[rows], users_.ledger.general)


@pytest.mark.parametrize("again", [0.0, 0.3, 1.0])
def test_only_a_second_example_with_another_value_of_the_intent_makes_a_procedure_general(
    tmp_path: Path, again: float
) -> None:
    """`kept`: what it was before; `drawn`: it becomes general as often as declared; `own`: it is made anew."""
    users, n = world(tmp_path, generalises_again=again), 3_000
    draws = replace(DRAWS, event=DRAWS.event[:n])
    for first, then, becomes in (
        (PARIS_ZONE, OSAKA_ZONE, "drawn"), (OSAKA_RAIN, PARIS_RAIN, "drawn"), (PARIS_ZONE, PARIS_ZONE, "kept"),
        (NEWS, NEWS, "kept"), (PARIS_ZONE, PARIS_RAIN, "own"), (EGG, NEWS, "own"), (-1, -1, "own"), (-1, EGG, "own"),
        (EGG, -1, "own"),
    ):  # fmt: skip
        for was, alone in ((True, False), (False, True), (False, False)):
            event = moment(np.full(n, then, np.int32), number=1)
            before = earlier_answers(
                n, np.array([first, then], np.int32), np.ones(2, np.bool_), np.array([60, 0]), None,
                np.array([was, alone]),
            )  # fmt: skip
            state, some = at(event, before), np.arange(0, n, 2)
            users.merge(state, event, some, np.zeros(len(some), np.int32), draws)
            general = state.ledger.general[:, 1]
            assert (general[1::2] == alone).all()  # of users whose skill was not renewed
            assert (state.ledger.general[:, 0] == was).all()
            if becomes == "drawn" and not was:
                assert abs(general[::2].mean() - again) < 0.05
            else:
                assert (general[::2] == (alone if becomes == "own" else was)).all()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("simulator.generalises=1.2", r"generalises=1\.2 must lie in"),
        ("simulator.tool_latency_ms=-1", "tool_latency_ms=-1 must not be negative"),
        ("serving=macro", "stored, prompted or procedure"),
        ("named_by=city", "type or intent"),
    ],
)
def test_bad_parameters_are_refused(tmp_path: Path, override: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        simulate(["experiment=gate", "users=1", "weeks=1", override, f"out={tmp_path / 'run'}"])


def test_a_policy_that_compares_stored_answers_cannot_run_procedures(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="serving=procedure leaves VCache without stored answers to compare"):
        simulate(["experiment=gate", "users=1", "weeks=1", "serving=procedure", "policy=vcache",
                  f"out={tmp_path / 'run'}"])  # fmt: skip


# ------------------------------------------------------------------------------------------------- in the loop


FORK = 30
EAGER = ("simulator.accept=1", "simulator.fatigue=0", "simulator.rated_share=0.9", "simulator.one_off_share=0.1",
         "policy.threshold=0.45", "simulator.volume_spread=0.2", "simulator.day_spread=0.2",
         "simulator.active_low=1")  # fmt: skip
ARMS = f"arms={{skg: [], run: [fork=skg@{FORK}, serving=procedure, freeze=all, freeze_at={FORK}]}}"


@pytest.fixture(scope="module", autouse=True)
def _without_page() -> Iterator[None]:
    with tables_alone():
        yield


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Procedures without a defect."""
    return procedures(tmp_path_factory.mktemp("well"))


def procedures(folder: Path, **changes: Any) -> Run:
    """What was captured up to a fork is run from then on, and nothing is learned any more."""
    values = {**SURE, **changes}
    parameters = [f"simulator.{name}={value}" for name, value in values.items()]
    out = folder / "-".join(f"{value:g}" for value in values.values())
    return simulate([*EAGER, *parameters, ARMS, "reference=skg", "users=32", "weeks=1", "workers=1", f"out={out}"])


def causes(run: Run) -> list[str]:
    words: list[str] = run.turns("run", ["cause"])["cause"].to_pylist()
    return words


@pytest.mark.parametrize(
    ("change", "bar"),
    [({"slots_filled": 0.0}, "slot"), ({"tool_fails": 1.0}, "tool"), ({"generalises": 0.0}, "generality")],
)
def test_a_planted_defect_moves_its_own_bar_and_no_other(
    well: Run, tmp_path: Path, change: dict[str, Any], bar: str
) -> None:
    ill = procedures(tmp_path, **change)
    moved = {(a, b) for a, b in zip(causes(well), causes(ill), strict=True) if a != b}
    assert moved
    if bar == "generality":  # with no right skill left, a skill about something else is the threshold's fault
        assert bar in {after for _, after in moved} <= {bar, "threshold"}
    else:
        assert moved == {("none", bar)}
    for run in (well, ill):
        fallen, means = summary.read_summary(run).waterfall["run"], summary.read_summary(run).arms["run"]
        lost = sum(f.mean or 0.0 for cause, f in fallen.losses.items() if cause in CAUSES)
        assert fallen.ceiling - lost == pytest.approx(means["utility"].mean, abs=1e-9)


def test_where_nothing_comes_back_the_llm_answers_and_both_are_paid_for(tmp_path: Path) -> None:
    run = procedures(tmp_path, slots_filled=0.5, silent=0.5, tool_fails=0.5)
    turns = run.turns("run").to_pandas()
    failed, ran = turns[turns.serving == "procedure_failed"], turns[turns.serving == "procedure"]
    assert len(failed) > 20
    assert len(ran) > 20
    assert failed.fallback_to_llm.all()
    assert (failed.skill == -1).all()
    assert failed.matched_skill.isna().all()
    assert set(failed.cause) <= {"slot", "tool", *CAUSES}
    assert (failed.tokens_out > 0).all()
    assert (failed.latency_ms > 300).all()
    assert not ran.fallback_to_llm.any()
    assert not ran.tokens_out.any()
    assert set(ran.latency_ms) <= {50.0, 350.0}
    calls = summary.read_summary(run).arms["run"]["hit_rate"].mean
    assert calls == pytest.approx((~turns.fallback_to_llm).groupby(turns.user).mean().mean())


def test_the_ceiling_of_procedures_is_what_the_user_asked_for_before(well: Run, tmp_path: Path) -> None:
    """By intent; a one-off, in the same words. It is told where some arm runs procedures."""
    turns = well.turns("run", ["user", "turn", "intent", "message"]).to_pandas()
    about = turns.intent.astype(object).fillna(turns.message.astype(object))
    before = about.groupby([turns.user, about]).cumcount() > 0
    ceiling = summary.read_summary(well).ceiling
    assert ceiling["procedure"].mean == pytest.approx(before.groupby(turns.user).mean().mean())
    assert (ceiling["procedure"].mean or 0.0) > (ceiling["1"].mean or 0.0)
    plain = simulate(["experiment=gate", "users=2", "weeks=1", f"out={tmp_path / 'plain'}"])
    assert "procedure" not in summary.read_summary(plain).ceiling


@pytest.mark.usefixtures("bare")
def test_named_by_intent_one_skill_serves_the_whole_intent(tmp_path: Path) -> None:
    """The next city is the same skill, renewed; named by request, it is another one."""
    arms = "arms={type: [serving=procedure], intent: [serving=procedure, named_by=intent]}"
    run = simulate([*EAGER, "policy.threshold=0.95", arms, "reference=type", "users=24", "weeks=1",
                    "simulator.bad_name_share=0", f"out={tmp_path / 'run'}"])  # fmt: skip
    names = {arm: run.updates(arm, ["op", "name", "user"]).to_pandas() for arm in ("type", "intent")}
    added = {arm: rows[rows.op == "ADD"] for arm, rows in names.items()}
    assert len(added["intent"]) < len(added["type"])
    assert (names["intent"].op == "UPDATE").sum() > (names["type"].op == "UPDATE").sum()
    assert not added["intent"].duplicated(["user", "name"]).any()
    assert set(added["type"].name) - set(added["intent"].name)


@pytest.mark.usefixtures("bare")
def test_merging_the_requests_of_an_intent_makes_its_procedures_general(tmp_path: Path) -> None:
    """Where none generalises from one example: who is asked for a name for each request has no use of the second."""
    arms = "arms={type: [serving=procedure], intent: [serving=procedure, named_by=intent], stored: [named_by=intent]}"
    eager = [*EAGER, "simulator.bad_name_share=0", "simulator.generalises=0", "simulator.procedures_exist=1",
             "simulator.slots_filled=1", "simulator.tool_fails=0", arms, "reference=type", "users=12",
             "weeks=2"]  # fmt: skip
    right: dict[str, list[float]] = {"type": [], "intent": [], "stored": []}
    for again in (0, 0.5, 1):
        run = simulate([*eager, f"simulator.generalises_again={again}", f"out={tmp_path / str(again)}"])
        for arm, shares in right.items():
            turns = run.turns(arm, ["skill", "answer_correct"]).to_pandas()
            shares.append(float(turns.answer_correct[turns.skill >= 0].mean()))
    assert right["type"][0] == right["type"][1] == right["type"][2]
    assert right["stored"][0] == right["stored"][1] == right["stored"][2]
    assert right["intent"][0] + 0.1 < right["intent"][1] < right["intent"][2]
