"""Whom curators ask, what they record, capture and archive."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, RATING, KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import I32, Bool
from skg_bench.core.state import check_state, rows
from skg_bench.core.types import RATINGS, Curator, LearningContext, Observation, Skillbooks, TurnTruth
from skg_bench.core.world import OFFERS, Reaction
from skg_bench.curator.budget import Budget
from skg_bench.curator.everything import Everything
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.sham import Proposals, Sham
from skg_bench.curator.skg import SKG
from skg_bench.curator.without import Without
from tests.core import samples

DAY = 86_400
B = 40
PAPER = SKG("any", 0.6, "ok", 3, 60)
OK, PARTIAL, MISS, NONE = 0, 1, 2, -1
ACCEPTED, BADLY_NAMED, DECLINED = range(3)
UNHEARD = KnownFeedback(*np.zeros((5, 0), np.int32))
NOBODY = np.full(B, -1, np.int32)
NEW_NAME = 1000
seeds = st.integers(0, 2**32)


def turn(seed: int, b: int = B) -> tuple[Observation, I32, I32, KnownFeedback, Skillbooks]:
    """A turn as it can happen: hits on active skills, offers only where the LLM answered, feedback of this turn and of
    earlier ones, about skills and about answers of the LLM.
    """
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, b, 40, skills=10)
    books = replace(books, source=np.where(books.source >= 0, books.source % 17, -1).astype(np.int32))
    skill = np.array([rng.choice(np.flatnonzero(a)) if a.any() and rng.random() < 0.5 else -1 for a in books.active])
    truth = TurnTruth(
        np.zeros(books.active.shape, np.int32),
        rng.integers(-1, 9, b).astype(np.int32),
        rng.random(b) < 0.7,
        np.zeros((b, 0)),
    )
    text = rng.integers(0, 100, b).astype(np.int32)
    context = samples.context(rng, text, books)
    seen = Observation(
        time=np.full(b, samples.NOW) + rng.integers(0, 9, b),
        turn=17,
        text=text,
        skill=skill.astype(np.int32),
        best_similarity=rng.choice([0.0, 0.3, 0.6, 0.6 + 2.0**-16, 0.9], b),
        rating=rng.integers(-1, 3, b).astype(np.int32),
        context=replace(context, truth=replace(truth, llm_right=truth.llm_right & (skill < 0))),
    )
    offer = np.where(seen.hit, -1, rng.integers(-1, 3, b)).astype(np.int32)
    name = np.where(rng.random(b) < 0.5, books.name[:, 0], NEW_NAME)
    name = np.where((offer >= 0) & (offer != DECLINED), np.where(name < 0, NEW_NAME, name), -1).astype(np.int32)
    row = rng.integers(0, b, 20).astype(np.int32)
    row = row[books.n_skills[row] > 0]
    about = np.where(np.arange(len(row)) % 4 == 0, -1, books.n_skills[row] - 1).astype(np.int32)
    late = feedback(row, np.sort(rng.integers(0, 17, len(row))).astype(np.int32), RATING, row % 3, about)
    rated, compared = np.flatnonzero(seen.hit & (seen.rating >= 0)), np.flatnonzero(~seen.hit & (seen.text % 2 == 0))
    now = feedback(rated, 17, RATING, seen.rating[rated], seen.skill[rated])
    agreed = feedback(compared, 17, AGREES, seen.text[compared] // 2 % 2, seen.skill[compared])
    return seen, offer, name, joined_rows([late, now, agreed]), books


def rated_late(known: KnownFeedback) -> list[tuple[int, int, int]]:
    """User, skill and rating where the rating of a skill at an earlier turn became known, in order."""
    columns = (known.row, known.turn, known.kind, known.value, known.skill)
    flat = zip(*(column.tolist() for column in columns), strict=True)
    return [(row, skill, value) for row, t, kind, value, skill in flat if kind == RATING and skill >= 0 and t < 17]


def curated(
    curator: Curator[Any], seen: Observation, offer: I32, name: I32, known: KnownFeedback, books: Skillbooks
) -> Batch:
    """The operations of a curator at its first turn."""
    return curator.curate(seen, Reaction(offer, name, name), known, books, curator.start(len(offer)))[1]


def asked(curator: Curator[Any], seen: Observation) -> Bool:
    """Whom a curator asks at its first turn."""
    return curator.offers(seen, curator.start(len(seen.text)))


def operations(batch: Batch, op: int) -> list[dict[str, int]]:
    return [{f.name: int(getattr(batch, f.name)[i]) for f in fields(Batch)} for i in np.flatnonzero(batch.op == op)]


def columns(batch: Batch) -> list[list[int]]:
    return [getattr(batch, f.name).tolist() for f in fields(Batch)]


# -------------------------------------------------------------------------------------- what it is learned from


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.parametrize("curator", [PAPER, Everything()])
def test_an_operation_names_the_turn_that_it_was_learned_from(curator: Curator[Any], seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    batch = curated(curator, seen, offer, name, known, books)
    later = known.ratings(before=seen.turn)
    rated = batch.about[(batch.op == TAG) & (batch.uses == 0)]
    assert rated.tolist() == later.turn.tolist()
    assert (batch.about[(batch.uses == 1) | (batch.source >= 0)] == seen.turn).all()
    assert (batch.about[batch.op == REMOVE] == -1).all()


def test_a_sham_keeps_the_turn_that_the_capture_was_learned_from() -> None:
    seen, offer, name, known, books = turn(3)
    plain, sham = (curated(c, seen, offer, name, known, books) for c in (PAPER, Sham(PAPER, "any", 0)))
    assert (sham.source[sham.source >= 0] < seen.turn).any()
    assert set(zip(sham.row.tolist(), sham.op.tolist(), sham.about.tolist(), strict=True)) <= set(
        zip(plain.row.tolist(), plain.op.tolist(), plain.about.tolist(), strict=True)
    )


# ---------------------------------------------------------------------------------------------- whom it asks


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K16", "K17")
def test_the_offer_follows_an_answer_of_the_llm_that_was_rated_ok(seed: int) -> None:
    seen = turn(seed)[0]
    assert np.array_equal(asked(PAPER, seen), ~seen.hit & (seen.rating == OK))
    any_answer = asked(replace(PAPER, offer_after="answer"), seen)
    assert np.array_equal(any_answer, ~seen.hit & np.isin(seen.rating, [OK, NONE]))


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K16")
def test_the_band_asks_only_where_some_skill_was_nearer_than_its_lower_end(seed: int) -> None:
    seen = turn(seed)[0]
    band = asked(replace(PAPER, capture="band"), seen)
    assert np.array_equal(band, asked(PAPER, seen) & (seen.best_similarity > 0.6))


@pytest.mark.req("K16")
def test_the_band_cannot_start_from_nothing() -> None:
    seen = replace(turn(0)[0], best_similarity=np.zeros(B), skill=NOBODY, rating=NOBODY * 0)
    assert not asked(SKG("band", 0.0, "ok", 3, 60), seen).any()
    assert asked(PAPER, seen).all()


# -------------------------------------------------------------------------------------------- what it learns


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K17", "K18")
def test_an_accepted_offer_adds_a_skill_and_a_name_given_before_renews_one_with_one_more_example(seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    batch = curated(PAPER, seen, offer, name, known, books)
    added = {o["row"]: o for o in operations(batch, ADD)}
    renewed = {o["row"]: o for o in operations(batch, UPDATE)}
    assert not set(added) & set(renewed)
    for u in range(B):
        if offer[u] not in (ACCEPTED, BADLY_NAMED):  # not asked, or declined
            assert u not in added
            assert u not in renewed
            continue
        before = np.flatnonzero(books.name[u, : books.n_skills[u]] == name[u]).tolist()
        made = (renewed if before else added)[u]
        assert (made["text"], made["source"], made["uses"], made["rating"]) == (seen.text[u], 17, 0, NONE)
        assert made["skill"] == (before[0] if before else -1)
        assert made["name"] == (-1 if before else name[u])
        assert PAPER.reasons[made["reason"]] == ("captured again" if before else "captured")


@pytest.mark.req("K17")
def test_after_a_declined_offer_nothing_is_learned() -> None:
    seen, _, _, _, books = turn(1)
    seen = replace(seen, skill=NOBODY)
    curator = replace(PAPER, harmful_misses=None, unused_days=None)
    batch = curated(curator, seen, np.full(B, DECLINED, np.int32), NOBODY, UNHEARD, books)
    assert len(batch.op) == 0


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K12", "K17")
def test_each_use_is_counted_once_with_its_rating_and_late_ratings_count_no_use(seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    batch = curated(PAPER, seen, offer, name, known, books)
    tags = operations(batch, TAG)
    used = [(o["row"], o["skill"], o["rating"]) for o in tags if o["uses"] == 1]
    later = [(o["row"], o["skill"], o["rating"]) for o in tags if o["uses"] == 0]
    hit = np.flatnonzero(seen.hit)
    assert used == [(int(u), int(seen.skill[u]), int(seen.rating[u])) for u in hit]
    assert later == rated_late(known)
    assert {PAPER.reasons[o["reason"]] for o in tags} <= {"used", "rated later"}


# ------------------------------------------------------------------------------------------ what it archives


@settings(deadline=None, max_examples=20)
@given(seed=seeds, misses=st.none() | st.integers(1, 6), days=st.none() | st.floats(1, 40))
@pytest.mark.req("K29")
def test_harmful_and_unused_skills_are_archived_but_not_what_this_turn_used_or_captured(
    seed: int, misses: int | None, days: float | None
) -> None:
    seen, offer, name, known, books = turn(seed)
    curator = replace(PAPER, harmful_misses=misses, unused_days=days)
    batch = curated(curator, seen, offer, name, known, books)
    gone = {(o["row"], o["skill"]): curator.reasons[o["reason"]] for o in operations(batch, REMOVE)}
    renewed = {(o["row"], o["skill"]) for o in operations(batch, UPDATE)}
    expected = {}
    for u, s in zip(*np.nonzero(books.active), strict=True):
        harmful = misses is not None and books.miss[u, s] >= misses and books.miss[u, s] > books.ok[u, s]
        unused = days is not None and seen.time[u] - books.last_used[u, s] > days * DAY
        in_this_turn = (seen.hit[u] and seen.skill[u] == s) or (u, s) in renewed
        if (harmful or unused) and not in_this_turn:
            expected[int(u), int(s)] = "harmful" if harmful else "unused"
    assert gone == expected


@pytest.mark.req("K29")
def test_sixty_days_to_the_second_are_not_yet_too_long() -> None:
    seen, _, _, _, books = turn(2)
    books = replace(books, miss=books.miss * 0, last_used=np.zeros_like(books.last_used))
    seen = replace(seen, skill=NOBODY)
    for seconds, archived in ((60 * DAY, 0), (60 * DAY + 1, int(books.active.sum()))):
        at = replace(seen, time=np.full(B, seconds))
        assert len(curated(PAPER, at, NOBODY, NOBODY, UNHEARD, books).op) == archived


# ------------------------------------------------------------------------------------- what all curators keep


EVERY: list[Curator[Any]] = [
    PAPER, NoLearning(), RightAnswers(), Sham(PAPER, "any", 0), Sham(PAPER, "known", 1),
    Without(PAPER, 2, recapture=False, lineage=0.5), Without(PAPER, 2, recapture=True, lineage=None),
    Budget(PAPER, 2, "lru"), Budget(PAPER, 3, "lfu"), Everything(),
]  # fmt: skip


@pytest.mark.parametrize("curator", EVERY, ids=repr)
@settings(deadline=None, max_examples=10)
@given(seed=seeds)
def test_a_user_is_curated_the_same_alone_and_among_others(curator: Curator[Any], seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    assert seen.context.truth is not None
    whole = curated(curator, seen, offer, name, known, books)
    asks = asked(curator, seen)
    assert asks.dtype == np.bool_
    assert asks.shape == (B,)
    kinds = {f.name: np.uint64 if f.name == "content" else np.int32 for f in fields(Batch)}
    assert {f.name: getattr(whole, f.name).dtype for f in fields(Batch)} == kinds
    assert (whole.reason < max(len(curator.reasons), 1)).all()
    for u in range(0, B, 8):
        parts: dict[str, Any] = {f.name: getattr(seen, f.name) for f in fields(Observation)}
        about: dict[str, Any] = {f.name: getattr(seen.context, f.name) for f in fields(LearningContext)}
        parts, about = ({k: v[[u]] if isinstance(v, np.ndarray) else v for k, v in p.items()} for p in (parts, about))
        t, heard = seen.context.truth, known.rows(known.row == u)
        about["truth"] = TurnTruth(t.quality[[u]], t.type[[u]], t.llm_right[[u]], t.worth[[u]])
        about["similarity"] = samples.some_similarity(seen.context.similarity, [u])
        parts["context"] = LearningContext(**about)
        mine = replace(heard, row=heard.row * 0)
        single = curated(curator, Observation(**parts), offer[[u]], name[[u]], mine, samples.some(books, [u]))
        kept = whole.row == u
        assert columns(replace(single, row=single.row + u)) == [
            getattr(whole, f.name)[kept].tolist() for f in fields(Batch)
        ]
        assert asked(curator, Observation(**parts)).item() == asks[u]


@dataclass(frozen=True, slots=True)
class Asked:
    """How often users were asked, and at how many turns ratings of skills became known."""

    offers: I32  # [B]
    heard: I32  # [B]


@dataclass(frozen=True)
class Patient:
    """PAPER, but it asks a user only after `turns` turns with ratings: a curator with a memory."""

    turns: int
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = PAPER.reasons

    def start(self, n: int) -> Asked:
        return Asked(np.zeros(n, np.int32), np.zeros(n, np.int32))

    def offers(self, seen: Observation, state: Asked) -> Bool:
        return PAPER.offers(seen, None) & (state.heard >= self.turns)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Asked
    ) -> tuple[Asked, Batch]:
        state.offers[:] += reaction.code >= 0
        state.heard[np.unique(known.row[known.kind == RATING])] += 1
        return state, PAPER.curate(seen, reaction, known, books, None)[1]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: Budget(inner, 2, "lru"),
        lambda inner: Sham(inner, "any", 0),
        lambda inner: Without(inner, 2, recapture=False, lineage=None),
        lambda inner: Budget(Sham(Without(inner, 2, recapture=True, lineage=None), "known", 1), 3, "ttl"),
    ],
)  # fmt: skip
def test_a_wrapper_hands_on_the_memory_of_the_curator_inside(wrap: Any) -> None:
    plain, wrapped = Patient(2), wrap(Patient(2))
    state, inner = wrapped.start(B), plain.start(B)
    check_state(state, B, wrapped)
    asks = []
    for seed in range(4):
        seen, offer, name, known, books = turn(seed)
        asks.append(wrapped.offers(seen, state))
        assert np.array_equal(asks[-1], plain.offers(seen, inner))
        single = wrapped.curate(seen, Reaction(offer, name, name), known, books, rows(state, np.arange(B)))
        again = wrapped.curate(seen, Reaction(offer, name, name), known, books, state)
        assert columns(single[1]) == columns(again[1])
        state, (inner, batch) = again[0], plain.curate(seen, Reaction(offer, name, name), known, books, inner)
        assert operations(again[1], TAG) == operations(batch, TAG)
        check_state(state, B, wrapped)
        memory = state.curator if isinstance(state, Proposals) else state
        assert np.array_equal(memory.offers, inner.offers)
        assert np.array_equal(memory.heard, inner.heard)
    assert not asks[0].any()
    assert asks[-1].any()
    assert len(np.unique(memory.heard)) > 2


def test_the_curator_that_learns_nothing_asks_nobody() -> None:
    seen, offer, name, known, books = turn(3)
    assert not asked(NoLearning(), seen).any()
    assert len(curated(NoLearning(), seen, offer, name, known, books).op) == 0


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_the_oracle_captures_each_right_answer_to_a_request_that_can_come_again(seed: int) -> None:
    seen, _, _, known, books = turn(seed)
    assert seen.context.truth is not None
    batch = curated(RightAnswers(), seen, NOBODY, NOBODY, known, books)
    captured = {o["row"]: o for o in operations(batch, ADD) + operations(batch, UPDATE)}
    wanted = ~seen.hit & seen.context.truth.llm_right & (seen.context.truth.type >= 0)
    assert sorted(captured) == np.flatnonzero(wanted).tolist()
    for u, made in captured.items():
        before = np.flatnonzero(books.name[u, : books.n_skills[u]] == seen.context.truth.type[u]).tolist()
        assert (made["op"], made["skill"]) == ((UPDATE, before[0]) if before else (ADD, -1))
        assert made["name"] == (-1 if before else seen.context.truth.type[u])
        assert (made["text"], made["source"]) == (seen.text[u], 17)
    assert [o["row"] for o in operations(batch, TAG)] == np.flatnonzero(seen.hit).tolist()
    assert not asked(RightAnswers(), seen).any()
    with pytest.raises(ValueError, match="needs the truth"):
        curated(RightAnswers(), replace(seen, context=replace(seen.context, truth=None)), NOBODY, NOBODY, known, books)


# ---------------------------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"capture": "all"}, "curator.capture='all', valid are any, band"),
        ({"offer_after": "miss"}, "curator.offer_after='miss', valid are ok, answer"),
        ({"band_low": 1.5}, "curator.band_low=1.5 must lie in"),
        ({"band_low": float("nan")}, "curator.band_low=nan must lie in"),
        ({"harmful_misses": 0}, "curator.harmful_misses=0 must be at least 1, or null"),
        ({"unused_days": 0.0}, "curator.unused_days=0.0 must be above 0, or null"),
        ({"unused_days": float("nan")}, "curator.unused_days=nan must be above 0, or null"),
    ],
)
def test_bad_parameters_are_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        replace(PAPER, **change)
    assert says in str(error.value)


def test_codes_are_the_places_of_their_names() -> None:
    assert [RATINGS[c] for c in (OK, PARTIAL, MISS)] == ["ok", "partial", "miss"]
    assert [OFFERS[c] for c in (ACCEPTED, BADLY_NAMED, DECLINED)] == ["accepted", "badly_named", "declined"]
