"""Learning jobs of a turn as a simulated reflector has them, and what it writes about each."""

import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skg_bench.core.batch import ADD, TAG, Batch
from skg_bench.core.content import Content
from skg_bench.core.draws import fold, uniform
from skg_bench.core.feedback import FEEDBACK_KINDS, KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.curator.shared.job_feedback import signal
from skg_bench.skillbook.prompt_layout import shown_id

_OK, _MISS = (FEEDBACK_KINDS["rating"].index(level) for level in ("ok", "miss"))


@dataclass(frozen=True, slots=True)
class Study:
    """Jobs of a turn, flat over n, with what is known to whom studies them."""

    row: I32  # [n] row of the user
    turn: I32  # [n] that is learned from
    kind: I32  # [n] of feedback that began the job
    value: I32  # [n]
    key: U64  # [n] of the job's draws
    seen: Observation
    books: Skillbooks

    def u(self, item: int, which: Bool | I64 | slice = slice(None)) -> F64:
        """Uniforms of these jobs."""
        return uniform(fold(self.key[which], item))

    def of(self, known: KnownFeedback) -> I64:
        """The job that each row of feedback belongs to, by user and turn; -1: none."""
        n = len(self.row)
        job = np.full((len(self.seen.text), self.seen.turn + 1), n)
        np.minimum.at(job, (self.row, self.turn), np.arange(n))  # of several, the first
        job[job == n] = -1
        return job[known.row, known.turn]


@dataclass(frozen=True, slots=True)
class Made:
    """Operations, and the job of each."""

    batch: Batch
    job: I64  # [n]


def reflections(study: Study, made: Made, outcome: I32) -> I32:
    """Text ids of what the reflector wrote about each job, `[n]`: JSON with the fields of Pause's `ReflectorOutput`.

    `outcome` `[n]`: what the user did at the turn that the job is about, -1: nobody remembers. A text is made once for
    all jobs that have the same.
    """
    texts, books, n = study.seen.context.texts, study.books, len(study.row)
    batch, job = made.batch, made.job
    columns = np.zeros((6, n), np.uint64)
    for place, code in ((0, _OK), (2, _MISS)):
        at = np.flatnonzero((batch.op == TAG) & (batch.rating == code))
        columns[place, job[at]] = batch.skill[at] + 1
        columns[place + 1, job[at]] = books.content[batch.row[at], batch.skill[at]]
    at = np.flatnonzero(batch.op == ADD)
    columns[4, job[at]] = batch.content[at]
    domain = study.seen.context.domain
    outcome = np.where(study.kind == domain.later, outcome, -1)
    columns[5] = (study.kind.astype(np.int64) << 32 | study.value.astype(np.int64) << 16 | (outcome + 1)).view(
        np.uint64
    )
    same = np.zeros(n, np.uint64)
    for column in columns:
        same = fold(same, column)
    _, first, index = np.unique(same, return_index=True, return_inverse=True)
    helped, helpful, harmed, harmful, learned, _ = columns[:, first]
    keys = np.concatenate([helpful, harmful, learned])
    contents = dict(zip(keys.tolist(), texts.contents.of(keys), strict=True))
    distinct = zip(
        study.kind[first].tolist(), study.value[first].tolist(), outcome[first].tolist(), helped.tolist(),
        helpful.tolist(), harmed.tolist(), harmful.tolist(), learned.tolist(), strict=True,
    )  # fmt: skip
    words = [
        _written(
            signal(domain, kind, value, act), _shown(good, contents[well]), _shown(bad, contents[ill]), contents[new]
        )
        for kind, value, act, good, well, bad, ill, new in distinct
    ]
    return texts.add(words)[index]


def _shown(skill: int, content: Content | None) -> str | None:
    """The id of a skill, by one more than its number, as prompts show it; 0: none."""
    return shown_id("skill" if content is None else content.section, skill - 1) if skill else None


@lru_cache(maxsize=100_000)
def _written(heard: str, helpful: str | None, harmful: str | None, learned: Content | None) -> str:
    verdicts = [f"; {skill} {verb}" for skill, verb in ((helpful, "helped"), (harmful, "harmed")) if skill is not None]
    learnings = [
        {"section": content.section, "content": content.issue, "atomicity_score": 1.0}
        for content in (learned,) if content is not None
    ]  # fmt: skip
    output = {
        "analysis": heard + "".join(verdicts), "helpful_skill_ids": [] if helpful is None else [helpful],
        "harmful_skill_ids": [] if harmful is None else [harmful], "new_learnings": learnings,
    }  # fmt: skip
    return json.dumps(output, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
