"""What a pipeline hands on where its skills are advice: what they say, what was in the prompt, and their worth."""

from typing import Any

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.assistant import FromBook, Reply
from skg_bench.core.grid import F64, U64
from skg_bench.policy.always import Always
from skg_bench.policy.never import Never
from tests.arms import changed
from tests.assistant.pipeline.advice import NOTHING_SAID, Advising, Play, advice_of
from tests.assistant.pipeline.test_stack import ARM

KEYS = [advice_of(row).key for row in range(3)]


def advised(curator: Advising, **parts: Any) -> Play:
    """Three users who have a skill with advice each, after their first turn."""
    arm = changed(ARM, curator=curator, policy=parts.pop("policy", Always()), serving="prompted", **parts)
    play = Play([arm], 3)
    play.answered(3)
    play.learned(NOTHING_SAID, right=np.zeros(3, np.bool_))
    return play


def worth(keys: U64) -> F64:
    """The generic question is worth 1, and the skills of the three users 0, 1 and 2."""
    table = {0: 1.0, **{key: float(row) for row, key in enumerate(KEYS)}}
    return np.array([[table[key] for key in row] for row in keys.tolist()])


def said(reply: Reply) -> list[int]:
    assert isinstance(reply.case, FromBook)
    keys: list[int] = reply.case.says.tolist()
    return keys


@pytest.mark.req("P04")
def test_a_reply_has_the_key_of_what_the_served_skill_says_and_0_where_the_generic_question_is_asked() -> None:
    assert said(advised(Advising()).answered(2)) == KEYS[:2]
    assert said(advised(Advising(), policy=Never()).answered(3)) == [0, 0, 0]


def test_a_curator_is_shown_the_ids_that_were_to_choose_from_whichever_was_chosen() -> None:
    curator = Advising()
    play = advised(curator, policy=Never())
    play.answered(3)
    play.learned(NOTHING_SAID)
    width = components(ARM).router.top_k
    shown = [seen.context.shown.tolist() for seen in curator.seen]
    assert shown == [
        [[-1] * width] * 3,
        [[0] + [-1] * (width - 1)] * 3,
    ]


def test_where_nothing_was_said_no_skill_served() -> None:
    curator = Advising()
    play = advised(curator)
    play.answered(3)
    play.learned(NOTHING_SAID, failed=np.array([False, True, False]))
    assert curator.seen[-1].skill.tolist() == [0, -1, 0]
    assert curator.seen[-1].hit.tolist() == [True, False, True]


def test_the_best_of_a_book_is_its_best_active_skill_or_the_generic_question() -> None:
    play = advised(Advising())
    play.answered(3, worth)
    truth = play.message.truth
    assert truth is not None
    best = play.assistant.best(truth, play.state)
    assert best is not None
    assert best.tolist() == [1.0, 1.0, 2.0]
    play.state.table.active[2, 0] = False  # archived
    best = play.assistant.best(truth, play.state)
    assert best is not None
    assert best.tolist() == [1.0, 1.0, 1.0]


def test_where_skills_are_no_advice_nothing_is_their_best() -> None:
    play = advised(Advising())
    play.answered(3)
    assert play.message.truth is not None
    assert play.assistant.best(play.message.truth, play.state) is None


def test_an_oracle_sees_the_worth_of_the_generic_question_and_of_each_skill() -> None:
    curator = Advising(sees_truth=True)
    play = advised(curator)
    play.answered(3, worth)
    play.learned(NOTHING_SAID, right=np.zeros(3, np.bool_))
    before, after = (seen.context.truth for seen in curator.seen)
    assert before is not None
    assert before.worth.shape[1] == 0  # no world of advice, at the first turn
    assert after is not None
    assert after.worth[:, :2].tolist() == [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
