"""Whom curators ask, what they record, capture and archive, and what a freeze lets through."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.types import OFFERS, RATINGS, Curator, KnownFeedback, Observation, Skillbooks, TurnTruth
from skg_bench.curator.budget import Budget
from skg_bench.curator.everything import Everything
from skg_bench.curator.frozen import Freeze, Frozen
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.sham import Sham
from skg_bench.curator.skg import SKG
from skg_bench.curator.without import Without
from tests.core import samples

DAY = 86_400
B = 40
PAPER = SKG("any", 0.6, "ok", 3, 60)
OK, PARTIAL, MISS, NONE = 0, 1, 2, -1
ACCEPTED, BADLY_NAMED, DECLINED = range(3)
NO_LATE = KnownFeedback(*np.zeros((4, 0), np.int32))
NOBODY = np.full(B, -1, np.int32)
NEW_NAME = 1000
seeds = st.integers(0, 2**32)


def turn(seed: int, b: int = B) -> tuple[Observation, np.ndarray, np.ndarray, KnownFeedback, Skillbooks]:
    """A turn as it can happen: hits on active skills, offers only where the LLM answered, some ratings late."""
    rng = np.random.default_rng(seed)
    books = samples.ragged(rng, b, 40, skills=10)
    books = replace(books, source=np.where(books.source >= 0, books.source % 17, -1).astype(np.int32))
    skill = np.array([rng.choice(np.flatnonzero(a)) if a.any() and rng.random() < 0.5 else -1 for a in books.active])
    truth = TurnTruth(
        np.zeros(books.active.shape, np.int32), rng.integers(-1, 9, b).astype(np.int32), rng.random(b) < 0.7
    )
    past, similarity, event = samples.history(rng, b)
    seen = Observation(
        time=np.full(b, samples.NOW) + rng.integers(0, 9, b),
        turn=17,
        text=rng.integers(0, 100, b).astype(np.int32),
        hit=skill >= 0,
        skill=skill.astype(np.int32),
        best_similarity=rng.choice([0.0, 0.3, 0.6, 0.6 + 2.0**-16, 0.9], b),
        rating=rng.integers(-1, 3, b).astype(np.int32),
        past=past,
        similarity=similarity,
        event=event,
        truth=replace(truth, llm_right=truth.llm_right & (skill < 0)),
    )
    offer = np.where(seen.hit, -1, rng.integers(-1, 3, b)).astype(np.int32)
    name = np.where(rng.random(b) < 0.5, books.name[:, 0], NEW_NAME)
    name = np.where((offer >= 0) & (offer != DECLINED), np.where(name < 0, NEW_NAME, name), -1).astype(np.int32)
    row = rng.integers(0, b, 15).astype(np.int32)
    row = row[books.n_skills[row] > 0]
    feedback = KnownFeedback(row, (books.n_skills[row] - 1).astype(np.int32), row % 3, np.full(len(row), 5, np.int32))
    return seen, offer, name, feedback, books


def operations(batch: Batch, op: int) -> list[dict[str, int]]:
    return [{f.name: int(getattr(batch, f.name)[i]) for f in fields(Batch)} for i in np.flatnonzero(batch.op == op)]


def columns(batch: Batch) -> list[list[int]]:
    return [getattr(batch, f.name).tolist() for f in fields(Batch)]


# ---------------------------------------------------------------------------------------------- whom it asks


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K16", "K17")
def test_the_offer_follows_an_answer_of_the_llm_that_was_rated_ok(seed: int) -> None:
    seen = turn(seed)[0]
    assert np.array_equal(PAPER.offers(seen), ~seen.hit & (seen.rating == OK))
    any_answer = replace(PAPER, offer_after="answer").offers(seen)
    assert np.array_equal(any_answer, ~seen.hit & np.isin(seen.rating, [OK, NONE]))


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K16")
def test_the_band_asks_only_where_some_skill_was_nearer_than_its_lower_end(seed: int) -> None:
    seen = turn(seed)[0]
    band = replace(PAPER, capture="band").offers(seen)
    assert np.array_equal(band, PAPER.offers(seen) & (seen.best_similarity > 0.6))


@pytest.mark.req("K16")
def test_the_band_cannot_start_from_nothing() -> None:
    seen = replace(turn(0)[0], best_similarity=np.zeros(B), hit=np.zeros(B, np.bool_), rating=NOBODY * 0)
    assert not SKG("band", 0.0, "ok", 3, 60).offers(seen).any()
    assert PAPER.offers(seen).all()


# -------------------------------------------------------------------------------------------- what it learns


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K17", "K18")
def test_an_accepted_offer_adds_a_skill_and_a_name_given_before_renews_one_with_one_more_example(seed: int) -> None:
    seen, offer, name, feedback, books = turn(seed)
    batch = PAPER.curate(seen, offer, name, feedback, books)
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
    seen = replace(seen, hit=np.zeros(B, np.bool_), skill=NOBODY)
    curator = replace(PAPER, harmful_misses=None, unused_days=None)
    batch = curator.curate(seen, np.full(B, DECLINED, np.int32), NOBODY, NO_LATE, books)
    assert len(batch.op) == 0


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
@pytest.mark.req("K12", "K17")
def test_each_use_is_counted_once_with_its_rating_and_late_ratings_count_no_use(seed: int) -> None:
    seen, offer, name, feedback, books = turn(seed)
    batch = PAPER.curate(seen, offer, name, feedback, books)
    tags = operations(batch, TAG)
    used = [(o["row"], o["skill"], o["rating"]) for o in tags if o["uses"] == 1]
    later = [(o["row"], o["skill"], o["rating"]) for o in tags if o["uses"] == 0]
    hit = np.flatnonzero(seen.hit)
    assert used == [(int(u), int(seen.skill[u]), int(seen.rating[u])) for u in hit]
    assert later == list(zip(feedback.row.tolist(), feedback.skill.tolist(), feedback.rating.tolist(), strict=True))
    assert {PAPER.reasons[o["reason"]] for o in tags} <= {"used", "rated later"}


# ------------------------------------------------------------------------------------------ what it archives


@settings(deadline=None, max_examples=20)
@given(seed=seeds, misses=st.none() | st.integers(1, 6), days=st.none() | st.floats(1, 40))
@pytest.mark.req("K29")
def test_harmful_and_unused_skills_are_archived_but_not_what_this_turn_used_or_captured(
    seed: int, misses: int | None, days: float | None
) -> None:
    seen, offer, name, feedback, books = turn(seed)
    curator = replace(PAPER, harmful_misses=misses, unused_days=days)
    batch = curator.curate(seen, offer, name, feedback, books)
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
    seen = replace(seen, hit=np.zeros(B, np.bool_), skill=NOBODY)
    for seconds, archived in ((60 * DAY, 0), (60 * DAY + 1, int(books.active.sum()))):
        at = replace(seen, time=np.full(B, seconds))
        assert len(PAPER.curate(at, NOBODY, NOBODY, NO_LATE, books).op) == archived


# ------------------------------------------------------------------------------------- what all curators keep


EVERY: list[Curator] = [
    PAPER, NoLearning(), RightAnswers(), Frozen(PAPER, 17, "book"), Sham(PAPER, "any", 0), Sham(PAPER, "known", 1),
    Without(PAPER, 2, recapture=False, lineage=0.5), Without(PAPER, 2, recapture=True, lineage=None),
    Budget(PAPER, 2, "lru"), Budget(PAPER, 3, "lfu"), Everything(),
]  # fmt: skip


@pytest.mark.parametrize("curator", EVERY, ids=repr)
@settings(deadline=None, max_examples=10)
@given(seed=seeds)
def test_a_user_is_curated_the_same_alone_and_among_others(curator: Curator, seed: int) -> None:
    seen, offer, name, feedback, books = turn(seed)
    assert seen.truth is not None
    whole = curator.curate(seen, offer, name, feedback, books)
    asked = curator.offers(seen)
    assert asked.dtype == np.bool_
    assert asked.shape == (B,)
    assert {getattr(whole, f.name).dtype for f in fields(Batch)} == {np.dtype(np.int32)}
    assert (whole.reason < max(len(curator.reasons), 1)).all()
    for u in range(0, B, 8):
        own: dict[str, Any] = {f.name: getattr(seen, f.name) for f in fields(Observation)}
        own = {k: v[[u]] if isinstance(v, np.ndarray) else v for k, v in own.items()}
        t, there = seen.truth, feedback.row == u
        own["truth"] = TurnTruth(t.quality[[u]], t.type[[u]], t.llm_right[[u]])
        mine = KnownFeedback(
            feedback.row[there] * 0, feedback.skill[there], feedback.rating[there], feedback.turn[there]
        )
        one = curator.curate(Observation(**own), offer[[u]], name[[u]], mine, samples.some(books, [u]))
        kept = whole.row == u
        assert columns(replace(one, row=one.row + u)) == [getattr(whole, f.name)[kept].tolist() for f in fields(Batch)]
        assert curator.offers(Observation(**own)).item() == asked[u]


def test_the_curator_that_learns_nothing_asks_nobody() -> None:
    seen, offer, name, feedback, books = turn(3)
    assert not NoLearning().offers(seen).any()
    assert len(NoLearning().curate(seen, offer, name, feedback, books).op) == 0
    assert NoLearning().learns(0) is False


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_the_oracle_captures_each_right_answer_to_a_request_that_can_come_again(seed: int) -> None:
    seen, _, _, feedback, books = turn(seed)
    assert seen.truth is not None
    batch = RightAnswers().curate(seen, NOBODY, NOBODY, feedback, books)
    captured = {o["row"]: o for o in operations(batch, ADD) + operations(batch, UPDATE)}
    wanted = ~seen.hit & seen.truth.llm_right & (seen.truth.type >= 0)
    assert sorted(captured) == np.flatnonzero(wanted).tolist()
    for u, made in captured.items():
        before = np.flatnonzero(books.name[u, : books.n_skills[u]] == seen.truth.type[u]).tolist()
        assert (made["op"], made["skill"]) == ((UPDATE, before[0]) if before else (ADD, -1))
        assert made["name"] == (-1 if before else seen.truth.type[u])
        assert (made["text"], made["source"]) == (seen.text[u], 17)
    assert [o["row"] for o in operations(batch, TAG)] == np.flatnonzero(seen.hit).tolist()
    assert not RightAnswers().offers(seen).any()
    with pytest.raises(ValueError, match="needs the truth"):
        RightAnswers().curate(replace(seen, truth=None), NOBODY, NOBODY, feedback, books)


# ------------------------------------------------------------------------------------------------ the freeze


@pytest.mark.parametrize("freeze", ["book", "book+scorer", "all"])
def test_before_its_turn_a_freeze_changes_nothing(freeze: Freeze) -> None:
    seen, offer, name, feedback, books = turn(4)
    frozen = Frozen(PAPER, 18, freeze)
    whole = PAPER.curate(seen, offer, name, feedback, books)
    assert columns(frozen.curate(seen, offer, name, feedback, books)) == columns(whole)
    assert set(whole.op.tolist()) == {ADD, UPDATE, TAG, REMOVE}
    assert np.array_equal(frozen.offers(seen), PAPER.offers(seen))
    assert frozen.learns(17)
    assert frozen.reasons == PAPER.reasons


@pytest.mark.parametrize(
    ("freeze", "counts", "learns"), [("book", True, True), ("book+scorer", True, False), ("all", False, False)]
)
def test_from_its_turn_on_a_freeze_lets_through_what_it_says(freeze: Freeze, counts: bool, learns: bool) -> None:
    seen, offer, name, feedback, books = turn(4)
    frozen = Frozen(PAPER, 17, freeze)
    assert PAPER.offers(seen).any()
    assert not frozen.offers(seen).any()
    batch = frozen.curate(seen, offer, name, feedback, books)
    whole = PAPER.curate(seen, offer, name, feedback, books)
    assert operations(batch, TAG) == (operations(whole, TAG) if counts else [])
    assert set(batch.op.tolist()) <= {TAG}
    assert [bool(frozen.learns(t)) for t in (16, 17, 99)] == [True, learns, learns]


def test_a_freeze_cannot_make_a_curator_learn_that_does_not() -> None:
    assert not Frozen(NoLearning(), 5, "book").learns(0)
    assert not Frozen(NoLearning(), 5, "book").learns(9)


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"at_turn": -1}, "curator.at_turn=-1 must not be negative"),
        ({"freeze": "some"}, "curator.freeze='some', valid are book, book+scorer, all"),
        ({"curator": RightAnswers()}, "cannot wrap a curator that sees the truth"),
    ],
)
def test_a_bad_freeze_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        replace(Frozen(PAPER, 5, "all"), **change)
    assert says in str(error.value)


def test_codes_are_the_places_of_their_names() -> None:
    assert [RATINGS[c] for c in (OK, PARTIAL, MISS)] == ["ok", "partial", "miss"]
    assert [OFFERS[c] for c in (ACCEPTED, BADLY_NAMED, DECLINED)] == ["accepted", "badly_named", "declined"]
