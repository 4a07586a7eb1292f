"""How answers come from the event loop to their caller."""

import asyncio
import time
from collections.abc import Mapping

import pytest

from skg_bench.asking.loop import each_answer
from skg_bench.core.errors import UsageError


@pytest.mark.parametrize("first_alone", [False, True])
def test_an_error_of_the_caller_begins_no_further_answer_and_what_is_under_way_is_handed_over(
    first_alone: bool,
) -> None:
    begun: list[int] = []
    handed: list[int] = []

    async def answer(question: int) -> int:
        begun.append(question)
        await asyncio.sleep(0.01 + 0.01 * (question % 3))
        return question

    def done(answers: Mapping[int, int]) -> None:
        handed.extend(answers.values())
        if len(handed) >= 5:
            raise UsageError(f"enough after {len(handed)}")

    with pytest.raises(UsageError, match=r"enough after [5-8]"):  # the first one's words
        each_answer(range(100), answer, done, width=4, first_alone=first_alone)
    assert sorted(handed) == sorted(begun)
    assert 5 <= len(begun) < 5 + 4


def test_an_answer_is_under_way_until_the_caller_has_taken_it() -> None:
    begun: list[int] = []
    handed: list[int] = []
    groups: list[int] = []

    async def answer(question: int) -> int:
        begun.append(question)
        return question

    def done(answers: Mapping[int, int]) -> None:
        time.sleep(0.005)
        assert len(begun) - len(handed) <= 3
        handed.extend(answers.values())
        groups.append(len(answers))

    each_answer(range(30), answer, done, width=3, first_alone=False)
    assert sorted(handed) == list(range(30))
    assert max(groups) == 3  # those that came while `done` was at work come together
