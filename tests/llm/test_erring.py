"""A model whose reflector errs: as often as it says, in what skills did, and in nothing else."""

from pathlib import Path
from typing import Any

import pytest

from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.recording import opened_recording
from skg_bench.core.errors import UsageError
from skg_bench.llm.erring import Erring
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.simulated import Simulated
from tests.curator.test_writers import Answering
from tests.llm.models import Streaming, sent
from tests.llm.models import prompts as asks

REFLECTION = {"analysis": "a", "helpful_skill_ids": ["x-1"], "harmful_skill_ids": ["x-2"], "new_learnings": []}


def prompts(role: str, n: int = 400) -> list[Prompt]:
    user = '```json\n{"question": "q"}\n```'
    return [Prompt(role, "", user, {"type": "object"}, draw * 977_131, 100) for draw in range(n)]


def turned(answers: list[Completion]) -> list[bool]:
    return [answer.value["helpful_skill_ids"] == ["x-2"] for answer in answers]


def model(answer: Any = REFLECTION) -> Answering:
    return Answering(lambda _role, _data: answer)


@pytest.mark.parametrize("wrong", [0.0, 0.25, 0.5, 1.0])
def test_verdicts_are_turned_round_as_often_as_said_and_the_rest_of_the_answer_stays(wrong: float) -> None:
    answers = Erring(model(), wrong).complete(prompts("reflector"))
    assert sum(turned(answers)) / 400 == pytest.approx(wrong, abs=0.065)
    assert {answer.value["analysis"] for answer in answers} == {"a"}
    assert {answer.tokens_in for answer in answers} == {10}


def test_who_errs_more_errs_where_the_other_one_does_and_each_time_alike() -> None:
    few, many = (turned(Erring(model(), wrong).complete(prompts("reflector"))) for wrong in (0.2, 0.4))
    assert all(more for less, more in zip(few, many, strict=True) if less)
    assert few == turned(Erring(model(), 0.2).complete(prompts("reflector")))


def test_other_roles_and_failed_answers_are_handed_on() -> None:
    erring = Erring(model(), 1.0)
    assert not any(turned(erring.complete(prompts("skill_manager", 3))))
    assert [each.end for each in Erring(model(None), 1.0).complete(prompts("reflector", 2))] == ["timeout"] * 2


def test_a_curator_without_a_reflector_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match=r"verdicts of a reflector, and the role 'mem0' gives none"):
        Erring(model(), 0.5).complete(prompts("mem0", 2))


def test_what_was_paid_for_before_an_error_is_handed_on_and_recorded(tmp_path: Path) -> None:
    inside = Streaming(str(tmp_path / "sent"), in_flight=2, fails_at=5)
    recorded = RecordedModel(Erring(inside, 0.0), "both", str(tmp_path / "asked"))
    with pytest.raises(UsageError, match="the key is wrong"):
        recorded.complete(asks(20))
    assert len(opened_recording(tmp_path / "asked")) == len(sent(inside)) - 1 >= 4


def test_shares_and_models_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"curator\.llm\.wrong=1\.5 is no share; give a number from 0 to 1"):
        Erring(model(), 1.5)
    with pytest.raises(UsageError, match="writes no text"):
        Erring(Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4), 0.1)  # type: ignore[arg-type]
