"""One flow, three roles: the chooser cites a skill, the reflector is told its id, the manager may TAG it alone."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.prompts import data_of
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.proposals import refusals_of
from tests.laws import shoppers, world


@dataclass(frozen=True, eq=False)
class Roles:
    """Cites any skill that is listed, or none; notes each turn; and TAGs every skill of the book."""

    cited: list[str | None] = field(default_factory=list)
    used: list[tuple[str, list[str]]] = field(default_factory=list)  # question, and what the reflector was told

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        values = [getattr(self, prompt.role)(prompt, data_of(prompt)) for prompt in prompts]
        return [Completion(json.dumps(value), value, "ok", 10, 0, 5, 0.25, 100.0) for value in values]

    def chooser(self, prompt: Prompt, data: Mapping[str, Any]) -> Any:
        ids = [text.partition("]")[0].removeprefix("[") for text in data["skills"]]
        self.cited.append([*ids, None][prompt.draw % (len(ids) + 1)])
        return {"skill_id": self.cited[-1], "reason": "any"}

    def reflector(self, _prompt: Prompt, data: Mapping[str, Any]) -> Any:
        self.used.append((data["question"], data["skills_used"]))
        new = {"section": "hints", "content": f"Noted: {data['question']}", "atomicity_score": 1.0}
        return {"analysis": "", "helpful_skill_ids": [], "harmful_skill_ids": [], "new_learnings": [new]}

    def skill_manager(self, _prompt: Prompt, data: Mapping[str, Any]) -> Any:
        ids = [line[1:].partition("]")[0] for line in data["skillbook"].splitlines() if line.startswith("[")]
        tags = [{"type": "TAG", "section": "any", "skill_id": label, "metadata": {"harmful": 1}} for label in ids]
        learned = data["reflection"]["new_learnings"]
        adds = [{"type": "ADD", **{key: new[key] for key in ("section", "content")}} for new in learned]
        return {"update": {"reasoning": "", "operations": [*tags, *adds]}}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Roles]:
    """One user, whose n-th choice is that of the n-th turn."""
    more = (
        "policy=llm_chooser",
        "curator=reflecting",
        "curator.limits.operations=200",
        "curator.book_characters=99999",
    )
    arms = "arms={model: [], never: [policy=never, curator=none]}"
    made = prepare(compose([*shoppers.WORLD, "users=1", "weeks=18", *more, arms, "reference=never"])).plan
    arm, roles = made.arms[0], Roles()
    inside = components(arm)
    policy, curator = (replace(part, llm=roles) for part in (inside.policy, inside.curator))  # type: ignore[type-var]
    made = replace(made, arms=(with_components(arm, policy=policy, curator=curator),))
    return world.carry_out(made, tmp_path_factory.mktemp("cited") / "run", 1, 64), roles


@pytest.mark.req("U13")
def test_the_id_that_the_chooser_cites_is_told_to_the_reflector_and_may_be_tagged_and_no_other(
    played: tuple[Run, Roles],
) -> None:
    run, roles = played
    turns = sorted(run.turns("model").to_pylist(), key=lambda row: row["turn"])
    assert len(turns) == len(roles.cited) > 60
    said = [label if row["tier"] != "analyst" else None for row, label in zip(turns, roles.cited, strict=True)]
    number = [-1 if label is None else int(label.rpartition("-")[2]) - 1 for label in said]
    assert [-1 if row["skill"] is None else row["skill"] for row in turns] == number  # cited, and so served
    jobs = sorted(run.learning("model").to_pylist(), key=lambda job: job["turn"])
    about = [job["about"] for job in jobs]
    told = Counter((question, used[0] if used else None) for question, used in roles.used)
    assert told == Counter((turns[turn]["message"], said[turn]) for turn in about)  # served, and so told
    updates = [row for row in run.updates("model").to_pylist() if row["turn"] >= 0]
    tags = [(row["about"], row["skill"]) for row in updates if row["op"] == "TAG" and not row["uses"]]
    assert Counter(tags) == Counter((turn, number[turn]) for turn in about if number[turn] >= 0)  # told, and so TAGged
    assert len(tags) > 40
    assert len({skill for _, skill in tags}) > 5  # learned ones among them
    for job in jobs:
        refused = [refusal for refusal in refusals_of(job["refusals"] or "") if refusal.type == "TAG"]
        assert {refusal.code for refusal in refused} == {"not shown"}
        labels = {refusal.skill for refusal in refused}
        assert len(refused) == len(labels) >= 3  # all others of the book
        assert said[job["about"]] not in labels
