"""The Guardian's world: users who are stopped before a purchase, listen or not, and say later whether it was right.

All of its numbers are assumed; `conf/simulator/guardian.yaml` says so at each. Reactions depend on what was said before
(`stream: stateful`): events are the same for every arm, so total effects pair by event; of one turn it must be said
whether the mood is the arm's own or fresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, fold, key, normal, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import feedback_rows, joined_rows
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.world import (
    RIGHT,
    WRONG,
    Draws,
    Event,
    Ledger,
    Reaction,
    Response,
    Served,
    Silence,
    SkillsSaid,
    Stream,
    Supposing,
)
from skg_bench.simulator.advice.afterwards import Afterwards
from skg_bench.simulator.advice.levels import AUTO_APPROVED, OUTCOME, OVERRIDDEN, WAIT
from skg_bench.simulator.advice.listening import Listening, PriceList, holds_back
from skg_bench.simulator.advice.outcome import Outcome, advice
from skg_bench.simulator.advice.people import Fading, Mood, Purchase, Shoppers
from skg_bench.simulator.advice.triggers import BANDS, Shopping
from skg_bench.simulator.order import EventOrder, permuted, random_order
from skg_bench.skillbook.library.strategies import Strategies, strategies

_SHARES = ("wanted_share", "accept_share", "wait_share", "answered", "not_sure", "mistaken")
_POSITIVE = ("triggers_per_week", "habit_half_life_days", "annoyance_half_life_days")
_NOT_NEGATIVE = (
    "volume_spread", "taste_spread", "wanted_spread", "kinds_apart", "fits", "liking", "liking_here", "discerns",
    "unsound", "habit", "annoyance", "blocked", "interrupt", "saving", "wait_hours", "asked_after_hours",
    "sitting_days",
)  # fmt: skip
_TIMES = ("wait_hours", "asked_after_hours", "sitting_days")
_LOGITS = ("persuades", "generic", "wanted_late", "wanted_per_band")
_LARGEST, _LONGEST = 1000, 10_000  # of a logit or a weight, and of days or hours
MOST_A_WEEK = 50  # for the median user: a day has room for 16


@dataclass(frozen=True)
class Guardian:
    """Simulated shoppers. Unit, meaning and source of each parameter stand in its yaml."""

    strategies: str | None
    triggers_per_week: float
    volume_spread: float
    taste_spread: float
    times: Sequence[float]
    bands: Sequence[float]
    wanted_share: float
    wanted_spread: float
    wanted_late: float
    wanted_per_band: float
    approve_below: int
    friction_from: int
    persuades: float
    generic: float
    kinds_apart: float
    fits: float
    liking: float
    liking_here: float
    discerns: float
    unsound: float
    habit: float
    habit_half_life_days: float
    annoyance: float
    annoyance_half_life_days: float
    accept_share: float
    wait_share: float
    wait_hours: float
    blocked: float
    interrupt: float
    saving: float
    answered: float
    asked_after_hours: float
    sitting_days: float
    not_sure: float
    mistaken: float
    order: EventOrder
    stream: Stream = field(default="stateful", init=False)
    reaches: ClassVar[Reaches] = {"strategies": Reach(("reads",))}

    def __post_init__(self) -> None:
        for name in _SHARES:
            self._check(name, 0 <= getattr(self, name) <= 1, "a number in [0, 1]")
        for name in _POSITIVE:
            self._check(name, 0 < getattr(self, name) <= _LONGEST, f"a number above 0, at most {_LONGEST}")
        for name in _NOT_NEGATIVE:
            most = _LONGEST if name in _TIMES else _LARGEST
            self._check(name, 0 <= getattr(self, name) <= most, f"a number from 0 to {most}")
        for name in _LOGITS:
            self._check(name, abs(getattr(self, name)) <= _LARGEST, f"a number from -{_LARGEST} to {_LARGEST}")
        self._check("triggers_per_week", self.triggers_per_week <= MOST_A_WEEK, f"at most {MOST_A_WEEK}")
        if self.accept_share + self.wait_share > 1:
            raise UsageError(
                f"simulator.accept_share={self.accept_share} and wait_share={self.wait_share} are shares of those who "
                "listen; together they are at most 1"
            )
        for name, n in (("times", 4), ("bands", BANDS)):
            shares = getattr(self, name)
            valid = len(shares) == n and all(0 <= share < np.inf for share in shares) and sum(shares) > 0
            self._check(name, valid, f"{n} numbers from 0, not all of them 0")
        self._check("order", self.order in get_args(EventOrder), " or ".join(get_args(EventOrder)))
        if not self.approve_below <= self.friction_from:
            raise UsageError(
                f"simulator.approve_below={self.approve_below} is above friction_from={self.friction_from}: the "
                "analyst approves below the first, the therapist begins at the second"
            )

    def _check(self, name: str, valid: bool, words: str) -> None:
        if not valid:
            raise UsageError(f"simulator.{name}={getattr(self, name)}, valid is {words}")

    # ------------------------------------------------------------------------------------------------- data

    @cached_property
    def domain(self) -> Domain:
        """Advice, with the kinds of its strategies."""
        return advice(self.kinds)

    @cached_property
    def table(self) -> Strategies:
        """Strategies and triggers."""
        return strategies(self.strategies)

    @property
    def messages(self) -> Sequence[str]:
        """All triggers."""
        return self.table.triggers.text

    @cached_property
    def types(self) -> Sequence[str]:
        """Names of contexts."""
        return [f"{category}, {time}" for category in self.table.categories for time in self.table.times]

    @property
    def intents(self) -> Sequence[str]:
        """Contexts as well: all that there are, and enough of them to stand for new purchases."""
        return self.types

    @cached_property
    def names(self) -> Sequence[str]:
        """Contexts, as a skill is made in one; the last is of those that nobody named."""
        return [*self.types, "strategy"]

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of strategies."""
        return self.table.kinds

    @property
    def texts(self) -> Sequence[Content]:
        """Strategies whose kind is known."""
        return self.table.contents

    @property
    def digest(self) -> str:
        """Hash of strategies and triggers."""
        return self.table.digest

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """Kinds that texts are really about."""
        return self.table.read(contents)

    # ----------------------------------------------------------------------------------------------- events

    @cached_property
    def _shopping(self) -> Shopping:
        return Shopping(**{f.name: getattr(self, f.name) for f in fields(Shopping)})

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many triggers these users have."""
        total: I32 = self._shopping.by_day(key(seed, users), weeks).sum(axis=1, dtype=np.int32)
        return total

    def begin(self, seed: int, users: I32, weeks: int) -> Shoppers:
        """Memory of these users before their first trigger."""
        keys, kinds = key(seed, users), len(self.kinds)
        events, purchases = self._shopping.purchases(users, keys, weeks)
        if self.order == "permuted":
            purchases = purchases.in_order(random_order(keys, events))
            events = permuted(keys, events)
        liking = self.liking * normal(keys[:, None], np.arange(kinds, dtype=np.int64)[None], Purpose.LIKING)
        return Shoppers(events, purchases, keys, liking, Mood.none(len(users), kinds), Ledger.of(events))

    def events(self, state: Shoppers, turn: int) -> Purchase:
        """Purchases that they are about to make."""
        event, p = state.events.at(turn), state.purchases
        context, tier = p.context[:, turn].copy(), p.tier[:, turn].copy()
        wanted = p.wanted[:, turn].copy()
        logits = self._listening.logits(state, context, wanted)
        shared = {f.name: getattr(event, f.name) for f in fields(Event)}
        return Purchase(**shared, context=context, tier=tier, wanted=wanted, turn=turn, logits=logits)

    # ------------------------------------------------------------------------------------------------ turns

    @cached_property
    def _prices(self) -> PriceList:
        return PriceList(self.blocked, self.interrupt, self.saving)

    @cached_property
    def _listening(self) -> Listening:
        return Listening(
            self.table, self._prices, self.persuades, self.generic, self.kinds_apart, self.fits, self.liking_here,
            self.discerns, self.unsound, self.accept_share, self.wait_share,
        )  # fmt: skip

    @cached_property
    def _afterwards(self) -> Afterwards:
        return Afterwards(*(getattr(self, f.name) for f in fields(Afterwards)))

    @cached_property
    def _habit_fades(self) -> Fading:
        return Fading.of(self.habit_half_life_days)

    @cached_property
    def _annoyance_fades(self) -> Fading:
        return Fading.of(self.annoyance_half_life_days)

    def worth(self, state: Shoppers, event: Any, about: I32, sound: Bool) -> F64:
        """Expected worth of kinds `[B, S]` to users without a mood."""
        return self._listening.expected(event, self._listening.logit(event, about, sound))

    def _best(self, event: Purchase) -> F64:
        """The same of the best that can be said: a kind, well made or not, or the generic question."""
        logits = np.concatenate([event.logits, event.logits[:, :-1] - self.unsound], axis=1)
        best: F64 = self._listening.expected(event, logits).max(axis=1)
        return best

    def respond(self, state: Shoppers, event: Event, served: Served, draws: Draws) -> tuple[Shoppers, Response]:
        """Response of users: what they do about advice, what that is worth, and what they say of it, now and later."""
        if not (isinstance(event, Purchase) and isinstance(saying := served.said, SkillsSaid)):
            raise TypeError("an event of another world, or advice that nobody read")
        listening, about = self._listening, saying.about
        fresh = listening.logit(event, about[:, None], saying.sound[:, None])
        logit = fresh if saying.fresh else fresh - self._wear(state.mood, event.time, about)[:, None]
        listen, react = (_uniform(draws.event, purpose) for purpose in (Purpose.LISTEN, Purpose.REACT))
        code = listening.react(event.tier, logit[:, 0], listen, react)
        held_back, silent = holds_back(code, event.tier), code == AUTO_APPROVED
        content = held_back != event.wanted
        outcome = Outcome(
            event.tier, code, event.wanted, np.where(silent, -1, about).astype(np.int32),
            self._prices.of(code, event.tier, event.wanted), listening.expected(event, logit)[:, 0],
            listening.expected(event, fresh)[:, 0], np.full(len(code), np.nan), self._best(event),
        )  # fmt: skip
        waits = np.where(code == WAIT, round(self.wait_hours * 3600), 0)
        later = self._afterwards.said(code, content, event.time, event.turn, state.key, draws.event)
        feedback = joined_rows([feedback_rows(OUTCOME, code, waits), later])
        quality = np.where(content, RIGHT, WRONG).astype(np.int32)
        response = Response(quality, event.number, feedback, Silence(silent), outcome)
        return self._after(state, event, about, code), response

    def _wear(self, mood: Mood, now: I64, about: I32) -> F64:
        """Loss of logit by habituation and annoyance."""
        rows = np.arange(len(about))
        heard = self._habit_fades.left(mood.heard[rows, about], mood.heard_at[rows, about], now)
        annoyed = self._annoyance_fades.left(mood.annoyed, mood.annoyed_at, now)
        return self.habit * heard + self.annoyance * annoyed

    def _after(self, state: Shoppers, event: Purchase, about: I32, code: I32) -> Shoppers:
        """The users, who remember what was said and that they overrode it."""
        mood, now = state.mood, event.time
        row = np.flatnonzero(code != AUTO_APPROVED)
        kind = about[row]  # -1, the generic question, is the last column
        heard = self._habit_fades.left(mood.heard[row, kind], mood.heard_at[row, kind], now[row])
        mood.heard[row, kind], mood.heard_at[row, kind] = heard + 1.0, now[row]
        row = np.flatnonzero(code == OVERRIDDEN)
        annoyed = self._annoyance_fades.left(mood.annoyed[row], mood.annoyed_at[row], now[row])
        mood.annoyed[row], mood.annoyed_at[row] = annoyed + 1.0, now[row]
        return state

    def offer(self, state: Shoppers, event: Event, offers: Bool, draws: Draws) -> tuple[Shoppers, Reaction]:
        """Declines offers: nobody names strategies."""
        code = np.where(offers, 2, -1).astype(np.int32)
        nameless = np.full(len(code), -1, np.int32)
        return state, Reaction(code, nameless, nameless)

    def merge(self, state: Shoppers, event: Event, row: I64, earlier: I32, draws: Draws) -> Shoppers:
        """Changes nothing: strategies are not made of answers."""
        return state

    def judge(self, state: Shoppers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """No answer is right for another purchase."""
        quality: I32 = np.full(np.broadcast_shapes(np.shape(row), np.shape(answer)), WRONG, np.int32)
        return quality


def _uniform(event: U64, purpose: Purpose) -> F64:
    return uniform(fold(fold(fold(event, int(purpose)), 0), 0))
