"""Curators that write a book by one method each: a cheatsheet, lessons, and facts held against memories."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from skg_bench.asking.asking import Completion, Prompt, TextModel
from skg_bench.asking.prompts import data_of
from skg_bench.core import learning_jobs
from skg_bench.core.batch import OPERATIONS, Batch
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING
from skg_bench.curator.cheatsheet import Cheatsheet
from skg_bench.curator.mem0 import FactsByModel
from skg_bench.curator.reasoning_bank import ReasoningBank
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.simulator.advice.levels import ACCEPTED, OUTCOME, OVERRIDDEN, REGRET_IT, SATISFACTION
from skg_bench.skillbook.proposals import Limits, refusals_of
from tests.curator.advised import Turn, with_books

LIMITS = Limits(adds=10, removes=10, tags=0, ratings=1, characters=2000, operations=50)


@dataclass(frozen=True, eq=False)
class Answering:
    """A model that answers by a function, and keeps what it was asked."""

    answer: Callable[[str, Mapping[str, Any]], Any]
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        self.prompts.extend(prompts)
        values = [self.answer(prompt.role, data_of(prompt)) for prompt in prompts]
        return [
            Completion(value, None, "ok", 10, 0, 5, 0.25, 100.0)
            if isinstance(value, str)
            else Completion(json.dumps(value), value, "timeout" if value is None else "ok", 10, 0, 5, 0.25, 100.0)
            for value in values
        ]

    def asked(self, role: str) -> list[dict[str, Any]]:
        return [data_of(prompt) for prompt in self.prompts if prompt.role == role]


def books(turn: Turn, *texts: str) -> None:
    """Skills with these texts for every user, each of a section of its own."""
    keys = [turn.texts.contents.add(Content(f"section{i}", text)) for i, text in enumerate(texts)]
    content = np.zeros(turn.books.content.shape, np.uint64)
    content[:, : len(keys)] = keys
    active = np.zeros(content.shape, np.bool_)
    active[:, : len(keys)] = True
    with_books(turn, content=content, active=active, n_skills=np.full(turn.b, len(texts), np.int32))


def operations(turn: Turn, batch: Batch) -> list[tuple[int, str, int, str | None]]:
    """User, operation, skill and what it says, without TAGs."""
    says = [None if content is None else content.issue for content in turn.texts.contents.of(batch.content)]
    names = [OPERATIONS[op] for op in batch.op]
    rows: list[tuple[int, str, int, str | None]]
    rows = [*zip(batch.row.tolist(), names, batch.skill.tolist(), says, strict=True)]
    return [each for each in rows if each[1] != "TAG"]


def cheatsheet(model: TextModel, characters: int = 8000) -> Cheatsheet:
    return Cheatsheet(model, LIMITS, 0.5, characters, 1000, None)


# ----------------------------------------------------------------------------------------------------- cheatsheet


def test_what_a_model_rewrites_becomes_operations_by_what_has_changed() -> None:
    before = "Say the price in hours of work.", "Wait for a day before buying shoes.", "Ask what it is for."
    after = "\n\n".join([before[0], "Wait for two days before buying shoes.", "Offer a list of wishes."])
    model = Answering(lambda _role, data: f"Here it is: <cheatsheet>\n{after}\n</cheatsheet> Done.")
    turn = Turn(1)
    books(turn, *before)
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(cheatsheet(model))
    assert model.asked("cheatsheet")[0]["cheatsheet"] == "\n\n".join(before)
    assert operations(turn, batch) == [
        (0, "UPDATE", 1, "Wait for two days before buying shoes."),
        (0, "ADD", -1, "Offer a list of wishes."),
        (0, "REMOVE", 2, None),
    ]


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("Nothing to change.", ["one", "two"]),  # no tag: the text stays
        ("</cheatsheet> one", ["one", "two"]),
        ("<cheatsheet>one", ["one"]),  # as published: up to the end
        ("<cheatsheet>\n\n one\n\n\n\ntwo \n\none\n\n</cheatsheet>", ["one", "two"]),  # blanks, and one twice
        ("<cheatsheet></cheatsheet>", []),
        (None, ["one", "two"]),  # the call timed out
    ],
)
def test_a_text_stays_where_the_tag_is_missing(answer: str | None, left: list[str]) -> None:
    turn = Turn(1)
    books(turn, "one", "two")
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(cheatsheet(Answering(lambda _role, _data: answer)))
    gone = [skill for _, op, skill, _ in operations(turn, batch) if op == "REMOVE"]
    assert [text for i, text in enumerate(("one", "two")) if i not in gone] == left
    assert {op for _, op, _, _ in operations(turn, batch)} <= {"REMOVE"}


def test_of_several_jobs_of_a_user_each_rewrites_what_the_one_before_wrote() -> None:
    def more(_role: str, data: Mapping[str, Any]) -> str:
        return f"<cheatsheet>{data['cheatsheet']}\n\nnote {data['feedback']['channel']}</cheatsheet>"

    model, turn = Answering(more), Turn(2)
    books(turn, "one")
    turn.hear(OUTCOME, ACCEPTED)
    turn.hear(SATISFACTION, REGRET_IT, row=[1], turn=4)
    _, batch = turn.curated(cheatsheet(model))
    assert [data["cheatsheet"] for data in model.asked("cheatsheet")] == ["one", "one", "one\n\nnote outcome"]
    assert operations(turn, batch) == [
        (0, "ADD", -1, "note outcome"), (1, "ADD", -1, "note outcome"), (1, "ADD", -1, "note satisfaction"),
    ]  # fmt: skip
    (jobs,) = turn.jobs
    assert jobs.operations.tolist() == [1, 0, 2]
    assert jobs.cost_usd.tolist() == [0.25] * 3


def test_what_a_job_wrote_is_kept_where_the_next_one_of_its_user_fails() -> None:
    def once(_role: str, data: Mapping[str, Any]) -> str | None:
        return (
            None if "satisfaction" in str(data["feedback"]) else f"<cheatsheet>{data['cheatsheet']}\n\nnew</cheatsheet>"
        )

    turn = Turn(1)
    books(turn, "one")
    turn.hear(OUTCOME, ACCEPTED)
    turn.hear(SATISFACTION, REGRET_IT, row=[0], turn=4)
    _, batch = turn.curated(cheatsheet(Answering(once)))
    assert operations(turn, batch) == [(0, "ADD", -1, "new")]
    (jobs,) = turn.jobs
    assert jobs.result.tolist() == [learning_jobs.APPLIED, learning_jobs.TIMED_OUT]


def test_paragraphs_without_room_in_the_prompt_are_not_lost() -> None:
    texts = [f"{i} {'word ' * 30}".strip() for i in range(5)]
    model, turn = Answering(lambda _role, _data: "<cheatsheet></cheatsheet>"), Turn(1)
    books(turn, *texts)
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(cheatsheet(model, characters=500))
    shown = model.asked("cheatsheet")[0]["cheatsheet"].split("\n\n")
    assert 0 < len(shown) < 5
    assert [skill for _, _, skill, _ in operations(turn, batch)] == list(range(len(shown)))


# -------------------------------------------------------------------------------------------------- reasoning bank


def test_lessons_are_of_successes_and_of_failures_and_of_nothing_else() -> None:
    def lessons(role: str, _data: Mapping[str, Any]) -> Any:
        return {"lessons": [{"title": role, "description": "When asked.", "content": "Do it."}]}

    model, turn = Answering(lessons), Turn(4)
    turn.hear(OUTCOME, np.array([ACCEPTED, OVERRIDDEN, ACCEPTED, ACCEPTED], np.int32))
    turn.hear(RATING, np.array([0, 2, 1], np.int32), row=range(3))  # ok, miss, partial; the last one has no sign
    _, batch = turn.curated(ReasoningBank(model, LIMITS, 8000, 1000, None))
    assert [prompt.role for prompt in model.prompts] == ["lessons_of_success", "lessons_of_failure"]
    assert operations(turn, batch) == [
        (0, "ADD", -1, "lessons_of_success. When asked. Do it."),
        (1, "ADD", -1, "lessons_of_failure. When asked. Do it."),
    ]
    (jobs,) = turn.jobs
    assert [learning_jobs.RESULTS[code] for code in jobs.result] == ["applied", "applied", "unchanged", "unchanged"]
    assert jobs.cost_usd.tolist() == [0.25, 0.25, 0.0, 0.0]


# ------------------------------------------------------------------------------------------------------------ mem0


def test_facts_are_added_change_a_memory_end_it_or_are_known() -> None:
    def model(role: str, data: Mapping[str, Any]) -> Any:
        if role == "mem0_facts":
            return {"facts": ["a", "b", "c", "d"]}
        assert "[section0-00001] section0" in data["skillbook"]
        return {
            "memory": [
                {"event": "ADD", "id": None, "text": "Likes tea."},
                {"event": "UPDATE", "id": "section0-00001", "text": "Likes green tea."},
                {"event": "DELETE", "id": "section1-00002", "text": None},
                {"event": "NONE", "id": "section2-00003", "text": None},
            ]
        }

    turn = Turn(1)
    books(turn, "Likes coffee.", "Hates tea.", "Buys shoes.")
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(FactsByModel(Answering(model), LIMITS, 8000, 1000, None))
    assert operations(turn, batch) == [
        (0, "ADD", -1, "Likes tea."),
        (0, "UPDATE", 0, "Likes green tea."),
        (0, "REMOVE", 1, None),
    ]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"event": "DELETE", "id": "section9-00009", "text": None}, "unknown skill"),
        ({"event": "UPDATE", "id": "section0-00001", "text": None}, "invalid"),
        ({"event": "ADD", "id": None, "text": None}, "invalid"),
        ({"event": "ADD", "id": None, "text": "Order at https://shop.example/now"}, "an address"),
    ],
)
def test_what_no_memory_can_be_is_refused_with_its_reason(event: Any, code: str) -> None:
    turn = Turn(1)
    books(turn, "Likes coffee.")
    turn.hear(OUTCOME, OVERRIDDEN)
    model = Answering(lambda role, _data: {"facts": ["a"]} if role == "mem0_facts" else {"memory": [event]})
    _, batch = turn.curated(FactsByModel(model, LIMITS, 8000, 1000, None))
    assert operations(turn, batch) == []
    (jobs,) = turn.jobs
    assert jobs.result.tolist() == [learning_jobs.REFUSED]
    assert {refusal.code for refusal in refusals_of(turn.texts.read(jobs.refusals)[0])} == {code}


def test_without_a_fact_nothing_else_is_asked() -> None:
    model, turn = Answering(lambda _role, _data: {"facts": []}), Turn(3)
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(FactsByModel(model, LIMITS, 8000, 1000, None))
    assert {prompt.role for prompt in model.prompts} == {"mem0_facts"}
    assert operations(turn, batch) == []


# ------------------------------------------------------------------------------------------------------------- all


@pytest.mark.parametrize("made", [cheatsheet, lambda llm: ReasoningBank(llm, LIMITS, 8000, 1000, None),
                                  lambda llm: FactsByModel(llm, LIMITS, 8000, 1000, None)])  # fmt: skip
def test_a_call_that_fails_is_a_row_and_changes_nothing(made: Callable[[TextModel], Proposer]) -> None:
    turn = Turn(2)
    turn.hear(OUTCOME, OVERRIDDEN)
    turn.hear(RATING, 2)
    _, batch = turn.curated(made(Answering(lambda _role, _data: None)))
    assert operations(turn, batch) == []
    (jobs,) = turn.jobs
    assert jobs.result.tolist() == [learning_jobs.TIMED_OUT] * 2
    assert "timed out" in turn.texts.read(jobs.reason)[0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"alike": 0.0}, "curator.alike=0.0 must lie above 0 and at most at 1"),
        ({"alike": float("nan")}, "curator.alike=nan must lie above 0 and at most at 1"),
        ({"book_characters": 9}, "curator.book_characters=9 must be at least 100"),
        ({"prompts": "nowhere"}, "there is no prompt file nowhere/cheatsheet.md"),
    ],
)
def test_a_cheatsheet_that_cannot_be_written_is_refused_before_anything_runs(changes: Any, says: str) -> None:
    parts = {"limits": LIMITS, "alike": 0.5, "book_characters": 8000, "answer_tokens": 1000, "prompts": None}
    with pytest.raises(UsageError, match=says):
        Cheatsheet(Answering(lambda _role, _data: ""), **{**parts, **changes})
