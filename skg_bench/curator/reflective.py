"""Learns as ACE's roles do, without a model: a simulated reflector judges the strategies that were used, and a
simulated skill manager tags, adds, rewords and removes. Both err with stated probabilities, drawn by key.

They are blind: they know what users did and said, the texts, and what fits in general, never the user's own tastes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.batch import ADD, REMOVE, TAG, TAKEN_BACK, UPDATE, Batch, blank, joined, part
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, RETRACTED, KnownFeedback
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.growing import wider
from skg_bench.core.learning_jobs import APPLIED, UNCHANGED, Jobs
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import RATINGS, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.job_feedback import begins, outcomes, refusal_mask
from skg_bench.curator.shared.shelf import Shelf, common_sense, nth_true, shelf_of
from skg_bench.curator.shared.study import Made, Study, reflections
from skg_bench.skillbook.library import strategies as library

_MISS = RATINGS.index("miss")
_MISSED, _WRONG, _WHICH, _ADDS, _WORDS, _USELESS, _REWORDS, _OTHER_WORDS, _OTHER_USELESS = range(9)  # draws
_USED, _JUDGED, _ADDED, _REWORDED, _HARMFUL = range(5)  # reasons


@dataclass(frozen=True, slots=True)
class CreditedTurns:
    """Memory of a simulated reflector about B users' turns."""

    skill: I32  # [B, T] whose rating the turn gave, so that it can be taken back; -1: nobody's
    outcome: I32  # [B, T] what the user did, -1: nothing is known


@dataclass(frozen=True)
class Reflective:
    """Learns from what users do and from what they say later, a job for each.

    * the reflector rates the skill that was used, as the arm's signs say. It overlooks the whole job with probability
      `misses`, and with `wrong_skill` it credits another active skill. A rating that no longer counts is taken back
      from whom it was given to;
    * after an overridden suggestion a strategy is added with probability `adds`, unless `most_skills` are active: of
      the kind that is believed to fit the context best among those that the user never had, or else among those with
      an active skill, or among those that were removed. With probability `useless` its text is no good;
    * with probability `rewords`, a skill that was rated harmful says something else of its kind from then on;
    * a skill with `remove_after` ratings or more is removed where those that are harmful outnumber the helpful ones by
      `remove_margin` or more.
    """

    rho: float
    belief: int
    misses: float
    wrong_skill: float
    useless: float
    adds: float
    most_skills: int
    rewords: float
    remove_after: int | None
    remove_margin: int
    tokens_in: int
    tokens_out: int
    usd: float
    latency_ms: float
    strategies: str | None
    sees_truth: ClassVar[bool] = False
    asks_model: ClassVar[bool] = True
    reasons: ClassVar[Sequence[str]] = ("used", "judged", "learned", "reworded", "harmful")
    reaches: ClassVar[Reaches] = {"strategies": Reach(("reads",))}

    def __post_init__(self) -> None:
        for name in ("rho", "misses", "wrong_skill", "useless", "adds", "rewords"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"curator.{name}={getattr(self, name)} must lie in [0, 1]")
        for name in ("belief", "tokens_in", "tokens_out", "usd", "latency_ms"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"curator.{name}={getattr(self, name)} must be finite and not negative")
        for name in ("most_skills", "remove_margin"):
            if getattr(self, name) < 1:
                raise UsageError(f"curator.{name}={getattr(self, name)} must be at least 1")
        if self.remove_after is not None and self.remove_after < 1:
            raise UsageError(f"curator.remove_after={self.remove_after} must be at least 1, or null for never")
        library.strategies(self.strategies)

    def start(self, n: int) -> CreditedTurns:
        """Memory in which nothing is known."""
        return CreditedTurns(np.full((n, 0), -1, np.int32), np.full((n, 0), -1, np.int32))

    def offers(self, seen: Observation, state: CreditedTurns) -> Bool:
        """Asks nobody to name a skill."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: CreditedTurns
    ) -> tuple[CreditedTurns, Batch]:
        """TAGs for uses and judgements, ADDs, UPDATEs and REMOVEs."""
        state = CreditedTurns(
            wider(state.skill, seen.turn + 1, -1), outcomes(state.outcome, known, seen.turn, seen.context.domain)
        )
        uses = _uses(seen)
        study = self._study(seen, known, books)
        if not len(study.row):
            return state, uses
        shelf = shelf_of(library.strategies(self.strategies))
        tags = self._tags(study, known, state)
        gone = self._removed(study, tags)
        made = _together([tags, self._added(study, shelf), self._reworded(study, tags, gone, shelf), gone])
        made.batch.about[:] = study.turn[made.job]
        if seen.context.tags_only.any():
            may = ((made.batch.op == TAG) | ~seen.context.tags_only[made.batch.row]).nonzero()[0]
            made = Made(part(made.batch, may), made.job[may])
        self._report(study, made, state)
        return state, joined(uses, made.batch)

    # ------------------------------------------------------------------------------------------- reflector

    def _study(self, seen: Observation, known: KnownFeedback, books: Skillbooks) -> Study:
        """The jobs that the reflector does not overlook."""
        at = begins(known, seen.context.asks, seen.context.domain)
        key = fold(fold(seen.context.event[known.row[at]], int(Purpose.REFLECTED)), known.turn[at])
        kept = uniform(fold(key, _MISSED)) >= self.misses
        jobs = known.rows(at[kept])
        return Study(jobs.row, jobs.turn, jobs.kind, jobs.value, key[kept], seen, books)

    def _tags(self, study: Study, known: KnownFeedback, state: CreditedTurns) -> Made:
        """Ratings taken back and given; to whom they were given is remembered in `state`."""
        job = study.of(known)
        back, new = (((job >= 0) & (known.kind == kind)).nonzero()[0] for kind in (RETRACTED, RATING))
        earlier = state.skill[known.row[back], known.turn[back]]
        back, earlier = back[earlier >= 0], earlier[earlier >= 0]
        state.skill[known.row[back], known.turn[back]] = -1
        new = new[known.skill[new] >= 0]
        credited = self._credited(study, job[new], known.skill[new])
        state.skill[known.row[new], known.turn[new]] = credited
        at = np.concatenate([back, new])
        batch = _blank(TAG, known.row[at], _JUDGED)
        batch.skill[:] = np.concatenate([earlier, credited])
        batch.rating[:] = known.value[at]
        batch.rating[: len(back)] += TAKEN_BACK
        return Made(batch, job[at])

    def _credited(self, study: Study, job: I64, used: I32) -> I32:
        """Whom the reflector rates where `used` `[n]` was used."""
        credited = used.copy()
        wrong = (study.u(_WRONG, job) < self.wrong_skill).nonzero()[0]
        row = study.row[job[wrong]]
        others = study.books.active[row] & (study.books.content[row] != 0)
        others[np.arange(len(wrong)), used[wrong]] = False
        some = others.any(axis=1)
        credited[wrong[some]] = nth_true(others[some], study.u(_WHICH, job[wrong[some]]))
        return credited

    # --------------------------------------------------------------------------------------- skill manager

    def _removed(self, study: Study, tags: Made) -> Made:
        """Skills rated just now that are proven harmful; counted with these ratings."""
        books, batch = study.books, tags.batch
        width = books.active.shape[1]
        at, first, index = np.unique(_flat(batch, width), return_index=True, return_inverse=True)
        row, skill = at // width, at % width

        def counted(column: I32, code: int) -> I64:
            more, less = (
                np.bincount(index[batch.rating == given], minlength=len(at)) for given in (code, code + TAKEN_BACK)
            )
            counts: I64 = column[row, skill] + more - less
            return counts

        ok, partial, miss = (counted(c, code) for code, c in enumerate((books.ok, books.partial, books.miss)))
        harmful = np.zeros(len(at), np.bool_)
        if self.remove_after is not None:
            harmful = (ok + partial + miss >= self.remove_after) & (miss - ok >= self.remove_margin)
        gone = (harmful & books.active[row, skill]).nonzero()[0]
        removed = _blank(REMOVE, row[gone], _HARMFUL)
        removed.skill[:] = skill[gone]
        return Made(removed, tags.job[first[gone]])

    def _added(self, study: Study, shelf: Shelf) -> Made:
        """A strategy for each user who overrode one, or the generic question; of several jobs, the first adds."""
        seen, books = study.seen, study.books
        room = (books.active & (books.content != 0)).sum(axis=1) < self.most_skills
        wanted = refusal_mask(study.kind, study.value, seen.context.domain) & room[study.row]
        job = (wanted & (study.u(_ADDS) < self.adds)).nonzero()[0]
        job = job[np.unique(study.row[job], return_index=True)[1]]
        row = study.row[job]
        batch = _blank(ADD, row, _ADDED)
        if len(job):
            batch.text[:] = seen.context.messages[row, study.turn[job]]
            kinds = shelf.kinds(books.content[row], seen.context.texts.contents)
            kind = self._best_kind(books.active[row], kinds, shelf.contexts(batch.text, seen.context.texts, row), shelf)
            batch.content[:] = self._words(study, job, kind, shelf, (_USELESS, _WORDS))
            names, index = np.unique(kind, return_inverse=True)
            batch.name[:] = seen.context.texts.add([shelf.strategies.kinds[k] for k in names.tolist()])[index]
        return Made(batch, job)

    def _best_kind(self, active: Bool, kinds: I64, context: I64, shelf: Shelf) -> I64:
        """Kind that is believed to fit the contexts `[n]` best: of kinds that the user never had, else of those with an
        active skill, else of those that were removed; `active` and `kinds` of skills `[n, S]`.
        """
        had, has = (np.zeros((len(kinds), len(shelf.strategies.kinds)), np.bool_) for _ in range(2))
        for mask, held in ((had, kinds >= 0), (has, (kinds >= 0) & active)):
            row, s = np.nonzero(held)
            mask[row, kinds[row, s]] = True
        tier = np.where(~had, 2, np.where(has, 1, 0))
        beliefs = common_sense(shelf.strategies, self.rho, self.belief)[:, context].T
        best: I64 = np.where(tier == tier.max(axis=1, keepdims=True), beliefs, -np.inf).argmax(axis=1)
        return best

    def _reworded(self, study: Study, tags: Made, gone: Made, shelf: Shelf) -> Made:
        """New words for skills that were rated harmful and are not removed; each skill once."""
        books, batch = study.books, tags.batch
        flat, content = _flat(batch, books.active.shape[1]), books.content[batch.row, batch.skill]
        harmful = (batch.rating == _MISS) & books.active[batch.row, batch.skill] & (content != 0)
        harmful &= ~np.isin(flat, _flat(gone.batch, books.active.shape[1]))
        at = (harmful & (study.u(_REWORDS, tags.job) < self.rewords)).nonzero()[0]
        at = at[np.unique(flat[at], return_index=True)[1]]
        reworded = _blank(UPDATE, batch.row[at], _REWORDED)
        if len(at):
            reworded.skill[:] = batch.skill[at]
            kind = shelf.kinds(content[at], study.seen.context.texts.contents)
            reworded.content[:] = self._words(study, tags.job[at], kind, shelf, (_OTHER_USELESS, _OTHER_WORDS))
        return Made(reworded, tags.job[at])

    def _words(self, study: Study, job: I64, kind: I64, shelf: Shelf, items: tuple[int, int]) -> U64:
        """Keys of texts of these kinds, which the book does not have; with probability `useless` they are no good."""
        useless, words = items
        beside = shelf.present(study.books.content[study.row[job]])
        number = shelf.drawn(kind, study.u(useless, job) >= self.useless, beside, study.u(words, job))
        return shelf.written(number, study.seen.context.texts.contents)

    # -------------------------------------------------------------------------------------------- the log

    def _report(self, study: Study, made: Made, state: CreditedTurns) -> None:
        n = len(study.row)
        operations = np.bincount(made.job, minlength=n).astype(np.int32)

        def each(value: int) -> I32:
            return np.full(n, value, np.int32)

        study.seen.context.report(
            Jobs(
                row=study.row, turn=study.turn, kind=study.kind, value=study.value,
                result=np.where(operations > 0, APPLIED, UNCHANGED).astype(np.int32), operations=operations,
                refused=each(0), tokens_in=each(self.tokens_in), tokens_cached=each(0),
                tokens_out=each(self.tokens_out), cost_usd=np.full(n, float(self.usd)),
                latency_ms=np.full(n, float(self.latency_ms)),
                reflection=reflections(study, made, state.outcome[study.row, study.turn]), refusals=each(-1),
                reason=each(-1), served=each(-1), version_read=each(-1), version_written=each(-1),
            )
        )  # fmt: skip


def _blank(op: int, row: I32 | I64, reason: int) -> Batch:
    """Operations of one kind, whose skills and more are to be filled in."""
    batch = blank(len(row))
    batch.row[:], batch.op[:], batch.reason[:] = row, op, reason
    return batch


def _flat(batch: Batch, width: int) -> I64:
    """One number for each skill of a user."""
    return batch.row.astype(np.int64) * width + batch.skill


def _uses(seen: Observation) -> Batch:
    """A TAG for each skill that was served."""
    row = (seen.hit & seen.context.asks).nonzero()[0]
    batch = _blank(TAG, row, _USED)
    batch.skill[:], batch.uses[:], batch.about[:] = seen.skill[row], 1, seen.turn
    return batch


def _together(parts: Sequence[Made]) -> Made:
    batch = parts[0].batch
    for more in parts[1:]:
        batch = joined(batch, more.batch)
    return Made(batch, np.concatenate([made.job for made in parts]))
