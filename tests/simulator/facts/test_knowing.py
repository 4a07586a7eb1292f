"""What models get right of what only the user knows, by what stands in their prompts."""

import numpy as np
import pytest

from skg_bench.core.draws import key
from skg_bench.core.world import RIGHT
from skg_bench.simulator.facts.outcome import CORRECTION, KNOWABLE, UNKNOWABLE
from skg_bench.simulator.facts.table import BY_USER, TELLING
from skg_bench.simulator.facts.world import FactUsers
from tests.simulator.facts.fact_runs import answered, habits, served, world

SEED, WEEKS, USERS = 3, 8, np.arange(40, dtype=np.int32)
SURE = ("simulator.guess_right=0", "simulator.guesses_if_misled=0", "simulator.mistaken=0")


def played(made: FactUsers, recall: str):  # type: ignore[no-untyped-def]
    """Outcomes of requests for facts: column by column, of users whose prompts hold the newest telling of the first
    fact that is needed, the oldest one, another fact's, or nothing.
    """
    state, keys = made.begin(SEED, USERS, WEEKS), key(SEED, USERS)
    events, needs = state.users.events, state.needs
    tellings: list[list[tuple[int, int]]] = [[] for _ in USERS]  # number and fact
    rows = []
    for turn in range(int(events.n.max())):
        event = made.events(state, turn)
        handles = np.full(len(USERS), -1, np.int32)
        for row in np.flatnonzero(turn < events.n):
            fact = needs.thing[row, event.number[row], 0]
            about = [number for number, other in tellings[row] if other == fact]
            others = [number for number, other in tellings[row] if other != fact]
            pool = {"newest": about[-1:], "oldest": about[:1], "other": others[-1:], "nothing": []}[recall]
            handles[row] = pool[0] if pool else -1
        given = served(len(USERS), prompted=None if recall == "nothing" else handles, ability=1.0)
        response = answered(made, state, event, given, keys)
        corrected = set(response.feedback.row[response.feedback.kind == CORRECTION].tolist())
        for row in np.flatnonzero(turn < events.n):
            number = event.number[row]
            if needs.knower[row, number] == TELLING:
                tellings[row].append((number, made.catalogue.thing[event.type[row]]))
            elif needs.knower[row, number] == BY_USER and needs.thing[row, number, 1] < 0:
                out = response.outcome
                right = response.quality[row] == RIGHT
                columns = out.need[row], out.prompt[row], out.manner[row], out.fact_changed[row], out.chance[row]
                rows.append((*columns, right, row in corrected, handles[row] >= 0))
    return (np.array(column) for column in zip(*rows, strict=True))


@pytest.fixture(scope="module")
def sure() -> FactUsers:
    return world(*SURE, *habits("simulator.users"))


def test_without_memory_at_most_a_tenth_of_what_only_the_user_knows_is_right() -> None:
    need, _, _, _, chance, right, *_ = played(world(*habits("simulator.users")), "nothing")
    assert (need == KNOWABLE).sum() > 100
    assert right[need == KNOWABLE].mean() <= 0.1
    assert chance[need == KNOWABLE].max() <= 0.1


def test_the_newest_telling_makes_all_told_facts_right(sure: FactUsers) -> None:
    need, _, _, _, _, right, *_ = played(sure, "newest")
    assert right[need == KNOWABLE].all()
    assert right[need == UNKNOWABLE].mean() > 0.6  # models decline or ask back, also where the end was told


def test_the_oldest_telling_is_wrong_where_a_fact_changed_and_nowhere_else(sure: FactUsers) -> None:
    need, prompt, _, changed, _, right, *_ = played(sure, "oldest")
    told = need == KNOWABLE
    assert (told & changed).sum() > 20
    assert np.array_equal(right[told], ~changed[told])
    assert (prompt[told & changed] == 2).all()  # outdated


def test_another_fact_in_the_prompt_makes_models_guess_more() -> None:
    made = world(*habits("simulator.users"))
    need, _, _, _, chance, _, _, prompted = played(made, "other")
    missing = need == UNKNOWABLE
    assert set(np.round(chance[missing & prompted], 6)) == {round(1 - made.guesses_if_misled, 6)}
    _, _, _, _, alone, *_ = played(made, "nothing")
    assert set(np.round(alone[missing], 6)) == {round(made.asks_back + made.declines, 6)}


@pytest.mark.parametrize("share", [0, 0.4, 1])
def test_a_share_of_wrong_answers_to_told_facts_is_corrected(share: float) -> None:
    made = world(*SURE, f"simulator.users_correct={share}", *habits("simulator.users"))
    need, _, _, _, _, right, corrected, _ = played(made, "nothing")
    assert not corrected[right | (need == UNKNOWABLE)].any()
    assert abs(corrected[~right & (need == KNOWABLE)].mean() - share) < 0.1


def test_without_tools_what_a_device_knows_cannot_be_answered() -> None:
    made = world("simulator.tools=false")
    state, keys = made.begin(SEED, USERS, 1), key(SEED, USERS)
    wrong = 0
    for turn in range(int(state.users.events.n.min())):
        event = made.events(state, turn)
        response = answered(made, state, event, served(len(USERS), ability=1.0), keys)
        device = response.outcome.known_by == 2
        assert (response.quality[device] != RIGHT).all()
        wrong += device.sum()
    assert wrong > 20
