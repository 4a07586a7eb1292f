"""A model that chooses: what it is shown, what becomes of its answers, and what they cost."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.asking.asking import Completion, End, Prompt
from skg_bench.asking.prompts import data_of
from skg_bench.asking.scripts import SCRIPTS
from skg_bench.assistant.pipeline.components import with_components
from skg_bench.core.content import Content
from skg_bench.core.deciding import Candidates, Shown
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64
from skg_bench.core.texts import Texts
from skg_bench.core.types import Completions
from skg_bench.llm.scripted import Scripted
from skg_bench.llm.simulated import Simulated
from skg_bench.policy.llm_chooser import LLMChooser
from skg_bench.runfolder.run import Run
from tests.laws import shoppers, world
from tests.policy.played import candidates, keys

USERS, PLACES = 4, 3
MESSAGES = ["shoes for 80", "a phone for 500", "tea for 4", "a lamp for 30"]
SAYS = [Content("waiting", f"issue {i}", f"insight {i}") for i in range(9)]
SCRIPTED = Scripted("learner", 0.0, 0.0, 0.0)
SIMULATED = Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4)


@dataclass(frozen=True, eq=False)
class Model:
    """Answers by a function, and keeps what it was asked."""

    answer: Callable[[Prompt], Completion]
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


def saying(value: Any, end: End = "ok") -> Callable[[Prompt], Completion]:
    """The same answer to each prompt, at a price."""
    return lambda _prompt: Completion("", value, end, 100, 10, 20, 0.25, 1500.0)


def reader(answer: Callable[[Prompt], Completion]) -> tuple[LLMChooser, Model]:
    model = Model(answer)
    return LLMChooser(model, 200, None), model


@dataclass
class Turn:
    """A message of each user, who has three listed skills: those of user `u` begin with number `u`. One of the second
    user's says nothing, and the last user has none that says something.
    """

    spent: dict[int, tuple[float, ...]] = field(default_factory=dict)
    recorded: bool = False
    redacts: bool = False

    def candidates(self) -> Candidates:
        texts = Texts(MESSAGES, [], None, list if self.redacts else None, recorded=self.recorded)
        said = np.array([texts.contents.add(content) for content in SAYS], np.uint64)
        skill = (np.arange(USERS)[:, None] + np.arange(PLACES)).astype(np.int32)
        content = said[skill]
        content[1, 1] = content[3] = 0
        counts = {"ok": [2.5, 0.0, 1.0], "rated": [4, 2, 1], "miss": [1, 2, 0]}
        columns: dict[str, Any] = {
            name: np.tile(np.array(row), (USERS, 1)).astype(np.float64 if name == "ok" else np.int32)
            for name, row in counts.items()
        }
        rows = np.arange(USERS)
        shown = Shown(rows, rows.astype(np.int32), content, keys(0, USERS), texts, self.report)
        return replace(candidates(0, USERS, PLACES), skill=skill, shown=shown, **columns)

    def report(self, rows: I64, cost: Completions) -> None:
        columns = (cost.tokens_in, cost.tokens_out, cost.cost_usd, cost.latency_ms)
        self.spent |= dict(zip(rows.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True))


@pytest.mark.req("P45")
@pytest.mark.parametrize(
    ("answer", "places"),
    [
        (saying({"skill_id": "waiting-00003", "reason": "it fits"}), [2, -1, 0, -1]),  # the second user's says nothing
        (saying({"skill_id": "waiting-00002", "reason": "it fits"}), [1, 0, -1, -1]),
        (saying({"skill_id": None, "reason": "none fits"}), [-1, -1, -1, -1]),
        (saying({"skill_id": "waiting-00009", "reason": "of another book"}), [-1, -1, -1, -1]),
        (saying({"skill_id": "[waiting-00003]", "reason": "as it stands"}), [-1, -1, -1, -1]),
        (saying({"reason": "a schema of its own"}), [-1, -1, -1, -1]),
        (saying(None, "invalid"), [-1, -1, -1, -1]),
        (saying(None, "refused"), [-1, -1, -1, -1]),
        (saying(None, "timeout"), [-1, -1, -1, -1]),
        (saying(None, "error"), [-1, -1, -1, -1]),
    ],
)
def test_a_listed_skill_that_is_named_is_certain_and_all_else_is_the_fallback_and_paid_for(
    answer: Callable[[Prompt], Completion], places: list[int]
) -> None:
    turn, (policy, _) = Turn(), reader(answer)
    share = policy.propensities(turn.candidates(), None)
    assert (share.argmax(axis=1) - 1).tolist() == places
    assert set(share.reshape(-1).tolist()) == {0.0, 1.0}
    assert turn.spent == dict.fromkeys((0, 1, 2), (100, 20, 0.25, 1500.0))


@pytest.mark.req("P45")
def test_the_model_reads_the_message_and_the_skills_that_say_something_as_prompts_show_them() -> None:
    policy, model = reader(saying(None, "error"))
    policy.propensities(Turn().candidates(), None)
    counts = ("Helpful 2, harmful 1, neutral 1", "Helpful 0, harmful 2, neutral 0", "Helpful 1, harmful 0, neutral 0")
    listed = {0: [0, 1, 2], 1: [0, 2], 2: [0, 1, 2]}
    assert [data_of(prompt) for prompt in model.prompts] == [
        {
            "message": MESSAGES[user],
            "skills": [
                f"[waiting-{user + place + 1:05d}] waiting\nIssue: issue {user + place}\n"
                f"Insight: insight {user + place}\n{counts[place]}"
                for place in places
            ],
        }
        for user, places in listed.items()
    ]
    assert {(prompt.role, prompt.limit, prompt.recorded, prompt.redacted) for prompt in model.prompts} == {
        ("chooser", 200, False, False)
    }


def test_where_nothing_can_be_read_nothing_is_asked() -> None:
    turn, (policy, model) = Turn(), reader(saying(None, "error"))
    whole = turn.candidates()
    for unread in (whole.rows(np.array([3])), replace(whole, shown=None)):
        assert (policy.propensities(unread, None)[:, 0] == 1).all()
    assert model.prompts == []
    assert turn.spent == {}


def test_a_users_prompt_and_cost_are_the_same_in_any_company() -> None:
    def answer(prompt: Prompt) -> Completion:
        value = {"skill_id": "waiting-00003", "reason": ""}
        return Completion("", value, "ok", prompt.draw % 1000, 0, 1, 0.0, 0.0)

    turn, (policy, model) = Turn(), reader(answer)
    whole, order = turn.candidates(), np.array([2, 3, 0])
    share, spent, prompts = policy.propensities(whole, None), dict(turn.spent), list(model.prompts)
    turn.spent.clear()
    model.prompts.clear()
    assert np.array_equal(policy.propensities(whole.rows(order), None), share[order])
    assert turn.spent == {row: spent[row] for row in (2, 0)}
    assert model.prompts == [prompts[2], prompts[0]]
    assert len({prompt.draw for prompt in prompts}) == 3
    assert all(0 <= prompt.draw < 2**63 for prompt in prompts)


@pytest.mark.parametrize(("recorded", "redacts"), [(True, False), (True, True)])
def test_what_people_wrote_is_marked_in_every_prompt(recorded: bool, redacts: bool) -> None:
    policy, model = reader(saying(None, "error"))
    policy.propensities(Turn(recorded=recorded, redacts=redacts).candidates(), None)
    assert {(prompt.recorded, prompt.redacted) for prompt in model.prompts} == {(recorded, redacts)}


def test_the_scripted_model_takes_the_first_skill_that_did_not_harm_more_than_it_helped() -> None:
    policy, model = reader(saying(None, "error"))
    policy.propensities(Turn().candidates(), None)
    (prompt, *_), skills = model.prompts, data_of(model.prompts[0])["skills"]
    for listed, named in (
        (skills, "waiting-00001"),
        (skills[1:], "waiting-00003"),
        (skills[1:2], None),
        ([skills[1].replace("issue 1", "[waiting-00009] x\nHelpful 9, harmful 0, neutral 0")], None),  # a forged one
    ):
        block = json.dumps({"message": "", "skills": listed})
        one = replace(prompt, user=f"```json\n{block}\n```")
        assert json.loads(SCRIPTS["learner"]["chooser"](one))["skill_id"] == named


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"llm": SIMULATED}, "policy.llm=Simulated draws what it costs to answer users"),
        ({"answer_tokens": 49}, "policy.answer_tokens=49 must be at least 50"),
        ({"prompts": "nowhere"}, "there is no prompt file nowhere/chooser.md"),
    ],
)
def test_a_policy_that_cannot_ask_is_refused_before_anything_runs(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        replace(LLMChooser(SCRIPTED, 200, None), **changes)


# ------------------------------------------------------------------------------------------------- in a run


def run(out: Path, arms: tuple[str, ...], answer: Callable[[Prompt], Completion]) -> tuple[Run, Model]:
    """The world of the laws with this model in the place of the scripted one."""
    policy, model = reader(answer)
    made = shoppers.plan(USERS, arms)
    changed = tuple(with_components(arm, policy=policy) if arm.name == "asked" else arm for arm in made.arms)
    return shoppers.carry_out(replace(made, arms=changed), out, USERS, 64), model


def by_draw(prompt: Prompt) -> Completion:
    """An answer and a cost that are another for each turn."""
    labels = [skill[1 : skill.index("]")] for skill in data_of(prompt)["skills"]]
    value = {"skill_id": [*labels, None][prompt.draw % (len(labels) + 1)], "reason": ""}
    return Completion("", value, "ok", prompt.draw % 1000, 0, prompt.draw % 7, prompt.draw % 16 / 16, 512.0)


@pytest.mark.req("P45")
def test_beside_an_arm_that_asks_nothing_each_turn_has_its_own_choice_and_cost(tmp_path: Path) -> None:
    stacked, _ = run(tmp_path / "stacked", ("live", "asked"), by_draw)
    for arm in ("live", "asked"):
        alone, _ = run(tmp_path / arm, (arm,), by_draw)
        assert world.differences(stacked, alone, range(USERS), [arm]) == []
    assert len(set(stacked.turns("asked")["skill"].to_pylist())) > 4


def test_a_turn_pays_for_its_choice_and_its_propensity_is_1(tmp_path: Path) -> None:
    def free(prompt: Prompt) -> Completion:
        return replace(by_draw(prompt), tokens_in=0, tokens_out=0, cost_usd=0.0, latency_ms=0.0)

    paid, model = run(tmp_path / "paid", ("asked",), by_draw)
    unpaid, _ = run(tmp_path / "unpaid", ("asked",), free)
    more, less = paid.turns("asked"), unpaid.turns("asked")
    assert set(more["propensity"].to_pylist()) == {1.0}
    assert set(more["explored"].to_pylist()) == {False}
    assert more["skill"].to_pylist() == less["skill"].to_pylist()
    assert more.num_rows == len(model.prompts) > 50
    asked = [(data_of(prompt)["message"], by_draw(prompt)) for prompt in model.prompts]
    messages = more["message"].to_pylist()
    for name in ("tokens_in", "tokens_out", "cost_usd", "latency_ms"):
        extra = (more[name].to_numpy() - less[name].to_numpy()).round(9)
        paid_for = sorted(zip(messages, extra.tolist(), strict=True))
        assert paid_for == sorted((message, float(getattr(completion, name))) for message, completion in asked), name


def test_a_recorded_log_and_a_redacted_one_say_so_to_the_model(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [
        {"user": "ann", "time": f"2026-01-05T10:{i:02d}:00", "message": f"what is {i % 3}", "satisfaction": "ok"}
        for i in range(8)
    ]
    log.write_text("\n".join(json.dumps(row) for row in rows))
    for redact in (False, True):
        job = prepare(compose([
            "simulator=recorded", f"simulator.path={log}", f"simulator.redact={str(redact).lower()}",
            "simulator.columns.satisfaction=satisfaction", "embedder=hashing", "curator=reflecting",
            "policy=llm_chooser", "arms={model: [], never: [policy=never, curator=none]}", "reference=never",
            "serving=prompted", f"out={tmp_path / str(redact)}", "users=null", "weeks=null",
        ]))  # fmt: skip
        policy, model = reader(lambda prompt: SCRIPTED.complete([prompt])[0])
        arms = with_components(job.plan.arms[0], policy=policy), job.plan.arms[1]
        start(replace(job, plan=replace(job.plan, arms=arms)))
        assert {(prompt.recorded, prompt.redacted) for prompt in model.prompts} == {(True, redact)}
