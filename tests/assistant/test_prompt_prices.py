"""One earlier answer in a prompt has one price, by whatever case of a reply it gets there; and each call is paid."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skg_bench.runfolder.run import Run
from tests.app.lab import forget, write
from tests.app.test_cli import refused
from tests.assistant.plugin import WORLD, installed, run, table

PRICED = """
from dataclasses import replace
import numpy as np
from toys.toy import Echo
from skg_bench.core.assistant import BARE, FromBook, GivenAgain, InWords, Recalled
from skg_bench.core.types import FREE
from skg_bench.core.world import FALLBACK, PROMPTED

class Priced(Echo):
    '''Puts the answer into the prompt that Echo gives again, or asks its model beside it.'''
    def __init__(self, kind: str) -> None:
        super().__init__(120)
        self.kind = kind

    def answer(self, query, state):
        state, reply = super().answer(query, state)
        answer, none = reply.answer, np.full(len(reply.how), -1, np.int32)
        case = {
            "bare": BARE, "again": reply.case, "recalled": Recalled(answer[:, None]),
            "twice": Recalled(np.stack([answer, none, answer], axis=1)), "elsewhere": Recalled(none[:, None]),
            "beside": InWords([None] * len(none), FREE, [[each] for each in query.texts.read(query.text)]),
            "letters": InWords([None] * len(none), FREE, query.texts.read(query.text)),
            "numbers": InWords([None] * len(none), FREE, [[3]] * len(none)), "floats": Recalled(answer[:, None] * 1.0),
            "compared": replace(FromBook.blank(len(none)), compared=answer),
        }[self.kind]
        prompted = np.where(answer >= 0, PROMPTED, FALLBACK).astype(np.int32)
        puts = isinstance(case, (type(BARE), GivenAgain, Recalled))
        return state, replace(reply, how=prompted if puts else reply.how, case=case)
"""


@pytest.fixture(scope="module", autouse=True)
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("site")) as site:
        write(site / "toys" / "priced.py", PRICED)
        write(site / "toys" / "conf" / "assistant" / "priced.yaml", "_target_: toys.priced.Priced\nkind: bare\n")
        forget()
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    kinds = ("bare", "again", "recalled", "twice", "beside")
    arms = table("never", "toy", **{kind: ["assistant=priced", f"assistant.kind={kind}"] for kind in kinds})
    return run(tmp_path_factory.mktemp("runs") / "made", arms, "reference=never")


def rows(made: Run, arm: str, *columns: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made.turns(arm, ["user", "turn", *columns]).to_pylist()
    return found


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("arm", ["bare", "again", "twice"])
def test_an_answer_in_the_prompt_has_one_price_in_all_cases(made: Run, arm: str) -> None:
    """Once, an answer that was not said to be recalled, or was said to be so twice, had another price."""
    columns = ("serving", "answer_correct", "tokens_in", "tokens_out", "cost_usd")
    recalled = rows(made, "recalled", *columns)
    assert sum(row["serving"] == "prompted" for row in recalled) > 100
    assert rows(made, arm, *columns) == recalled


@pytest.mark.usefixtures("bare")
def test_calls_beside_an_answer_that_is_given_again_are_paid(made: Run) -> None:
    """Once, a model that was asked beside them was free, though its answers could be given later."""
    paid, alone = (rows(made, arm, "tokens_in", "tokens_out", "cost_usd") for arm in ("beside", "never"))
    again = [row["serving"] == "stored" for row in rows(made, "beside", "serving")]
    assert sum(again) > 100
    assert [a for a, b, hit in zip(paid, alone, again, strict=True) if hit and a != b] == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("letters", "valid is a list of prompts for each user"),
        ("numbers", "InWords.asked holds [3]; valid is a list of prompts for each user"),
        ("floats", "Recalled.answers has numbers of the kind float64; valid are whole ones"),
    ],
)
def test_prompts_and_answers_of_another_kind_are_refused(tmp_path: Path, kind: str, reason: str) -> None:
    """Once, a text in place of a list of prompts was a call for each letter, and others ended in a traceback."""
    arms = table("never", it=["assistant=priced", f"assistant.kind={kind}"])
    message = " ".join(refused("run", *WORLD, arms, f"out={tmp_path / 'run'}").split())
    assert "arm 'it'" in message
    assert reason in message


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("elsewhere", "and Recalled.answers of this user do not hold it; valid is one of them"),
        ("compared", "and the model does not answer this user: a judge compares the model's answer with another one"),
    ],
)
def test_what_would_be_free_is_refused(tmp_path: Path, kind: str, reason: str) -> None:
    arms = table("never", it=["assistant=priced", f"assistant.kind={kind}"])
    message = " ".join(refused("run", *WORLD, arms, f"out={tmp_path / 'run'}").split())
    assert "toys.priced.Priced of arm 'it', user " in message
    assert reason in message
