"""Counts from the logs, against the same counts by pandas."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.tally import COUNTS, events, tallies
from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run, ratings
from tests.analysis.synthetic import make_run
from tests.runs import rewritten, save


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("runs") / "run", users=9, weeks=4)


def _frame(run: Run, arm: str) -> pd.DataFrame:
    """One row a turn with every count of COUNTS."""
    t = run.turns(arm).to_pandas()
    hit = ~t.fallback_to_llm
    rows = pd.DataFrame({
        "user": t.user, "turn_no": t.turn, "turn": 1.0, "hit": hit, "wrong": ~t.answer_correct,
        "wrong_hit": hit & ~t.answer_correct, "call": t.serving != "stored", "tokens": t.tokens_in + t.tokens_out,
        "cost": t.cost_usd, "learning": t.learning_cost_usd, "latency": t.latency_ms, "offer": t.offer.notna(),
        "message": t.message.astype(str),
        "about": t.intent.astype(object).fillna(t.message.astype(object)).astype(str), "book": t.book_size,
        "week": (t.time - pd.Timestamp("2026-01-05")).dt.days // 7,
    })  # fmt: skip
    feedback, updates = ratings(run.feedback(arm)).to_pandas(), run.updates(arm).to_pandas()
    known = feedback[feedback.known_at < pd.Timestamp("2026-01-05") + pd.Timedelta(weeks=4)]
    for name, log in (("rated", known), ("ok", known[known.rating == "ok"]), ("add", updates[updates.op == "ADD"])):
        count = log.groupby(["user", "turn"], observed=True).size().rename(name).reset_index()
        rows = rows.merge(count.rename(columns={"turn": "turn_no"}), how="left").fillna({name: 0})
    return rows


@pytest.mark.parametrize("arm", ["skg", "frozen", "never"])
@pytest.mark.parametrize("since", [0, 1, 30])
def test_counts_by_week_and_by_intent_are_those_of_the_rows(run: Run, arm: str, since: int) -> None:
    requests, rows = events(run), _frame(run, arm)
    tally, rows = tallies(run, arm, requests, (since,))[since], rows[rows.turn_no >= since]
    assert set(tally.by_week) == set(tally.by_cell) == set(COUNTS)
    cells = pd.MultiIndex.from_arrays([requests.cells.user, requests.cells.intent])
    for name in COUNTS:
        by_week = rows.astype({name: float}).pivot_table(index="user", columns="week", values=name, aggfunc="sum")
        expected = by_week.reindex(index=range(9), columns=range(4)).fillna(0)
        assert tally.by_week[name] == pytest.approx(expected.to_numpy()), name
        by_cell = rows.astype({name: float}).groupby(["user", "about"])[name].sum()
        assert sorted(by_cell[by_cell != 0]) == pytest.approx(sorted(tally.by_cell[name][tally.by_cell[name] != 0])), (
            name
        )
        assert pd.Series(tally.by_cell[name], cells).groupby(level=0).sum().to_numpy() == pytest.approx(
            expected.sum(axis=1).to_numpy()
        ), name
    assert cells.is_unique


def test_the_book_is_read_at_the_end_of_a_week_and_only_of_weeks_in_which_the_user_was_there(run: Run) -> None:
    requests, rows = events(run), _frame(run, "skg")
    tally = tallies(run, "skg", requests)[0]
    expected = rows.groupby(["user", "week"]).book.last().unstack().reindex(index=range(9), columns=range(4))
    np.testing.assert_array_equal(tally.book, expected.to_numpy(float))
    np.testing.assert_array_equal(tally.book_end, rows.groupby("user").book.last())


def test_ratings_that_come_after_the_end_are_pending_and_count_nowhere(run: Run) -> None:
    requests = events(run)
    late = ratings(run.feedback("skg")).to_pandas().known_at >= pd.Timestamp("2026-01-05") + pd.Timedelta(weeks=4)
    tally = tallies(run, "skg", requests)[0]
    assert tally.pending == late.sum() > 0
    assert tally.by_cell["rated"].sum() == (~late).sum()


def test_weeks_are_calendar_weeks_from_the_first_monday() -> None:
    assert pd.Timestamp(EPOCH, unit="s") == pd.Timestamp("2026-01-05")
    assert pd.Timestamp(EPOCH, unit="s").day_name() == "Monday"
    assert pd.Timedelta(weeks=1).total_seconds() == WEEK


@pytest.mark.parametrize(("stated", "weeks"), [(2, 4), (6, 6)])
def test_there_are_as_many_weeks_as_the_run_states_or_as_its_turns_take(
    tmp_path: Path, stated: int, weeks: int
) -> None:
    run = make_run(tmp_path / "run", users=4, weeks=4)
    save(run.path, {**run.manifest, "weeks": stated})
    requests = events(Run(run.path))
    assert requests.weeks == weeks
    tally = tallies(Run(run.path), "skg", requests)[0]
    assert tally.by_week["turn"].shape == (4, weeks)
    assert (tally.by_week["turn"].sum(axis=0) > 0).tolist() == [True] * 4 + [False] * (weeks - 4)
    there = tally.by_week["turn"] > 0  # of 100,000 users who come once no other weeks are held
    assert tally.weeks.slots.tolist() == np.flatnonzero(there).tolist()
    assert {len(held) for held in tally.by_week.held.values()} == {there.sum()}


def test_a_long_message_makes_no_other_longer() -> None:
    code, words = coded(pa.chunked_array([["b", "a" * 100_000, None, "b"]]))
    assert (code.tolist(), words[1]) == ([1, 0, -1, 1], "b")
    assert words.nbytes < 100


def test_a_one_off_is_what_has_no_request_type(run: Run) -> None:
    requests, named = events(run), run.turns("skg")["request_type"].is_valid().to_numpy()
    assert np.array_equal(requests.one_off, ~named)
    assert (requests.kind == 0).any()
    assert (~named).any()


def test_the_first_turns_of_some_users_can_be_counted_alone(run: Run) -> None:
    requests = events(run, keep=[(2, 5), (7, 11)])
    assert requests.users.tolist() == [2, 7]
    assert np.bincount(requests.row).tolist() == [5, 11]
    rows = _frame(run, "skg")
    rows = rows[((rows.user == 2) & (rows.turn_no < 5)) | ((rows.user == 7) & (rows.turn_no < 11))]
    tally = tallies(run, "skg", requests, keep=[(2, 5), (7, 11)])[0]
    for name in COUNTS:
        assert tally.by_cell[name].sum() == pytest.approx(float(rows[name].sum())), name


def test_an_arm_of_the_same_users_at_another_time_is_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=4, weeks=2)

    def later(table: pa.Table) -> pa.Table:
        place, field = table.column_names.index("time"), table.schema.field("time")
        return table.set_column(place, field, pc.add(table["time"].cast(pa.int64()), 1000).cast(field.type))

    rewritten(run.shards("turns", "frozen")[0], later)
    with pytest.raises(UsageError, match=r"arm 'frozen' has .* which are not the"):
        tallies(run, "frozen", events(run))


def test_lost_rows_and_arms_of_other_events_are_errors(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=4, weeks=2)
    rewritten(run.shards("turns", "frozen")[0], lambda table: table.slice(1))
    with pytest.raises(UsageError, match=r"arm 'frozen' has .* finish the run"):
        tallies(run, "frozen", events(run))
    shard = run.shards("turns", "skg")[0]
    rewritten(shard, lambda table: pa.concat_tables([table.slice(0, 3), table.slice(4)]))
    with pytest.raises(UsageError, match="rows missing or twice at user 0, turn 4"):
        events(run)


def test_a_run_without_turns_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Run.turns
    monkeypatch.setattr(Run, "turns", lambda *asked, **more: turns(*asked, **more).slice(0, 0))
    with pytest.raises(UsageError, match="holds no turns; run it with users >= 1 and weeks >= 1"):
        events(run)


def test_what_nobody_knows_to_be_answerable_is_told_from_what_is_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, known = Run.turns, events(run)

    def without(*asked: object, **more: object) -> pa.Table:
        table = turns(*asked, **more)  # type: ignore[arg-type]
        first = pc.equal(pa.array(np.arange(table.num_rows)), 0)
        answerable = pc.if_else(first, pa.scalar(None, pa.int32()), table["answerable"])
        return table.set_column(table.column_names.index("answerable"), "answerable", answerable)

    monkeypatch.setattr(Run, "turns", without)
    requests = events(run)
    assert (known.judged, requests.judged) == (True, False)
    assert requests.answerable.tolist() == [-1, *known.answerable.tolist()[1:]]
    assert known.answerable.min() >= 0
