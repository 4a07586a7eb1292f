"""Learning with a model from advice: one job for what the user did and one for each later answer, in Pause's words."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.prompts import data_of
from skg_bench.asking.scripts import SCRIPTS
from skg_bench.core import learning_jobs
from skg_bench.core.batch import ADD, TAG, Batch
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING
from skg_bench.core.state import check_state
from skg_bench.curator.reflecting import Reflecting
from skg_bench.curator.shared.learning_job import Proposal
from skg_bench.simulator.advice.levels import ACCEPTED, OUTCOME, OVERRIDDEN, SATISFACTION, WORTH_IT
from skg_bench.simulator.advice.outcome import advice
from skg_bench.skillbook.proposals import Limits, refusals_of
from tests.curator.advised import Turn, with_books

GOLDEN = Path(__file__).parents[1] / "golden"
Answer = Callable[[Prompt], Any]


@dataclass(frozen=True, eq=False)
class Told:
    """A model that answers by a function, and keeps what it was asked."""

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
        values = [self.answer(prompt) for prompt in prompts]
        return [Completion(json.dumps(value), value, "ok", 10, 0, 5, 0.25, 100.0) for value in values]


def scripted(prompt: Prompt) -> Any:
    """As the packaged script says."""
    return json.loads(SCRIPTS["learner"][prompt.role](prompt))


def learner(answer: Answer = scripted) -> tuple[Reflecting, Told]:
    model = Told(answer)
    limits = Limits(adds=2, removes=1, tags=3, ratings=1, characters=2000, operations=10)
    return Reflecting(model, "v1", limits, 8000, "evidence", "reflection", 1000, None), model


def asked(model: Told, role: str) -> list[dict[str, Any]]:
    return [data_of(prompt) for prompt in model.prompts if prompt.role == role]


@pytest.mark.req("P28")
def test_an_override_pivots_from_the_generic_check_to_time_cost_framing() -> None:
    """Pause's example: the interaction of day 1, and what the skillbook holds after it."""
    golden = json.loads((GOLDEN / "pivot.json").read_text("utf-8"))

    def model(prompt: Prompt) -> Any:
        return golden["reflection"] if prompt.role == "reflector" else golden["update"]

    turn = Turn(1, active=1)
    generic = turn.texts.contents.add(Content("impulse-check-generic", "Do you really need this?"))
    with_books(turn, content=np.where(turn.books.active, np.uint64(generic), np.uint64(0)))
    turn.seen = replace(turn.seen, skill=np.zeros(1, np.int32))
    turn.hear(OUTCOME, OVERRIDDEN)
    turn.hear(RATING, 2)
    curator, told = learner(model)
    _, batch = turn.curated(curator)
    (data,) = asked(told, "reflector")
    assert data["feedback"] == {"channel": "outcome", "signal": golden["signal"]}
    assert golden["signal"] == advice(["delay"]).signal(OUTCOME, OVERRIDDEN, -1)
    assert data["skills_used"] == ["impulse-check-generic-00001"]
    assert data["answer"] == "a suggestion with skill impulse-check-generic-00001"
    (curation,) = asked(told, "skill_manager")
    assert curation["reflection"] == golden["reflection"]
    use, harmful, added = (one_of(batch, i) for i in range(3))
    assert (use.op[0], use.uses[0], use.rating[0]) == (TAG, 1, -1)
    assert (harmful.op[0], harmful.skill[0], harmful.rating[0]) == (TAG, 0, 2)
    (content,) = turn.texts.contents.of(added.content)
    assert added.op[0] == ADD
    assert content is not None
    assert (content.section, content.issue) == ("time-cost-framing", "That's 4 hours of your hourly rate")
    assert (added.text[0], added.source[0]) == (turn.seen.text[0], -1)
    (jobs,) = turn.jobs
    assert (jobs.kind.tolist(), jobs.value.tolist(), jobs.operations.tolist()) == ([OUTCOME], [OVERRIDDEN], [2])
    assert json.loads(turn.texts.read(jobs.reflection)[0]) == golden["reflection"]


def one_of(batch: Batch, i: int) -> Batch:
    return Batch(*(getattr(batch, name)[i : i + 1] for name in Batch.__slots__))


@pytest.mark.req("P23")
def test_a_skill_manager_that_is_told_the_analysis_alone_reads_no_ids_and_no_learnings() -> None:
    turn = Turn(1, active=1)
    generic = turn.texts.contents.add(Content("impulse-check-generic", "Do you really need this?"))
    with_books(turn, content=np.where(turn.books.active, np.uint64(generic), np.uint64(0)))
    turn.seen = replace(turn.seen, skill=np.zeros(1, np.int32))
    turn.hear(OUTCOME, OVERRIDDEN)
    whole, told = learner()
    analysis = replace(whole, told="analysis")
    batches = [turn.curated(curator)[1] for curator in (whole, analysis)]
    first, second = (data["reflection"] for data in asked(told, "skill_manager"))
    assert second == {"analysis": first["analysis"]}
    assert first.keys() > second.keys()
    assert [ADD in batch.op for batch in batches] == [True, False]  # the learning is lost
    assert all((batch.rating[batch.rating >= 0] == 2).sum() == 1 for batch in batches)  # the verdict is in the analysis
    with pytest.raises(UsageError, match=r"curator\.told='all', valid are reflection, analysis"):
        replace(whole, told="all")  # type: ignore[arg-type]


@pytest.mark.req("P29")
def test_a_later_answer_is_told_with_what_it_means_after_the_outcome() -> None:
    curator, told = learner()
    turn = Turn(3)
    turn.hear(OUTCOME, np.array([ACCEPTED, OVERRIDDEN, ACCEPTED], np.int32), row=range(3))
    state, _ = turn.curated(curator)
    check_state(state, 3, curator)
    turn.known = turn.known.rows(turn.known.kind == -1)
    turn.hear(SATISFACTION, WORTH_IT, row=range(2))
    turn.hear(RATING, 0, row=range(2))
    _, batch = turn.curated(curator, state)
    later = [data["feedback"] for data in asked(told, "reflector")[3:]]
    assert later == [
        {"channel": "satisfaction", "signal": "positive_reinforcement — user confirms good decision"},
        {"channel": "satisfaction", "signal": "negative_reinforcement — user is glad to have overridden the Guardian"},
    ]
    assert batch.rating.tolist() == [0, 2]  # what the model says, not what the signs say
    assert turn.jobs[1].kind.tolist() == [SATISFACTION] * 2


def test_ratings_that_signs_make_of_an_outcome_are_no_jobs_of_their_own() -> None:
    curator, told = learner()
    turn = Turn(4)
    turn.hear(OUTCOME, ACCEPTED, skill=-1)
    turn.hear(RATING, 0, skill=-1)
    turn.hear(RATING, 0, row=[1], turn=3)
    turn.curated(curator)
    assert [job for jobs in turn.jobs for job in jobs.kind.tolist()] == [OUTCOME] * 4 + [RATING]
    assert asked(told, "reflector")[0]["answer"] == "a generic question"
    assert asked(told, "reflector")[4]["feedback"] == {"rating": "ok"}


def test_the_packaged_script_learns_from_an_override() -> None:
    turn = Turn(2, active=2)
    turn.hear(OUTCOME, OVERRIDDEN)
    _, batch = turn.curated(learner()[0])
    assert batch.op.tolist() == [TAG, ADD] * 2
    assert set(batch.rating.tolist()) == {2, -1}


@pytest.mark.parametrize("n", [0, 3])
def test_a_proposer_that_does_not_give_one_proposal_a_job_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    turn = Turn(2)
    turn.hear(OUTCOME, OVERRIDDEN)
    monkeypatch.setattr(Reflecting, "propose", lambda self, jobs: [Proposal(None, "v1", {})] * n)
    with pytest.raises(UsageError, match=rf"Reflecting.propose gave {n} proposals for 2 jobs; give one for each"):
        turn.curated(learner()[0])


def test_whatever_a_proposer_gives_is_refused_where_it_is_not_the_jobs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, nonsense, an id of nobody, ten thousand operations, the same one twice: each a row that says so."""
    add = {"type": "ADD", "section": "strategies", "content": "Wait for a day."}
    tag = {"type": "TAG", "section": "strategies", "skill_id": "strategies-99999", "metadata": {"helpful": 1}}
    many = [{**add, "content": f"Wait for {i} days."} for i in range(10_000)]
    given = [None, 17, {"operations": [tag]}, {"operations": many}, {"operations": [add, add]}]
    turn = Turn(len(given))
    turn.hear(OUTCOME, OVERRIDDEN)
    monkeypatch.setattr(Reflecting, "propose", lambda self, jobs: [Proposal(batch, "v1", {}) for batch in given])
    _, batch = turn.curated(learner()[0])
    (jobs,) = turn.jobs
    results = [learning_jobs.RESULTS[code] for code in jobs.result]
    assert results == ["unchanged", "refused", "refused", "applied", "applied"]
    assert np.bincount(batch.row, minlength=len(given)).tolist() == jobs.operations.tolist() == [0, 0, 0, 2, 1]
    reasons = [turn.texts.read(jobs.refusals[i : i + 1])[0] if jobs.refusals[i] >= 0 else "" for i in range(len(given))]
    assert reasons[0] == ""
    codes = [{refusal.code for refusal in refusals_of(text)} for text in reasons[1:]]
    assert codes == [{"invalid"}, {"unknown skill"}, {"too many ADDs", "too many operations"}, {"said twice"}]
