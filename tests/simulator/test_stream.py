"""What users bring: how much, when and what; a pure function of (seed, user, weeks)."""

from typing import SupportsIndex

import numpy as np
import pytest

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.world import Events
from tests.simulator.users import DAY, HOUR, WEEK, assistant, events, real


@pytest.fixture(scope="module")
def wide() -> Events:
    """500 users, four weeks."""
    return events(500, 4)


@pytest.fixture(scope="module")
def long() -> Events:
    """60 users, half a year."""
    return events(60, 26)


def same(a: Events, b: Events, row_a: SupportsIndex, row_b: SupportsIndex) -> bool:
    """Whether two rows are one user's events."""
    n = a.n[row_a]
    columns = [
        (getattr(a, c), getattr(b, c)) for c in ("number", "time", "text")
    ] + [(getattr(a.truth, c), getattr(b.truth, c)) for c in ("type", "intent", "answerable", "used_up")]  # fmt: skip
    return bool(n == b.n[row_b] and all(np.array_equal(x[row_a, :n], y[row_b, :n]) for x, y in columns))


def test_a_users_events_do_not_depend_on_who_else_is_asked_for(wide: Events) -> None:
    some = np.array([311, 7, 499, 0, 64], np.int32)
    made = assistant().population(0, some, 4)
    assert np.array_equal(made.user, some)
    assert all(same(made, wide, row, user) for row, user in enumerate(some))
    alone = assistant().population(0, some[1:2], 4)
    assert same(alone, wide, 0, 7)
    assert not same(made, wide, 0, 312)


def test_another_seed_is_another_world_and_more_weeks_go_on_from_fewer(wide: Events) -> None:
    users = np.arange(20, dtype=np.int32)
    other, far = assistant().population(1, users, 4), assistant().population(2**63 - 1, users, 1)
    assert not any(same(other, wide, u, u) for u in users)
    assert (far.n > 0).all()
    first = assistant().population(0, users, 2)
    for u in users:
        n = first.n[u]
        assert np.array_equal(first.time[u, :n], wide.time[u, :n])
        assert np.array_equal(first.text[u, :n], wide.text[u, :n])
        assert wide.time[u, n] >= 2 * WEEK


def test_events_come_in_order_within_the_weeks_and_are_padded(wide: Events) -> None:
    assert (np.diff(wide.time, axis=1) >= 0).all()
    assert ((wide.time >= 0) & (wide.time < 4 * WEEK))[real(wide)].all()
    assert (wide.time[~real(wide)] == np.iinfo(np.int64).max).all()
    assert (wide.text[~real(wide)] == 0).all()
    assert (wide.truth.type[~real(wide)] == -1).all()
    assert (wide.n > 0).all()
    assert [a.dtype for a in (wide.user, wide.n, wide.time, wide.text)] == [np.int32, np.int32, np.int64, np.int32]


def test_rows_of_some_users_are_cut_to_their_width(wide: Events) -> None:
    few = wide.rows(np.argsort(wide.n)[:3])
    assert few.time.shape == few.truth.answerable.shape == (3, few.n.max())
    assert all(same(few, wide, row, user) for row, user in enumerate(few.user))


# ------------------------------------------------------------------------------------------ how much, and when


def test_users_send_ten_messages_on_an_active_day_in_the_median_with_a_heavy_tail(wide: Events) -> None:
    days = np.where(real(wide), wide.time // DAY, -1)
    active = [np.unique(d[d >= 0], return_counts=True)[1] for d in days]
    medians = np.array([np.median(a) for a in active])
    assert 9 <= np.median(medians) <= 11
    assert 2.0 < np.quantile(medians, 0.9) / np.median(medians) < 3.2
    assert np.mean(medians) > 1.1 * np.median(medians)
    share = np.array([len(a) for a in active]) / 28
    assert 0.3 < np.quantile(share, 0.1) < 0.6 < np.quantile(share, 0.5) < 0.8 < np.quantile(share, 0.9)


def test_days_have_a_rhythm_and_weekends_are_quieter(wide: Events) -> None:
    when = wide.time[real(wide)]
    by_hour = np.bincount(when % DAY // HOUR, minlength=24)
    assert by_hour[17:21].mean() > 5 * by_hour[1:5].mean()
    assert by_hour[8:11].mean() > 2 * by_hour[5:6].mean()
    active = np.zeros((500, 28), np.bool_)
    row, _ = np.nonzero(real(wide))
    active[row, when // DAY] = True
    weekend = np.arange(28) % 7 >= 5
    assert 0.78 < active[:, weekend].mean() / active[:, ~weekend][:, 1:].mean() < 0.92


def test_messages_come_in_conversations(wide: Events) -> None:
    gaps = np.diff(wide.time, axis=1)[real(wide)[:, 1:]]
    assert 0.5 < (gaps < 180).mean() < 0.65
    assert np.quantile(gaps[gaps > 180], 0.5) > HOUR / 2
    single = assistant(conversation_length=1.0).population(0, np.arange(50, dtype=np.int32), 4)
    gaps = np.diff(single.time, axis=1)[real(single)[:, 1:]]
    assert (gaps < 180).mean() < 0.2


def test_intents_are_asked_in_their_hours_and_on_their_weekdays(wide: Events) -> None:
    corpus = assistant()._corpus
    at = real(wide) & (wide.truth.type >= 0)
    intent, hour = wide.truth.intent[at], wide.time[at] % DAY // HOUR
    weekend = wide.time[at] % WEEK // DAY >= 5
    eager = corpus.hour_weight[intent, hour] / corpus.hour_weight.mean(axis=1)[intent]
    blind = corpus.hour_weight[np.roll(intent, 1000), hour] / corpus.hour_weight.mean(axis=1)[np.roll(intent, 1000)]
    assert eager.mean() > 1.15 * blind.mean()
    only = corpus.day_weight[intent]
    workdays, free = only[:, 1] < 1, only[:, 0] < 1
    assert weekend[workdays].mean() < 0.6 * weekend.mean()
    assert weekend[free].mean() > 1.5 * weekend.mean()


def test_an_intent_that_follows_another_comes_more_often_after_it(wide: Events) -> None:
    corpus = assistant()._corpus
    after, talk, pair = [], [], []
    for u in range(500):
        n = wide.n[u]
        intent, gap = wide.truth.intent[u, :n], np.diff(wide.time[u, :n])
        both = (intent[1:] >= 0) & (intent[:-1] >= 0)
        pair.append(np.stack([intent[1:][both], intent[:-1][both]]))
        talk.append(gap[both] < 1800)
        after.append(corpus.follows[intent[1:][both], intent[:-1][both]])
    follows, in_talk = np.concatenate(after), np.concatenate(talk)
    assert follows[in_talk].mean() > 2.5 * follows[~in_talk].mean()


# -------------------------------------------------------------------------------------------------------- what


def seen_before(some: Events, user: SupportsIndex) -> tuple[np.ndarray, np.ndarray]:
    """A user's typed requests, and whether each is of a type asked before."""
    typed = some.truth.type[user, : some.n[user]]
    typed = typed[typed >= 0]
    first = np.zeros(len(typed), np.bool_)
    first[np.unique(typed, return_index=True)[1]] = True
    return typed, ~first


def test_about_two_in_five_requests_find_something_again(long: Events) -> None:
    repeats = [seen_before(long, u)[1].sum() for u in range(60)]
    assert 0.33 < np.sum(repeats) / long.n.sum() < 0.47
    one_offs = (long.truth.type < 0)[real(long)].mean()
    assert abs(one_offs - 0.35) < 0.01


def test_new_types_come_at_the_rate_of_a_pitman_yor_process(long: Events) -> None:
    """Given the past, the n-th typed request is of a new type with probability (a + d K) / (a + n)."""
    excess, variance = 0.0, 0.0
    for u in range(60):
        _, again = seen_before(long, u)
        known, n = np.cumsum(~again) - ~again, np.arange(len(again))
        p = (10 + 0.75 * known) / (10 + n)
        excess += float((~again - p).sum())
        variance += float((p * (1 - p)).sum())
    assert abs(excess) < 4 * np.sqrt(variance)


def test_repeats_go_to_what_was_asked_lately(long: Events) -> None:
    rng = np.random.default_rng(0)
    lately: list[float] = []
    shuffled: list[float] = []
    for u in np.flatnonzero(long.n > 1200):
        typed, _ = seen_before(long, u)
        for rates, order in ((lately, typed), (shuffled, rng.permutation(typed))):
            last: dict[int, int] = {}
            lag = []
            for i, t in enumerate(order):
                if t in last:
                    lag.append(i - last[t])
                last[t] = i
            rates.append(float(np.mean(np.array(lag) <= 20)))
    assert len(lately) >= 20
    assert np.mean(lately) > 1.25 * np.mean(shuffled)


def test_interests_drift(long: Events) -> None:
    month = 4 * WEEK
    near: list[float] = []
    far: list[float] = []
    for u in np.flatnonzero(long.n > 1200):
        typed = [set(long.truth.type[u][real(long)[u] & (long.time[u] // month == m)]) - {-1} for m in range(6)]
        near += [len(typed[m] & typed[m + 1]) / min(len(typed[m]), len(typed[m + 1])) for m in (1, 2, 3)]
        far += [len(typed[m] & typed[m + 4]) / min(len(typed[m]), len(typed[m + 4])) for m in (0, 1)]
    assert np.mean(near) > 1.1 * np.mean(far)


def test_users_have_tastes_of_their_own(wide: Events) -> None:
    favourite = []
    for u in np.flatnonzero(wide.n > 200):
        intent = wide.truth.intent[u, : wide.n[u]]
        favourite.append(np.bincount(intent[intent >= 0], minlength=120).argmax())
    assert len(set(favourite)) > 30


# ----------------------------------------------------------------------------------------------------- wordings


@pytest.mark.req("K02")
@pytest.mark.parametrize("habit", [0.0, 0.5, 1.0])
def test_a_type_is_asked_in_the_usual_words_or_in_the_next_of_a_keyed_permutation(habit: float) -> None:
    world, checked, again, usual = assistant(habit=habit), 0, 0, 0
    corpus, long = world._corpus, world.population(0, np.arange(0, 60, 6, dtype=np.int32), 26)
    for row, u in enumerate(range(0, 60, 6)):
        typed, text = long.truth.type[row, : long.n[row]], long.text[row, : long.n[row]]
        for t in np.unique(typed[typed >= 0]):
            n, texts = int(corpus.n_wordings[t]), text[typed == t]
            uniform = draw(key(0, np.array([u])), int(t), Purpose.WORDING, np.arange(n))
            permutation = corpus.wordings[t, np.argsort(uniform, kind="stable")]
            by_habit = draw(key(0, np.array([u])), int(t), Purpose.HABIT, np.arange(len(texts))) < habit
            by_habit[0] = False
            others = texts[~by_habit]
            assert (texts[by_habit] == permutation[0]).all()
            assert others.tolist() == np.resize(permutation, len(others)).tolist()
            used_up = long.truth.used_up[row, : long.n[row]][typed == t]
            assert not used_up[by_habit].any()
            assert (used_up[~by_habit] == (np.arange(len(others)) >= n)).all()
            checked, again, usual = checked + used_up.any(), again + len(texts) - 1, usual + by_habit.sum()
    assert checked > 0 or habit == 1.0
    assert abs(usual / again - habit) < 0.03


def test_nobody_says_a_one_off_twice_before_all_were_said() -> None:
    talkative = assistant(
        one_off_share=1.0, messages_per_day=300.0, max_per_day=300.0, volume_spread=0.0, active_low=1.0
    )
    made = talkative.population(0, np.arange(2, dtype=np.int32), 1)
    assert (made.truth.type == -1).all()
    assert (made.truth.intent == -1).all()
    assert (made.n > 1600).all()
    for u in range(2):
        text, used_up = made.text[u, : made.n[u]], made.truth.used_up[u, : made.n[u]]
        assert len(set(text[:1500])) == 1500
        assert (used_up == (np.arange(len(text)) >= 1500)).all()
        assert np.array_equal(text[1500:], text[: len(text) - 1500])
    assert not np.array_equal(made.text[0, :9], made.text[1, :9])


def test_there_may_be_no_one_offs_at_all() -> None:
    assert (
        (assistant(one_off_share=0.0).population(0, np.arange(5, dtype=np.int32), 1).truth.type >= 0).any(axis=1).all()
    )


def test_a_user_who_says_one_offs_only_is_a_user_too() -> None:
    """User 123 does so in the first week of seed 0, which once ended a run of that user alone."""
    quiet = assistant().population(0, np.array([123], np.int32), 1)
    assert quiet.n[0] >= 1
    assert (quiet.truth.type[0, : quiet.n[0]] == -1).all()


# ------------------------------------------------------------------------------------------------- what holds


@pytest.mark.parametrize("stale_hours", [None, 0.0, 1.0, 30.0])
def test_answerable_counts_the_earlier_answers_that_still_hold(stale_hours: float | None) -> None:
    made_by = assistant(answers_stale_hours=stale_hours, concentration=2.0)
    made = made_by.population(5, np.arange(12, dtype=np.int32), 6)
    ttl = made_by._ttl_of
    for u in range(12):
        n = made.n[u]
        type_, time = made.truth.type[u, :n], made.time[u, :n]
        alike = (type_[:, None] == type_[None]) & (type_[:, None] >= 0)
        holds = time[:, None] - time[None] < ttl[type_][:, None]
        expected = (alike & holds & np.tri(n, k=-1, dtype=np.bool_)).sum(axis=1)
        assert np.array_equal(made.truth.answerable[u, :n], expected)
    assert (made.truth.answerable.max() > 0) == (stale_hours != 0.0)


def test_names_are_given_by_type_first() -> None:
    simulator = assistant()
    assert len(simulator.names) > len(simulator.types)
    assert len(set(simulator.names[: len(simulator.types)])) == len(simulator.types)
    assert not [n for n in simulator.names[: len(simulator.types)] if n != n.lower() or " " in n or "_" in n]
    assert simulator.stream == "stateful"
    assert simulator.digest == simulator._corpus.digest
