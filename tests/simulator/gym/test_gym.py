"""Tasks of reasoning-gym: entries that their own checks know, and twins that differ in what comes back alone."""

import inspect
import re
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from skg_bench.asking.solving import PROCEDURES, REFLECT, UNSOLVED, solving
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.simulator.gym.entries import RUN_AS_CODE, families, gym_entries, solved
from skg_bench.simulator.gym.twins import SOLUTION, TASK_WORDINGS, Reuse
from skg_bench.simulator.gym.world import Gym, Solvers

pytestmark = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="the extra gym is not installed")

FAMILIES = ("gcd", "lcm", "products", "chain_sum", "count_bits", "count_primes")
USERS = np.arange(400, dtype=np.int32)


def world(reuse: Reuse = "family", **changes: Any) -> Gym:
    return Gym(
        **{"families": FAMILIES, "reuse": reuse, "groups": 2, "times": 3, "rated": 0.3, "accepts": 0.7, **changes}
    )


def begun(reuse: Reuse, seed: int = 3) -> tuple[Gym, Solvers]:
    made = world(reuse)
    return made, made.begin(seed, USERS, 4)


@pytest.fixture(scope="module")
def twins() -> dict[Reuse, tuple[Gym, Solvers]]:
    names: tuple[Reuse, ...] = ("entry", "family", "none")
    return {reuse: begun(reuse) for reuse in names}


def test_each_entry_is_solved_by_its_answer_and_by_no_other_words() -> None:
    entries = gym_entries((*FAMILIES, "calendar_arithmetic", "time_intervals"))
    assert len({each.question for each in entries}) == len(entries) > 400
    for each in entries:
        assert solved(each, each.answer)
        assert solved(each, f"I think so.\n<answer> {each.answer} </answer>")
        assert not solved(each, each.question)
        assert not solved(each, UNSOLVED)
        assert not solved(each, "")
        assert not solved(each, f"{each.answer}1") or each.family == "time_intervals"  # it reads "5 days1" as 5 days


def test_a_check_of_a_family_knows_more_right_answers_than_one_and_survives_any_words() -> None:
    (entry, *_) = gym_entries(("jugs",))
    assert solved(entry, entry.answer.replace(", ", " , "))
    for words in ("{", "[1]", "\x00", "null", "word " * 10_000):
        assert not solved(entry, words)


def test_tasks_whose_checks_take_what_answers_nothing_are_left_out() -> None:
    entries = gym_entries(("coin_flip", "polynomial_equations"))  # these take 0 for many numbers
    assert {each.family for each in entries} == {"coin_flip", "polynomial_equations"}
    assert len(entries) < 110
    for each in entries:
        assert not any(solved(each, words) for words in (UNSOLVED, "0", "1") if words != each.answer)


def test_families_whose_checks_run_words_as_code_are_refused() -> None:
    from reasoning_gym.factory import DATASETS

    runs = re.compile(r"(?:\beval|parse_expr)\(answer|parse_expr\(\s*answer")
    found = {
        name for name, (kind, _) in DATASETS.items() if runs.search(inspect.getsource(sys.modules[kind.__module__]))
    }
    assert found - {"propositional_logic"} == RUN_AS_CODE  # that one has a parser of its own
    assert not RUN_AS_CODE & {*families()}


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("gdc", *FAMILIES), "there is no family 'gdc'; did you mean 'gcd'?"),
        (("gcd", *FAMILIES), "gcd stands there twice"),
        (("countdown", *FAMILIES), "the check of countdown runs what a model says as Python code"),
        (("list_functions", *FAMILIES), "list_functions makes other tasks each time"),
        (("rush_hour", *FAMILIES), "rush_hour has no task whose check tells a right answer from others"),
        (("sokoban", *FAMILIES), "sokoban has no task whose check tells a right answer from others"),
        (("game_of_life_halting", *FAMILIES), "game_of_life_halting has no task whose check tells"),
    ],
)
def test_families_that_cannot_be_played_are_refused_with_what_is_valid(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], says: str
) -> None:
    """With few tasks of each, as 128 of sokoban take 6 s to make."""
    monkeypatch.setattr("skg_bench.simulator.gym.entries.ENTRIES", 8)
    with pytest.raises(UsageError) as error:
        gym_entries(names)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"families": ("nowhere",)}, "there is no family 'nowhere'"),
        ({"groups": 3}, "is 9 tasks, more than the 6 of simulator.families"),
        ({"times": 7, "groups": 1}, "1 to 6"),
        ({"reuse": "both"}, "simulator.reuse='both', valid are family, entry, none"),
        ({"rated": 2}, "simulator.rated=2 must lie in"),
    ],
)
def test_what_cannot_be_played_is_refused_with_what_is_valid(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        world(**changes)
    assert says in str(error.value)


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(UsageError, match=r"simulator=gym needs reasoning_gym.*gym"):
        families()


def test_twins_have_as_many_tasks_at_the_same_times_in_the_same_wordings(
    twins: dict[Reuse, tuple[Gym, Solvers]],
) -> None:
    texts = {reuse: np.array(state.events.text) for reuse, (_, state) in twins.items()}
    first = twins["none"][1].events
    for _, state in twins.values():
        events = state.events
        assert (np.diff(events.time, axis=1) > 0).all()
        assert events.time.max() < 4 * 7 * 86400
        assert (events.time == first.time).all()
        assert (events.n == 12).all()
        assert (events.text[:, :4] == first.text[:, :4]).all()  # the first task of each group, and its answer
        assert (events.text % 7 == first.text % 7).all()
        assert (state.events.truth.type[:, ::2] == state.events.truth.type[:, 1::2]).all()
    lengths = {
        reuse: sum(len(twins[reuse][0].messages[i]) for i in each.ravel().tolist()) for reuse, each in texts.items()
    }
    assert max(lengths.values()) < 1.01 * min(lengths.values())
    by_family = {reuse: np.bincount(state.events.truth.intent.ravel()) for reuse, (_, state) in twins.items()}
    assert all(np.ptp(each) < 0.15 * each.mean() for each in by_family.values()), by_family


def test_they_differ_in_what_comes_back(twins: dict[Reuse, tuple[Gym, Solvers]]) -> None:
    expects: dict[Reuse, tuple[int, int]] = {"entry": (2, 2), "family": (6, 2), "none": (6, 6)}
    for reuse, (entries, kinds) in expects.items():
        world_, state = twins[reuse]
        tasks, intents = state.events.truth.type[:, ::2], state.events.truth.intent[:, ::2]
        assert all(len(set(row)) == entries for row in tasks.tolist())
        assert all(len(set(row)) == kinds for row in intents.tolist())
        for user in range(20):
            seen, messages = set[int](), set[str]()
            for turn, (type_, met) in enumerate(zip(state.events.truth.type[user], state.met[user], strict=True)):
                message = world_.messages[state.events.text[user, turn]]
                assert world_.types[type_].split("|")[0] == FAMILIES[state.events.truth.intent[user, turn]]
                if turn % 2:
                    assert met == -1
                    assert message.startswith("The answer is ")
                    continue
                assert message not in messages  # in other words each time
                messages.add(message)
                before = {FAMILIES.index(world_.types[other].split("|")[0]) for other in seen}
                expected = 2 if type_ in seen else 1 if state.events.truth.intent[user, turn] in before else 0
                assert met == expected
                seen.add(int(type_))


def test_other_users_and_seeds_have_other_tasks_and_each_user_alone_the_same() -> None:
    made, state = begun("family")
    alone = made.begin(3, USERS[7:8], 4)
    assert (alone.events.text == state.events.text[7:8]).all()
    assert (begun("family", 4)[1].events.text != state.events.text).any(axis=1).mean() > 0.9
    assert len({tuple(row) for row in state.events.text.tolist()}) > 390
    assert (key(3, USERS) != key(4, USERS)).all()


def test_the_script_solves_by_an_answer_or_a_procedure_in_its_prompt_and_by_nothing_else() -> None:
    for entry in gym_entries(FAMILIES):
        told = SOLUTION.format(answer=entry.answer, question=entry.question)
        procedure = solving([], f"{REFLECT}{entry.question}")
        assert procedure
        assert entry.answer not in procedure.replace("1", "")
        assert solving([told], told) == "Noted."
        others = [
            f'Procedure for tasks with the words "{words}": ' for words in PROCEDURES if words not in entry.question
        ]
        for wording in TASK_WORDINGS:
            task = wording.format(question=entry.question)
            assert solving([], task) == UNSOLVED
            assert solving([task, *others, told.replace(entry.question, "another")], task) == UNSOLVED
            assert solving([told], task) == entry.answer
            assert solved(entry, str(solving([procedure], task)))
    assert solving([], "What is the door code of my dentist?") is None
