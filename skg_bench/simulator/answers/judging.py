"""Simulated users before their first turn, and the quality of the answers that they get."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.feedback import AGREES, SILENCE, Feedback, feedback_rows
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.world import (
    NEAR,
    PROCEDURE,
    PROMPTED,
    RIGHT,
    STORED,
    UNKNOWN,
    WRONG,
    Draws,
    Event,
    Events,
    Execution,
    Ledger,
    Served,
    Supposing,
)
from skg_bench.simulator.answers.procedures import Running


@dataclass(frozen=True, slots=True)
class Users:
    """Users with all that they will bring, and what they remember."""

    events: Events
    fatigue: F64  # [B] earlier offers to capture, with a half-life
    last_offer: I64  # [B] time of the last one
    ledger: Ledger

    @staticmethod
    def of(events: Events) -> "Users":
        """Before the first turn."""
        n = len(events.user)
        return Users(events, np.zeros(n), np.zeros(n, np.int64), Ledger.of(events))


@dataclass(frozen=True, slots=True, eq=False)
class Judging:
    """Quality of answers. Both arrays end with one more value, which index -1 reads: type -1 is a one-off, whose answer
    is about nothing but the same message.
    """

    intent_of: I32  # [types + 1] intent of a request type; the last value equals no other
    ttl_of: I64  # [types + 1] seconds that an answer to it holds
    running: Running

    def judge(self, ledger: Ledger, event: Event, row: I64, answer: I32, supposing: Supposing) -> I32:
        """Quality of answers; `row` and `answer` broadcast."""
        at = row * ledger.type.shape[1] + answer  # answer -1 reads another answer's cell; `about` masks it
        type_, source = event.type.take(row), ledger.type.take(at, mode="wrap")
        intent = self.intent_of.take(type_, mode="wrap")
        about = (answer >= 0) & (intent == self.intent_of.take(source, mode="wrap"))
        about &= (type_ >= 0) | (event.text.take(row) == ledger.text.take(at, mode="wrap"))
        if supposing in ("as given", "run"):
            about &= ledger.right.take(at, mode="wrap")
        same = about & (type_ == source)
        if supposing == "rightly now":
            holds = same & (self.ttl_of.take(type_, mode="wrap") > 0)
        else:
            age = np.maximum(event.time.take(row) - ledger.time.take(at, mode="wrap"), 0)
            holds = same & (age < self.ttl_of.take(type_, mode="wrap"))
        if supposing in ("run", "run rightly"):
            holds |= about & ledger.general.take(at, mode="wrap") & self.running.exists(row, intent)
        quality: I32 = about.astype(np.int32) + holds  # WRONG 0, NEAR 1, RIGHT 2
        return quality

    def answered(self, ledger: Ledger, event: Event, served: Served, draws: Draws) -> tuple[I32, I32, Execution | None]:
        """Quality and handle of the answers given, `[B]`, and what came of procedures; those of a model are minted."""
        rows = np.arange(len(served.how))
        called, prompted, run = served.how != STORED, served.how == PROMPTED, served.how == PROCEDURE
        execution, ran = None, None
        if np.logical_or.reduce(run):
            ran, execution = self._run(ledger, event, served.answer, run, draws)
            called = ~run & called | execution.failed
        ability = served.ability
        if np.logical_or.reduce(
            prompted
        ):  # a skill's prompt carries no answer: what counts is that it is about the same intent
            about = self.judge(ledger, event, rows, served.answer, "rightly now")
            ability = np.where(prompted & (about == WRONG), served.if_misled, ability)
        right = np.where(prompted, draws.skill_right, draws.llm_right) < ability
        quality = np.where(right, RIGHT, np.where(np.isnan(ability), UNKNOWN, WRONG)).astype(np.int32)
        if not called.all():
            quality = np.where(called, quality, self.judge(ledger, event, rows, served.answer, "as given"))
        if ran is not None:
            quality = np.where(run & ~called, ran, quality)
        ledger.mint(called.nonzero()[0], event, quality == RIGHT, self.running.general(rows, draws.event))
        return quality, np.where(called, event.number, served.answer), execution

    def _run(self, ledger: Ledger, event: Event, answer: I32, run: Bool, draws: Draws) -> tuple[I32, Execution]:
        """Quality of what comes back from procedures made of these answers, `[B]`, and what came of running them."""
        n, every = len(run), np.arange(len(run))
        stored, could = (self.judge(ledger, event, every, answer, how) for how in ("as given", "run"))
        intent = self.intent_of.take(event.type, mode="wrap")
        source = np.maximum(answer, 0)
        general = run & (could == RIGHT) & ledger.general[every, source] & self.running.exists(every, intent)
        rows = general.nonzero()[0]
        right, made = self.running.run(
            rows, draws.event[rows], intent[rows], event.text[rows], ledger.text[rows, source[rows]]
        )
        execution = Execution(np.zeros(n, np.bool_), np.full(n, -1, np.int32), np.zeros(n), np.zeros(n))
        for f in fields(Execution):
            getattr(execution, f.name)[rows] = getattr(made, f.name)
        quality = stored.copy()
        quality[rows] = np.where(right, RIGHT, NEAR)
        return quality, execution

    def merge(self, ledger: Ledger, event: Event, row: I64, earlier: I32, draws: Draws) -> None:
        """Rows `row` `[n]` have a skill of answer `earlier` and of that just minted, which stands for it from now on.
        If both are of one intent, it stays general if it was, and another value may make it so; else it is made anew.
        """
        type_, before = event.type[row], ledger.type[row, earlier]
        same = (type_ >= 0) & (before >= 0) & (self.intent_of[type_] == self.intent_of[before])
        row, earlier, other = row[same], earlier[same], (type_ != before)[same]
        again = other & self.running.again(row, draws.event[row])
        ledger.general[row, event.number[row]] = ledger.general[row, earlier] | again

    def agreeing(self, ledger: Ledger, event: Event, served: Served, quality: I32) -> Feedback:
        """Does the model's answer say what the one says that it is compared with? Only if both are RIGHT, as two
        answers that are not are taken to differ. An arm is told a judge's verdict instead (engine/agreement_judge.py).
        """
        compared = served.compared >= 0
        if not np.logical_or.reduce(compared):
            return SILENCE
        stored = self.judge(ledger, event, np.arange(len(quality)), served.compared, "as given")
        return feedback_rows(AGREES, np.where(compared, (stored == RIGHT) & (quality == RIGHT), -1))
