"""A model writes the text of each captured skill, which is stored, found and served like any other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.prompts import data_of
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.core.errors import UsageError
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.writing import Writing
from skg_bench.llm.scripted import Scripted
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.proposals import refusals_of
from skg_bench.skillbook.skillbook import rebuild
from tests.laws import world
from tests.laws.test_replay import logged

USERS = 4


@dataclass(frozen=True, eq=False)
class Clerk:
    """Answers that it does not know, and writes notes: of some questions none, of some one with an address."""

    notes: dict[tuple[str, str], str | None] = field(default_factory=dict)  # by question and answer
    given: list[tuple[str, str | None]] = field(default_factory=list)  # message, and the skill in its prompt

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        return [getattr(self, prompt.role)(data_of(prompt)) for prompt in prompts]

    def answer(self, data: Mapping[str, Any]) -> Completion:
        self.given.append((data["message"], data["skill"]))
        return Completion("I do not know.", None, "ok", 10, 0, 5, 0.25, 100.0)

    def skill_writer(self, data: Mapping[str, Any]) -> Completion:
        n = sum(map(ord, data["question"]))
        note = f"Note: whoever asks {data['question']!r} heard {data['answer']!r}."
        self.notes[data["question"], data["answer"]] = None if n % 5 == 4 or n % 7 == 6 else note
        value = {"prompt": "See https://notes.example/1" if n % 7 == 6 else note}
        return Completion(json.dumps(value), value, "timeout" if n % 5 == 4 else "ok", 10, 0, 5, 0.5, 100.0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Clerk]:
    made = prepare(compose([
        "experiment=told", f"users={USERS}", "weeks=12", "simulator.asks_per_week=10", "simulator.rated=1",
        "simulator.accepts=1", "seed=7", "arms={model: [serving=prompted, router=recipe, curator=writing]}",
        "reference=model",
    ])).plan  # fmt: skip
    arm, clerk = made.arms[0], Clerk()
    curator = replace(components(arm).curator, llm=clerk)  # type: ignore[type-var]
    answers = replace(arm.llm, llm=clerk)
    made = replace(made, arms=(replace(with_components(arm, curator=curator), llm=answers),))
    return world.carry_out(made, tmp_path_factory.mktemp("written") / "run", USERS, 64), clerk


@pytest.mark.req("K18")
def test_the_text_of_a_captured_skill_is_what_the_model_writes_of_question_and_answer(
    written: tuple[Run, Clerk],
) -> None:
    run, clerk = written
    turns = {(row["user"], row["turn"]): row for row in run.turns("model").to_pylist()}
    updates = run.updates("model").to_pylist()
    captures = [row for row in updates if row["op"] in ("ADD", "UPDATE") and row["source_turn"] >= 0]
    assert len(captures) > 20
    for row in captures:
        turn = turns[row["user"], row["turn"]]
        assert row["issue"] == clerk.notes[turn["message"], turn["said"]]
        assert row["message"] == turn["message"]  # the example by which it is found
    assert {row["issue"] is None for row in captures} == {True, False}
    for rows in logged(run, "model").values():  # registered: books can be rebuilt from the log, hash by hash
        rebuild(rows)


@pytest.mark.req("K18")
def test_a_served_skill_stands_in_the_prompt_with_the_text_that_was_written(written: tuple[Run, Clerk]) -> None:
    run, clerk = written
    texts: dict[tuple[int, int], str | None] = {}
    updates = sorted(run.updates("model").to_pylist(), key=lambda row: row["turn"])
    expected = []
    for turn in sorted(run.turns("model").to_pylist(), key=lambda row: row["turn"]):
        for row in updates:
            if row["user"] == turn["user"] and row["turn"] < turn["turn"] and row["issue"] is not None:
                texts[row["user"], row["skill"]] = row["issue"]
        if turn["serving"] == "prompted":
            expected.append((turn["message"], texts.get((turn["user"], turn["skill"]))))
    assert sum(text is not None for _, text in expected) > 20
    asked = [(message.rpartition("\n")[2], text) for message, text in clerk.given if text]
    assert set(asked) == {(message, text) for message, text in expected if text}


def test_each_text_is_a_job_with_its_cost_and_what_was_refused(written: tuple[Run, Clerk]) -> None:
    jobs = written[0].learning("model").to_pylist()
    captured = [row for row in written[0].turns("model").to_pylist() if row["skill_learned"]]
    assert sorted((job["user"], job["turn"]) for job in jobs) == sorted((r["user"], r["turn"]) for r in captured)
    assert {job["result"] for job in jobs} == {"applied", "refused", "timed_out"}
    assert {job["cost_usd"] for job in jobs} == {0.5}
    assert {(job["channel"], job["value"]) for job in jobs} == {("rating", "ok")}
    refusals = [refusal for job in jobs if job["refusals"] for refusal in refusals_of(job["refusals"])]
    assert {refusal.code for refusal in refusals} == {"an address"}


def test_a_capture_at_a_turn_that_nobody_rated_is_a_job_without_a_value(tmp_path: Path) -> None:
    """A curator that captures such turns ended the run with a traceback, after it had been paid."""
    parts = "serving=prompted, curator=writing, curator.curator=everything"
    made = prepare(compose([
        "experiment=told", "users=4", "weeks=3", "simulator.rated=0.5", f"arms={{model: [{parts}]}}", "reference=model",
    ])).plan  # fmt: skip
    run = world.carry_out(made, tmp_path / "run", 4, 64)
    rating = {(row["user"], row["turn"]): row["user_satisfaction"] for row in run.turns("model").to_pylist()}
    jobs = run.learning("model").to_pylist()
    assert {job["channel"] for job in jobs} == {"rating"}
    assert [job["value"] for job in jobs] == [rating[job["user"], job["turn"]] for job in jobs]
    assert {job["value"] is None for job in jobs} == {True, False}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"characters": 0}, "curator.characters=0 must be at least 1"),
        ({"answer_tokens": 3}, "curator.answer_tokens=3 must be at least 100"),
        ({"curator": RightAnswers()}, "cannot wrap a curator that sees the truth"),
        ({"prompts": "nowhere"}, "there is no prompt file nowhere/skill_writer.md"),
    ],
)
def test_a_writer_that_cannot_write_is_refused_before_anything_runs(changes: dict[str, Any], says: str) -> None:
    inside = components(prepare(compose(["users=1", "arms={skg: []}", "reference=skg"])).plan.arms[0]).curator
    parts = {"curator": inside, "llm": Scripted("learner", 0.0, 0.0, 0.0), "characters": 2000, "answer_tokens": 300}
    with pytest.raises(UsageError, match=says):
        Writing(**{**parts, "prompts": None, **changes})
