"""Words of the arms of a run on tasks, by turn, as pairs of question and answer that people or judges grade.

What an arm said stands beside what the reference arm said to the same message, as a stored answer of a replayed log
stands beside the log's own. So sheets, their order, labels and judges are those of logs. A question is the message
with its task's kind and reference, which no arm was shown. Where both said the same words, nobody is asked, as the
difference is 0; where nothing came, neither, as no words are never right.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.labels.hit_pairs import STRATA, ArmHits, HitPairs, text_digests, turn_numbers
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.core.draws import fold
from skg_bench.core.grid import F64, U64
from skg_bench.core.spoken import task_reference
from skg_bench.runfolder.run import Run, RunTables

_COLUMNS = ("message", "event", "said", "request_type", "time", "answer_correct")
_UNKNOWN_STRATUM = STRATA.index("not known")


def has_tasks(run: Run) -> bool:
    """Are the words of a run answers to messages that people wrote?"""
    return run.domain.in_words and run.domain.recorded


def word_pairs(run: RunTables, arms: Sequence[str], reference: str, seed: int = 0) -> HitPairs:
    """Words of the arms, one at least, at the turns whose task has a reference and at which they are other words than
    those of the reference arm. `seed`: of the permanent random numbers.
    """
    theirs = _tasks(run, reference)
    questions = pa.array(_questions(theirs), pa.string())
    nothing = pa.nulls(len(theirs), pa.timestamp("ms"))
    table = pa.table(
        {"user": theirs["user"], "event": theirs["event"], "message": questions, "logged_answer": theirs["said"],
         "time": theirs["time"], "logged_time": nothing, "logged_user": pa.nulls(len(theirs), pa.string())}
    )  # fmt: skip
    order, stored = turn_numbers(table, seed), {arm: _tasks(run, arm)["said"] for arm in arms}
    question = text_digests(pa.chunked_array([questions]))  # a task has one right answer, whoever asks, and whenever
    logged = _pairs(question, theirs["said"])
    hits = [_arm_words(arm, _pairs(question, answers), logged, order) for arm, answers in stored.items()]
    return HitPairs(table, question, order, hits, stored)


def check_labels(run: RunTables, pairs: HitPairs, reference: str) -> dict[int, int]:
    """Label of each pair by the run's own check; empty: nothing was checked."""
    labels = dict[int, int]()
    for hits in pairs.arms:
        for arm, digests in ((hits.arm, hits.pair), (reference, hits.logged)):
            right = _tasks(run, arm)["answer_correct"].cast(pa.int8()).fill_null(-1).to_numpy()[hits.turn]
            known = right >= 0
            grades = np.where(right[known] == 1, int(PairLabel.RIGHT), int(PairLabel.WRONG))
            labels.update(zip(digests[known].tolist(), grades.tolist(), strict=True))
    return labels


def silent_labels(pairs: HitPairs) -> dict[int, int]:
    """Label of each pair without words."""
    labels = dict[int, int]()
    for hits in pairs.arms:
        for digests, answers in ((hits.pair, pairs.stored[hits.arm]), (hits.logged, pairs.table["logged_answer"])):
            silent = digests[answers.is_null().to_numpy()[hits.turn]]
            labels.update(dict.fromkeys(silent.tolist(), int(PairLabel.WRONG)))
    return labels


def _tasks(run: RunTables, arm: str) -> pa.Table:
    """Turns of an arm whose task has a reference, by user and event."""
    turns = run.turns(arm, _COLUMNS).sort_by([("user", "ascending"), ("event", "ascending")])
    code, tasks = coded(turns["request_type"])
    known = np.array([bool(task_reference(task)) for task in tasks] + [False])  # the last is that of -1
    return turns.filter(pa.array(known[code]))


def _questions(turns: pa.Table) -> list[str]:
    columns = (turns[name].to_pylist() for name in ("message", "request_type"))
    return [f"{message}\n[task: {task}]" for message, task in zip(*columns, strict=True)]


def _pairs(question: U64, answers: pa.ChunkedArray) -> U64:
    return fold(question, text_digests(answers.cast(pa.string()).fill_null("")))


def _arm_words(arm: str, pair: U64, logged: U64, order: F64) -> ArmHits:
    turn = np.argsort(order, kind="stable")
    turn = turn[(pair != logged)[turn]]
    return ArmHits(arm, turn, pair[turn], logged[turn], np.full(len(turn), _UNKNOWN_STRATUM))
