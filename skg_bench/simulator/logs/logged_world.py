"""A log of one arm as a world, in which other arms are replayed.

Where an arm gives the logged answer, correctness, rating, cost and latency are the logged ones. Elsewhere they are
drawn from models that were fitted on the log. The world that made the log is not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, draw
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, feedback_rows
from skg_bench.core.grid import F64, I8, I32, I64, Bool
from skg_bench.core.types import RATINGS
from skg_bench.core.world import (
    FALLBACK,
    OFFERS,
    PROMPTED,
    RIGHT,
    STORED,
    UNKNOWN,
    WRONG,
    Draws,
    Event,
    Events,
    Ledger,
    Reaction,
    Response,
    Served,
    Stream,
    Supposing,
    Truth,
)
from skg_bench.simulator.logs.arm_log import ArmLog
from skg_bench.simulator.logs.outcome_models import OutcomeModels, folds_of

# Basis of a turn's outcome: none yet, the log, a model, or a model without support in the log.
UNSEEN, KNOWN, MODELLED, UNSUPPORTED = range(4)
LOGGED_OFFER, INVENTED_OFFER = 1, 2
LEAST_CHANCE = 0.01  # of other choices at a turn; below it the log's arm could not have given another answer
# Numbers of two more imputations: half of the drawn bad ratings are good, or half of the good ones bad.
MILDER, HARSHER = -1, -2
_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")
_HOWS = 1 + max(FALLBACK, STORED, PROMPTED)
_PARTS = ("right", "rating", "lateness", "offer", "flip")  # what is drawn of a turn


@dataclass(frozen=True, slots=True)
class ReplayUsers:
    """Users of a log under another arm, and their outcomes by number of the event. Several rows may be of one user."""

    events: Events
    user: I32  # [B]
    imputation: I32  # [B] number of the imputation: from 0 on, or MILDER, HARSHER
    ledger: Ledger
    basis: I8  # [B, W] UNSEEN, KNOWN, MODELLED, UNSUPPORTED
    chance: F64  # [B, W] that the answer is right
    how: I8  # [B, W] as it was served
    cost_usd: F64  # [B, W]
    latency_ms: F64  # [B, W]
    reaction: I8  # [B, W] 0: no offer; LOGGED_OFFER, INVENTED_OFFER

    def imputed(self, imputation: I32) -> "ReplayUsers":
        """The same rows, with these numbers of imputations `[B]`."""
        return replace(self, imputation=imputation)


@dataclass(frozen=True)
class LoggedWorld:
    """The users of a log."""

    log: ArmLog
    models: OutcomeModels
    hit_latency_ms: float
    domain: Domain
    digest: str
    stream: Stream = field(default="exogenous", init=False)
    types: Sequence[str] = field(default=(), init=False)
    intents: Sequence[str] = field(default=(), init=False)

    @property
    def messages(self) -> Sequence[str]:
        """Messages of the log."""
        return self.log.messages

    @property
    def names(self) -> Sequence[str]:
        """Names of skills of the log; the last is NAMELESS."""
        return self.log.names

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """Turns of these users in the log."""
        return self.log.counts[users]

    def begin(self, seed: int, users: I32, weeks: int) -> ReplayUsers:
        """All logged turns of these users, without truth."""
        log, n = self.log, self.log.counts[users]
        mask = np.arange(n.max(initial=0)) < n[:, None]
        at = np.where(mask, log.start[users][:, None] + np.arange(mask.shape[1]), 0)
        none = np.full(mask.shape, -1, np.int32)
        events = Events(
            users, n, np.where(mask, log.event[at], 0).astype(np.int32),
            np.where(mask, log.time[at], np.iinfo(np.int64).max), np.where(mask, log.text[at], 0).astype(np.int32),
            Truth(none, none, none, np.zeros(mask.shape, np.bool_)),
        )  # fmt: skip
        ledger = Ledger.of(events)
        shape = ledger.type.shape
        code, number = (np.zeros(shape, np.int8) for _ in range(3)), (np.zeros(shape) for _ in range(3))
        basis, how, reaction = code
        chance, usd, latency = number
        return ReplayUsers(
            events, users, np.zeros(len(users), np.int32), ledger, basis, chance, how, usd, latency, reaction
        )

    def events(self, state: ReplayUsers, turn: int) -> Event:
        """Events of turn `turn`."""
        return state.events.at(turn)

    def judge(self, state: ReplayUsers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """UNKNOWN for all: outcomes are looked up or drawn for answers that are given, in `respond`."""
        return np.full(np.broadcast_shapes(np.shape(row), np.shape(answer)), UNKNOWN, np.int32)

    def respond(self, state: ReplayUsers, event: Event, served: Served, draws: Draws) -> tuple[ReplayUsers, Response]:
        """Logged response if the answer is the logged one, else one drawn from models.

        Raises UsageError for an arm that compares with the LLM's answer, or runs procedures.
        """
        how, answer = served.how, np.where(served.how == FALLBACK, -1, served.answer)
        self._check(how, served.compared)
        rows, number = np.arange(len(how)), event.number
        log, at = self.log, self.log.place[state.user, number]
        source = np.maximum(answer, 0)
        same = (log.how[at] == how) & (log.source[at] == answer)
        same &= (answer < 0) | (state.basis[rows, source] == KNOWN)
        known = same & ~np.isnan(log.estimated[at])
        basis = np.where(known, KNOWN, self._support(state.user, at, how, source))
        chance, rating, delay = log.estimated[at], log.rating[at].astype(np.int32), log.delay[at]
        right = log.right[at] == 1.0
        r = np.flatnonzero(known & np.isnan(log.right[at]))
        right[r] = _uniform(state, draws, r, "right") < log.expected[at][r]
        for kind in (FALLBACK, STORED, PROMPTED):
            r = np.flatnonzero(~known & (how == kind))
            if not len(r):
                continue
            features, fold = self._features(state, event, kind, r, source[r]), folds_of(len(log.start))[state.user[r]]
            chance[r] = self.models.chance(kind, fold, features)
            right[r] = _uniform(state, draws, r, "right") < chance[r]
            missing = r[~same[r]]  # a known answer without a reward keeps its rating
            some = ~same[r]
            share = self.models.ratings(kind, fold[some], features[some], right[missing].astype(np.float64))
            u = _uniform(state, draws, missing, "rating")
            drawn = (u[:, None] > share.cumsum(axis=1)).sum(axis=1).clip(max=3) - 1
            rating[missing] = _flipped(drawn, state.imputation[missing], _uniform(state, draws, missing, "flip"))
            delay[missing] = self._delays(_uniform(state, draws, missing, "lateness"))
        called = how != STORED
        for values, now in (
            (state.basis, basis), (state.chance, chance), (state.how, how),
            (state.cost_usd, np.where(same, log.cost_usd[at], self._paid[0][how])),
            (state.latency_ms, np.where(same, log.latency_ms[at], self._paid[1][how])),
        ):  # fmt: skip
            values[rows, number] = now
        state.ledger.mint(np.flatnonzero(called), event, right)
        quality = np.where(right, RIGHT, WRONG).astype(np.int32)
        feedback = feedback_rows(RATING, rating, delay)
        return state, Response(quality, np.where(called, number, served.answer), feedback)

    def offer(self, state: ReplayUsers, event: Event, offers: Bool, draws: Draws) -> tuple[ReplayUsers, Reaction]:
        """Logged reaction to an offer at the same event; without one, a drawn reaction, counted as INVENTED_OFFER."""
        rows, number = np.flatnonzero(offers), event.number
        at = self.log.place[state.user, number]
        code = np.where(offers, self.log.offer[at], -1).astype(np.int32)
        name = np.where(code >= 0, self.log.name[at], -1)
        r = rows[code[rows] < 0]
        if len(r):
            fold = folds_of(len(self.log.start))[state.user[r]]
            share = self.models.accepted.probabilities(fold, self.models.features.alone(event.text[r], event.time[r]))
            u = _uniform(state, draws, r, "offer")
            code[r] = (u[:, None] > share.cumsum(axis=1)).sum(axis=1).clip(max=len(OFFERS) - 1)
        taken = (code >= 0) & (code != OFFERS.index("declined"))
        name = np.where(taken, np.where(name >= 0, name, len(self.names) - 1), -1).astype(np.int32)
        state.reaction[rows, number[rows]] = LOGGED_OFFER
        state.reaction[r, number[r]] = INVENTED_OFFER
        return state, Reaction(code, name, name)

    def merge(self, state: ReplayUsers, event: Event, row: I64, earlier: I32, draws: Draws) -> ReplayUsers:
        """Changes nothing, as no procedure is run."""
        return state

    # ------------------------------------------------------------------------------------------------- parts

    def _check(self, how: I32, compared: I32) -> None:
        if (compared >= 0).any():
            raise UsageError("a target compares with answers of the LLM, and a log has no such verdicts; name another")
        if not np.isin(how, (FALLBACK, STORED, PROMPTED)).all():
            raise UsageError("a target runs procedures, and a log does not have their results; name another")

    def _support(self, user: I32, at: I64, how: I32, source: I32) -> I8:
        """MODELLED for an answer of the LLM, or one that the log's arm could have given here; else UNSUPPORTED."""
        log = self.log
        stored = log.place[user, source]
        held = (log.kept[stored] < log.turn[at]) & (log.turn[at] <= log.until[stored])
        chosen = held & (log.propensity[at] <= 1.0 - LEAST_CHANCE)
        fits = np.array([kind in self.models.right for kind in range(_HOWS)])[how]
        return np.where(fits & ((how == FALLBACK) | chosen), MODELLED, UNSUPPORTED).astype(np.int8)

    def _features(self, state: ReplayUsers, event: Event, how: int, r: I64, source: I32) -> F64:
        if how == FALLBACK:
            return self.models.features.alone(event.text[r], event.time[r])
        ledger, logged = state.ledger, self.log.expected[self.log.place[state.user[r], source]]
        return self.models.features.pairs(
            event.text[r], ledger.text[r, source], event.time[r] - ledger.time[r, source],
            np.where(state.basis[r, source] == KNOWN, logged, ledger.right[r, source]),
        )  # fmt: skip

    def _delays(self, u: F64) -> I64:
        delays = self.models.delays
        return delays[(u * len(delays)).astype(np.int64)] if len(delays) else np.zeros(len(u), np.int64)

    @cached_property
    def _paid(self) -> tuple[F64, F64]:
        """Mean dollars and milliseconds of the log by how answers were served; a stored one costs nothing."""
        usd, latency = np.zeros(_HOWS), np.full(_HOWS, self.hit_latency_ms)
        for how in (FALLBACK, PROMPTED):
            chosen = self.log.how == (how if how in self.models.right else FALLBACK)
            if chosen.any():
                usd[how], latency[how] = self.log.cost_usd[chosen].mean(), self.log.latency_ms[chosen].mean()
        return usd, latency


def _uniform(state: ReplayUsers, draws: Draws, rows: I64, part: str) -> F64:
    """Uniforms of a part of the turn of some rows `[n]`; keyed apart from draws of the world that made the log."""
    return draw(draws.event[rows], np.maximum(state.imputation[rows], 0), Purpose.IMPUTED, _PARTS.index(part))


def _flipped(rating: I32, imputation: I32, u: F64) -> I32:
    """Ratings after half of the bad ones became good (MILDER), or half of the good ones bad (HARSHER)."""
    milder, harsher = (imputation == MILDER) & (rating > _OK), (imputation == HARSHER) & (rating == _OK)
    half = u < 0.5
    return np.where(milder & half, _OK, np.where(harsher & half, _MISS, rating)).astype(np.int32)
