"""Learning with a model: who is asked what, what becomes of the answers, and what it costs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.asking.asking import Completion, End, Prompt
from skg_bench.asking.prompts import data_of, load_prompt
from skg_bench.asking.scripts import SCRIPTS
from skg_bench.asking.structured import structured_answer
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.core.errors import UsageError
from skg_bench.curator.reflecting import REFLECTING_DATA, Reflecting
from skg_bench.llm.simulated import Simulated
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.proposals import refusals_of
from tests.laws import world

USERS = 5
SIMULATED = Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4)
Answer = Callable[[Prompt], Completion]


@dataclass(frozen=True, eq=False)
class Model:
    """Answers by a function, and keeps what it was asked."""

    answer: Answer
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        self.prompts.extend(prompts)
        return [self.answer(prompt) for prompt in prompts]


def said(prompt: Prompt, script: str = "learner") -> Completion:
    """What a script says, at a price."""
    text = SCRIPTS[script][prompt.role](prompt)
    return Completion(text, structured_answer(text, prompt.schema)[0], "ok", 100, 10, 20, 0.25, 1500.0)


def run(folder: Path, model: Model, *overrides: str, **changes: Any) -> Run:
    """The dense world of the laws, whose arm `model` asks this one."""
    made = world.plan(USERS, ("model",))
    if overrides:
        made = prepare(
            compose(
                [
                    *(o for o in world.DENSE if not o.startswith("curator.")),
                    f"users={USERS}",
                    "curator=reflecting",
                    *overrides,
                ]
            )
        ).plan
    (arm,) = (arm for arm in made.arms if arm.name in ("model", "skg"))
    curator = replace(components(arm).curator, llm=model, **changes)  # type: ignore[type-var]
    made = replace(made, arms=(replace(with_components(arm, curator=curator), name="model"),))
    return world.carry_out(made, folder / "run", USERS, 64)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Model]:
    model = Model(said)
    return run(tmp_path_factory.mktemp("learned"), model), model


@pytest.mark.req("P19")
def test_each_rating_is_one_job_about_the_turn_that_was_rated(learned: tuple[Run, Model]) -> None:
    jobs = learned[0].learning("model").to_pylist()
    ratings = learned[0].feedback("model").to_pylist()
    turns = {(row["user"], row["turn"]): row for row in learned[0].turns("model").to_pylist()}
    last = {user: max(row["time"] for (u, _), row in turns.items() if u == user) for user in range(USERS)}
    known = [(r["user"], r["turn"]) for r in ratings if r["kind"] == "rating" and r["known_at"] <= last[r["user"]]]
    assert sorted((job["user"], job["about"]) for job in jobs) == sorted(known)
    assert any(job["about"] < job["turn"] for job in jobs)  # late ones among them
    assert all(job["start"] == turns[job["user"], job["turn"]]["time"] for job in jobs)
    assert all((job["end"] - job["start"]).total_seconds() * 1000 == job["latency_ms"] for job in jobs)


@pytest.mark.req("P19", "P21")
def test_the_reflector_is_told_the_message_of_the_rated_turn_its_rating_and_the_book(
    learned: tuple[Run, Model],
) -> None:
    messages = {(r["user"], r["turn"]): r["message"] for r in learned[0].turns("model").to_pylist()}
    ratings = {
        (r["user"], r["turn"]): r["value"] for r in learned[0].feedback("model").to_pylist() if r["kind"] == "rating"
    }
    asked = Counter(
        (data["question"], data["feedback"]["rating"])
        for data in (data_of(prompt) for prompt in learned[1].prompts if prompt.role == "reflector")
    )
    jobs = learned[0].learning("model").to_pylist()
    assert asked == Counter((messages[job["user"], job["about"]], ratings[job["user"], job["about"]]) for job in jobs)
    assert any("Issue: " in data_of(prompt)["skillbook"] for prompt in learned[1].prompts)
    assert any(data_of(prompt)["skills_used"] for prompt in learned[1].prompts)


def test_what_users_said_stands_in_the_block_of_data_and_nowhere_else(learned: tuple[Run, Model]) -> None:
    for prompt in learned[1].prompts:
        made = load_prompt(prompt.role, None, REFLECTING_DATA[prompt.role])
        before, _, rest = prompt.user.partition("```json\n")
        assert prompt.system == made.system
        assert made.request == before + "{{data}}" + rest.partition("\n```")[2]


def test_no_two_asks_share_a_draw(learned: tuple[Run, Model]) -> None:
    draws = [prompt.draw for prompt in learned[1].prompts]
    assert len(set(draws)) == len(draws) > 100
    assert all(0 <= draw < 2**63 for draw in draws)


@pytest.mark.req("P18", "P23")
def test_what_was_admitted_is_applied_in_the_turn_and_logged_with_both_versions(learned: tuple[Run, Model]) -> None:
    jobs = learned[0].learning("model").to_pylist()
    updates = learned[0].updates("model").to_pylist()
    added = [row for row in updates if row["op"] == "ADD"]
    assert added
    applied = [job for job in jobs if job["operations"]]
    versions = {(row["user"], row["turn"]): row["book_version"] for row in updates}
    assert all(job["version_written"] == versions[job["user"], job["turn"]] for job in applied)
    assert all(job["version_written"] == job["version_read"] + 1 for job in applied)
    assert {job["version_written"] for job in jobs if not job["operations"]} == {-1}
    about = {(job["user"], job["turn"], job["about"]) for job in applied}
    assert all((row["user"], row["turn"], row["source_turn"]) in about for row in added)
    assert sum(job["operations"] for job in jobs) == sum(row["uses"] == 0 for row in updates)


def test_uses_are_counted_by_turns_and_ratings_by_what_the_model_says(learned: tuple[Run, Model]) -> None:
    turns, updates = learned[0].turns("model").to_pylist(), learned[0].updates("model").to_pylist()
    assert sum(row["uses"] for row in updates) == sum(not row["fallback_to_llm"] for row in turns) > 10
    assert all(row["rating"] is None for row in updates if row["uses"])
    assert {row["rating"] for row in updates if row["op"] == "TAG" and not row["uses"]} <= {"ok", "miss"}


def test_learning_costs_what_its_calls_cost_and_stands_beside_what_answers_cost(learned: tuple[Run, Model]) -> None:
    turns, jobs = learned[0].turns("model").to_pylist(), learned[0].learning("model").to_pylist()
    assert {job["cost_usd"] for job in jobs} == {0.5}  # two calls
    assert {(job["tokens_in"], job["tokens_cached"], job["tokens_out"]) for job in jobs} == {(200, 20, 40)}
    per_turn = Counter((job["user"], job["turn"]) for job in jobs)
    for row in turns:
        n = per_turn[row["user"], row["turn"]]
        costs = row["learning_cost_usd"], row["learning_tokens_in"], row["learning_tokens_out"]
        assert costs == (0.5 * n, 200 * n, 40 * n)


def failing(role: str, end: End, reason: str = "") -> Answer:
    def answer(prompt: Prompt) -> Completion:
        lost = Completion("", None, end, 7, 0, 3, 0.125, 10_000.0, reason)
        return lost if prompt.role == role else said(prompt)

    return answer


@pytest.mark.req("P20")
@pytest.mark.parametrize(
    ("role", "end", "result", "reason"),
    [
        ("reflector", "timeout", "timed_out", "Reflection timed out"),
        ("skill_manager", "timeout", "timed_out", "Skill update timed out"),
        ("reflector", "invalid", "invalid", "no JSON"),
        ("skill_manager", "refused", "refused", "content filter"),
        ("reflector", "error", "error", "500 after 3 tries"),
    ],
)
def test_a_call_that_failed_is_a_row_that_says_so_and_changes_nothing(
    tmp_path: Path, role: str, end: End, result: str, reason: str
) -> None:
    model = Model(failing(role, end, "" if end == "timeout" else reason))
    failed = run(tmp_path, model)
    jobs = failed.learning("model").to_pylist()
    assert {(job["result"], job["reason"]) for job in jobs} == {(result, reason)}
    assert {job["cost_usd"] for job in jobs} == {0.125 if role == "reflector" else 0.375}
    assert {job["reflection"] is None for job in jobs} == {role == "reflector"}
    assert [row for row in failed.updates("model").to_pylist() if not row["uses"]] == []
    assert ("skill_manager" in {prompt.role for prompt in model.prompts}) == (role == "skill_manager")


def test_null_and_an_empty_batch_leave_the_book_as_it_is(tmp_path: Path) -> None:
    def nothing(prompt: Prompt) -> Completion:
        answer = said(prompt)
        update = None if prompt.draw % 2 else {"reasoning": "", "operations": []}
        return answer if prompt.role == "reflector" else replace(answer, value={"update": update})

    idle = run(tmp_path, Model(nothing))
    assert Counter(idle.learning("model")["result"].to_pylist()).keys() == {"unchanged"}
    assert idle.updates("model").num_rows == 0


def test_a_frozen_book_takes_ratings_and_no_skills(tmp_path: Path) -> None:
    stops = "freeze=book", f"freeze_at={world.FREEZE}", "serving=prompted"
    frozen = run(tmp_path, Model(said), "arms={skg: [" + ", ".join(stops) + "]}", "reference=skg")
    later = [row for row in frozen.updates("model").to_pylist() if row["turn"] >= world.FREEZE]
    assert {row["op"] for row in later} == {"TAG"}
    jobs = [job for job in frozen.learning("model").to_pylist() if job["turn"] >= world.FREEZE]
    refused = [refusal for job in jobs if job["refusals"] for refusal in refusals_of(job["refusals"])]
    assert {(refusal.type, refusal.code) for refusal in refused} == {("ADD", "frozen")}
    assert sum(job["operations"] for job in jobs) == sum(row["uses"] == 0 for row in later)  # what is said was done


def test_a_log_of_what_people_wrote_is_marked_in_every_prompt(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [
        {"user": "ann", "time": f"2026-01-05T10:{i:02d}:00", "message": f"what is {i}", "satisfaction": "ok"}
        for i in range(6)
    ]
    log.write_text("\n".join(json.dumps(row) for row in rows))
    for redact in (False, True):
        composed = compose([
            "simulator=recorded", f"simulator.path={log}", f"simulator.redact={str(redact).lower()}",
            "simulator.columns.satisfaction=satisfaction", "embedder=hashing", "curator=reflecting",
            "arms={model: [], never: [policy=never, curator=none]}", "reference=never", "serving=prompted",
            f"out={tmp_path / str(redact)}", "users=null", "weeks=null",
        ])  # fmt: skip
        job = prepare(composed)
        model = Model(said)
        arm = with_components(job.plan.arms[0], curator=replace(components(job.plan.arms[0]).curator, llm=model))  # type: ignore[type-var]
        finished = start(replace(job, plan=replace(job.plan, arms=(arm, job.plan.arms[1]))))
        assert model.prompts
        assert {(prompt.recorded, prompt.redacted) for prompt in model.prompts} == {(True, redact)}
        shown = "".join(str(value) for value in finished.learning("model")["reflection"].to_pylist())
        assert ("what is 0" in shown) != redact


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"llm": SIMULATED}, "curator.llm=Simulated draws what it costs to answer users"),
        ({"order": "random"}, "curator.order='random', valid are evidence, inserted"),
        ({"book_characters": 10}, "curator.book_characters=10 must be at least 100"),
        ({"answer_tokens": 0}, "curator.answer_tokens=0 must be at least 100"),
        ({"prompts": "nowhere"}, "there is no prompt file nowhere/reflector.md"),
    ],
)
def test_a_curator_that_cannot_ask_is_refused_before_anything_runs(changes: dict[str, Any], says: str) -> None:
    curator = components(world.plan(1, ("model",)).arms[0]).curator
    assert isinstance(curator, Reflecting)
    with pytest.raises(UsageError, match=says):
        replace(curator, **changes)


def test_counts_of_users_are_sums_over_their_jobs(learned: tuple[Run, Model]) -> None:
    turns = learned[0].turns("model")
    total = float(np.sum(turns["learning_cost_usd"].to_numpy()))
    assert total == pytest.approx(float(np.sum(learned[0].learning("model")["cost_usd"].to_numpy())))
