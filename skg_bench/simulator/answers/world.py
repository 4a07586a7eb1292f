"""Synthetic users of a personal assistant. No answer changes what they ask; each offer makes the next less welcome.

Volume is log-normal over users, activity varies by day, messages come in conversations. What is asked follows a
Pitman-Yor process over request types: the n-th typed request is of a new type with probability (a + d K) / (a + n), K
types seen so far (Pitman and Yor, Annals of Probability 1997); else it repeats an earlier one, drawn by recency with a
power-law lag (Anderson and Schooler, Psychological Science 1991), so that interests drift as old types fall behind.
Both choices lean towards intents that fit the hour, the weekday and the intent before. One-offs come in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, draw, gumbel, key
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import joined_rows
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.world import AS_SERVED, Draws, Event, Events, Reaction, Response, Served, Stream, Supposing, Truth
from skg_bench.simulator.answers import corpus as corpora
from skg_bench.simulator.answers.corpora_by_name import OF_THE_PACKAGE, corpus_of
from skg_bench.simulator.answers.habits import Habits, as_column, messages_by_day
from skg_bench.simulator.answers.judging import Judging, Users
from skg_bench.simulator.answers.procedures import Procedures, Running
from skg_bench.simulator.answers.reactions import Reactions, check_ratings, rating_probability
from skg_bench.simulator.answers.skill_names import SkillNames
from skg_bench.simulator.answers.wordings import worded
from skg_bench.simulator.chance import CANDIDATES, clock, draw_block
from skg_bench.simulator.order import EventOrder, answerable, permuted

_BLOCK = 128  # steps whose draws are made at once
_PROBABILITIES = (
    "active_low", "active_high", "weekend_activity", "one_off_share", "discount", "rated_share", "late_share",
    "accept", "accept_one_off", "bad_name_share", "habit",
)  # fmt: skip
_POSITIVE = (
    "messages_per_day", "max_per_day", "conversation_length", "concentration", "lag_scale", "lag_power",
    "follow_boost", "partial_odds", "miss_odds", "late_hours", "fatigue_half_life_days",
)  # fmt: skip
_MAX_PER_DAY = 1024  # a day's messages are numbered up to four times this in the keys of draws


@dataclass(frozen=True)
class AssistantUsers:
    """Simulated users who ask for everyday things. Unit, meaning and source of each parameter stand in its yaml."""

    corpus: corpora.CorpusNames
    order: EventOrder
    messages_per_day: float
    volume_spread: float
    max_per_day: float
    day_spread: float
    active_low: float
    active_high: float
    weekend_activity: float
    conversation_length: float
    taste_spread: float
    one_off_share: float
    concentration: float
    discount: float
    lag_scale: float
    lag_power: float
    follow_boost: float
    habit: float
    answers_stale_hours: float | None
    procedures_exist: float
    generalises: float
    generalises_again: float
    slots_filled: float
    lost_per_word: float
    lost_unlike: float
    silent: float
    tool_fails: float
    tool_latency_ms: float
    tool_usd: float
    rating_if_right: Sequence[float]
    rating_if_near: Sequence[float]
    rating_if_wrong: Sequence[float]
    rated_share: float
    partial_odds: float
    miss_odds: float
    late_share: float
    late_hours: float
    accept: float
    accept_one_off: float
    bad_name_share: float
    fatigue: float
    fatigue_half_life_days: float
    stream: Stream = field(default="stateful", init=False)  # offers tire
    domain: Domain = field(default=Domain("answers"), init=False)
    reaches: ClassVar[Reaches] = {"corpus": Reach(("reads",), harmless=OF_THE_PACKAGE)}

    def __post_init__(self) -> None:
        if self.order not in get_args(EventOrder):
            raise UsageError(f"simulator.order={self.order!r}, valid are {', '.join(get_args(EventOrder))}")
        if not isinstance(self.corpus, str | list | None) and not isinstance(self.corpus, corpora.Source):
            raise UsageError(
                f"simulator.corpus={self.corpus!r} must be a folder or name, a list of them, null, or a source with a "
                "_target_"
            )
        for name in _PROBABILITIES:
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"simulator.{name}={getattr(self, name)} must lie in [0, 1]")
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < np.inf:
                raise UsageError(f"simulator.{name}={getattr(self, name)} must be above 0, and finite")
        for name in ("volume_spread", "day_spread", "taste_spread", "fatigue"):
            if not 0 <= getattr(self, name) < np.inf:
                raise UsageError(f"simulator.{name}={getattr(self, name)} must not be negative, and finite")
        if self.max_per_day > _MAX_PER_DAY:
            raise UsageError(f"simulator.max_per_day={self.max_per_day} is above {_MAX_PER_DAY}, the most there can be")
        if self.active_low > self.active_high:
            raise UsageError(f"simulator.active_low={self.active_low} is above active_high={self.active_high}")
        if self.answers_stale_hours is not None and not 0 <= self.answers_stale_hours < np.inf:
            raise UsageError(f"simulator.answers_stale_hours={self.answers_stale_hours} must be 0 or more, or null")
        check_ratings(self.rating_if_right, self.rating_if_near, self.rating_if_wrong)
        self.procedures  # noqa: B018  (checks its parameters)

    # ------------------------------------------------------------------------------------------------- data

    @cached_property
    def _corpus(self) -> corpora.Corpus:
        return corpora.with_one_offs(corpus_of(self.corpus), self.one_off_share, self.corpus)

    def one_offs_again(self, seed: int, users: I32, weeks: int) -> float:
        """Expected share of a user's one-offs that come again, as the corpus has fewer; mean over these users."""
        return self.habits.one_offs_again(self.count(seed, users, weeks), len(self._corpus.one_offs))

    @property
    def published(self) -> Mapping[str, Any] | None:
        """Publication of the messages, and what of it was left out; None of a corpus in a format of our own."""
        corpus = self._corpus
        return None if corpus.source is None else {"source": corpus.source, "left_out": corpus.left_out}

    @property
    def messages(self) -> Sequence[str]:
        """All texts that can occur."""
        return self._corpus.messages

    @property
    def types(self) -> Sequence[str]:
        """Names of request types."""
        return self._corpus.types

    @property
    def intents(self) -> Sequence[str]:
        """Names of intents."""
        return self._corpus.intents

    @property
    def answers(self) -> Sequence[str]:
        """The right answer to each request type, in words."""
        return self._corpus.answers

    @cached_property
    def _skill_names(self) -> SkillNames:
        return SkillNames(self._corpus)

    @property
    def names(self) -> Sequence[str]:
        """Names of skills: request types, one-offs, vague ones, and intents with slot values; the last one for none."""
        return self._skill_names.all

    @property
    def digest(self) -> str:
        """Hash of the corpus."""
        return self._corpus.digest

    @cached_property
    def _confusion(self) -> F64:
        """Probabilities `[quality, rating]`."""
        return np.array([self.rating_if_wrong, self.rating_if_near, self.rating_if_right], np.float64)

    @cached_property
    def _intent_of(self) -> I32:
        """Intent of each request type; the last, which index -1 finds, is like nothing else."""
        return np.append(self._corpus.intent, -2).astype(np.int32)

    @cached_property
    def _ttl_of(self) -> I64:
        """Seconds that an answer to each request type holds; for index -1, a one-off, as long as any."""
        forever, ttl = 2**39, self._corpus.ttl
        if self.answers_stale_hours is not None:
            forever = int(min(self.answers_stale_hours * 3600, forever))
            ttl = np.where(ttl == 0, 0, forever)
        return np.append(np.minimum(ttl, 2**39)[self._corpus.intent], forever)

    # ----------------------------------------------------------------------------------------------- events

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """The events of these users; a pure function of (seed, user, weeks), whoever else is asked for."""
        return self.populated(self.habits, seed, users, weeks)

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many events these users have: the sum over their days."""
        total: I32 = self._by_day(self.habits, key(seed, users), weeks).sum(axis=1, dtype=np.int32)
        return total

    @cached_property
    def habits(self) -> Habits:
        """How much these users ask, and how much of it again."""
        return Habits(*(getattr(self, f.name) for f in fields(Habits)))

    def populated(self, habits: Habits, seed: int, users: I32, weeks: int) -> Events:
        """`population` of users with these habits."""
        keys = key(seed, users)
        time, n = self._times(habits, keys, weeks)
        type_, m, intent = self._requests(habits, keys, time, n)
        text, used_up = worded(self._corpus, habits.habit, keys, type_, m)
        numbers = np.tile(np.arange(type_.shape[1], dtype=np.int32), (len(users), 1))
        events = Events(users, n, numbers, time, text, Truth(type_, intent, np.zeros_like(type_), used_up))
        if self.order == "permuted":
            events = permuted(keys, events)
        return replace(events, truth=replace(events.truth, answerable=self._answerable(events)))

    def _answerable(self, events: Events) -> I32:
        """Earlier answers that still hold: to requests of the same type, to one-offs in the same words."""
        corpus, type_ = self._corpus, events.truth.type
        about = np.where(
            type_ >= 0, type_, len(corpus.types) + events.text - len(corpus.messages) + len(corpus.one_offs)
        )
        about = np.where(np.arange(type_.shape[1])[None] < events.n[:, None], about, -1).astype(np.int32)
        ttl = np.concatenate([self._ttl_of[:-1], np.full(len(corpus.one_offs), self._ttl_of[-1])])
        return answerable(about, events.time, ttl)

    def _by_day(self, habits: Habits, keys: U64, weeks: int) -> I64:
        return messages_by_day(
            habits, keys, weeks, most=self.max_per_day, weekend=self.weekend_activity, spread=self.day_spread
        )

    def _times(self, habits: Habits, keys: U64, weeks: int) -> tuple[I64, I32]:
        """`[B, T]` seconds in order, padded with the largest int64, and `[B]` counts."""
        b, count = len(keys), self._by_day(habits, keys, weeks)
        row, col = np.nonzero(count)
        per = count[row, col]
        flat_row, flat_day = np.repeat(row, per), np.repeat(col, per).astype(np.int64)
        first = np.cumsum(per) - per
        j = np.arange(per.sum()) - np.repeat(first, per)
        k = keys[flat_row]
        item = flat_day * 4096 + j
        new = (draw(k, item, Purpose.SESSION) < 1.0 / self.conversation_length) | (j == 0)
        shift = np.rint((draw(keys, 0, Purpose.RHYTHM) - 0.5) * 4 * 3600).astype(np.int64)  # early and late risers
        start = clock(draw(k, item, Purpose.MINUTE)) + shift[flat_row]
        gap = 20 + (draw(k, item, Purpose.MINUTE, n=1) * 160).astype(np.int64)
        # a conversation takes the start time of its first message; later ones follow by their gaps
        head = np.maximum.accumulate(np.where(new, np.arange(len(j)), 0))
        run = np.cumsum(gap)
        second = np.clip(start[head] + run - run[head], 0, DAY - 1)
        when = flat_day * DAY + second
        order = np.lexsort((j, when, flat_row))
        n = np.bincount(flat_row, minlength=b).astype(np.int32)
        time = np.full((b, int(n.max())), np.iinfo(np.int64).max, np.int64)
        position = np.arange(len(order)) - np.repeat(np.cumsum(n) - n, n)
        time[flat_row[order], position] = when[order]
        return time, n

    def _requests(self, habits: Habits, keys: U64, time: I64, n: I32) -> tuple[I32, I32, I32]:
        """`[B, T]` request type (-1: one-off), which one-off by number, and intent."""
        corpus = self._corpus
        b, t_max, n_types = len(keys), time.shape[1], len(corpus.types)
        by_volume = np.argsort(-n, kind="stable")  # users leave from the end: the active ones are a prefix
        keys, time, n, habits = keys[by_volume], time[by_volume], n[by_volume], habits.of(by_volume)
        liked = gumbel(draw(keys[:, None], 0, Purpose.TASTE, np.arange(len(corpus.intents))[None]))
        taste = as_column(habits.taste_spread) * liked
        values = np.bincount(corpus.intent)[corpus.intent]  # an intent is as likely with many slot values as with one
        eager = (
            taste[:, corpus.intent]
            - np.log(values)
            + gumbel(draw(keys[:, None], 0, Purpose.TYPE_ORDER, np.arange(n_types)[None]))
        )
        order = np.argsort(-eager, axis=1, kind="stable").astype(np.int32)  # in which new types come up
        log_fit = np.log(corpus.hour_weight)[:, :, None] + np.log(corpus.day_weight)[:, None, :]  # [I, 24, 2]
        log_follow = np.where(corpus.follows, np.log(self.follow_boost), 0.0)
        log_follow = np.vstack(
            [log_follow.T, np.zeros((1, len(corpus.intents)))]
        )  # [before, I]; last row: nothing before

        type_ = np.full((b, t_max), -1, np.int32)
        number = np.full((b, t_max), -1, np.int32)
        past = np.zeros((b, t_max), np.int32)  # typed requests so far, without the one-offs
        typed, seen, singles = np.zeros(b, np.int64), np.zeros(b, np.int64), np.zeros(b, np.int64)
        before = np.full(b, len(corpus.intents))
        window = np.arange(CANDIDATES)[None]
        hour, weekend = (time // 3600 % 24), (time // DAY % 7 >= 5).astype(np.int64)
        talk = np.diff(time, axis=1, prepend=np.int64(-DAY)) < 1800  # still in the same conversation
        alive = np.searchsorted(-n, -np.arange(t_max), side="left")
        for t in range(t_max):
            if t % _BLOCK == 0:
                draws = draw_block(keys, t, min(_BLOCK, t_max - t))
            a, s = int(alive[t]), t % _BLOCK
            active_habits = habits.of(slice(a))
            u_single, u_new = draws.single[s, :a], draws.novel[s, :a]
            n_a, k_a, rows = typed[:a], seen[:a], np.arange(a)
            single = u_single < active_habits.one_off_share
            new = (
                u_new * (active_habits.concentration + n_a) < active_habits.concentration + active_habits.discount * k_a
            )
            new = (new | (n_a == 0)) & (k_a < n_types)
            scale, power = as_column(active_habits.lag_scale), as_column(active_habits.lag_power)
            tail = 1.0 - (1.0 + n_a[:, None] / scale) ** -power
            lag = scale * ((1.0 - draws.lag[s, :a] * tail) ** (-1.0 / power) - 1.0)
            at = np.maximum(n_a[:, None] - 1 - lag.astype(np.int64), 0)
            fresh = np.minimum(k_a[:, None] + window, n_types - 1)
            options = np.where(new[:, None], order[rows[:, None], fresh], past[rows[:, None], at])
            kind = corpus.intent[options]
            follow = np.where(talk[:a, t], before[:a], len(corpus.intents))
            fit = log_fit[kind, hour[:a, t, None], weekend[:a, t, None]] + log_follow[follow[:, None], kind]
            chosen = np.argmax(fit + draws.pick[s, :a], axis=1)
            pick = options[rows, chosen]
            typed_now = ~single
            # a new type leaves the queue: the one that stood at its front takes its place
            r = np.flatnonzero(typed_now & new)
            order[r, fresh[r, chosen[r]]] = order[r, k_a[r]]
            order[r, k_a[r]] = pick[r]
            seen[r] += 1
            r = np.flatnonzero(typed_now)
            past[r, typed[r]] = pick[r]
            typed[r] += 1
            type_[r, t] = pick[r]
            r = np.flatnonzero(single)
            number[r, t] = singles[r]
            singles[r] += 1
            before[:a] = np.where(single, len(corpus.intents), corpus.intent[pick])
        back = np.argsort(by_volume, kind="stable")
        type_, number = type_[back], number[back]
        return type_, number, np.where(type_ >= 0, corpus.intent[type_], -1).astype(np.int32)

    # ------------------------------------------------------------------------------------------------ turns

    def begin(self, seed: int, users: I32, weeks: int) -> Users:
        """Memory of these users before their first turn: all events are made here."""
        return Users.of(self.population(seed, users, weeks))

    def events(self, state: Users, turn: int) -> Event:
        """Events of their turn `turn`."""
        return state.events.at(turn)

    @cached_property
    def judging(self) -> Judging:
        """Rules that make answers right, and procedures fail."""
        return Judging(self._intent_of, self._ttl_of, Running(self.procedures, self._corpus))

    @property
    def procedures(self) -> Procedures:
        """Abilities of procedures."""
        return Procedures(*(getattr(self, f.name) for f in fields(Procedures)))

    def judge(self, state: Users, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """Quality of answers to the events of rows `row`: RIGHT while it holds, for the very same request."""
        return self.judging.judge(state.ledger, event, row, answer, supposing)

    @cached_property
    def reactions(self) -> Reactions:
        """How these users rate answers, and accept offers."""
        shares = rating_probability(self.rated_share, self.partial_odds, self.miss_odds)
        return Reactions(
            self._confusion, shares, self.late_share, self.late_hours, self.accept, self.accept_one_off,
            self.bad_name_share, self.fatigue, self.fatigue_half_life_days,
        )  # fmt: skip

    def respond(self, state: Users, event: Event, served: Served, draws: Draws) -> tuple[Users, Response]:
        """Ratings, missing not at random, and agreement where it is asked for."""
        return self.responded(self.reactions, self.judging, state, event, served, draws)

    def responded(
        self, reactions: Reactions, judging: Judging, state: Users, event: Event, served: Served, draws: Draws
    ) -> tuple[Users, Response]:
        """`respond` of users who react in this way, to answers that are right by this."""
        quality, answer, execution = judging.answered(state.ledger, event, served, draws)
        ratings = reactions.rate(quality, draws)
        agreeing = judging.agreeing(state.ledger, event, served, quality)
        case = AS_SERVED if execution is None else execution
        return state, Response(quality, answer, joined_rows([ratings, agreeing]), case)

    def offer(self, state: Users, event: Event, offers: Bool, draws: Draws) -> tuple[Users, Reaction]:
        """Do they accept an offer to capture, and which name do they give? Each offer tires."""
        return self.offered(self.reactions, state, event, offers, draws)

    def offered(
        self, reactions: Reactions, state: Users, event: Event, offers: Bool, draws: Draws
    ) -> tuple[Users, Reaction]:
        """`offer` to users who react in this way."""
        code, tired, among = reactions.offer(event.type >= 0, state.fatigue, event.time - state.last_offer, draws)
        code = np.where(offers, code, -1)
        state.fatigue[offers], state.last_offer[offers] = tired[offers], event.time[offers]
        return state, Reaction(code, *self._skill_names.given(event, code, among))

    def merge(self, state: Users, event: Event, row: I64, earlier: I32, draws: Draws) -> Users:
        """A second example with another value can make a procedure general."""
        self.judging.merge(state.ledger, event, row, earlier, draws)
        return state
