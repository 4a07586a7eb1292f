"""Who is shown, and what is packed of them."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.counts import metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.report.people import CAP, fitting_turns, pick, timelines
from skg_bench.analysis.report.roster import rosters, utility_of
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run, ratings


def test_twelve_different_users_two_best_two_worst_two_in_the_middle_six_by_key() -> None:
    users = np.arange(101)
    utility = np.cos(users * 7.0)
    picks = pick(users, utility, seed=3)
    ranked = users[np.argsort(-utility)].tolist()
    by_why = {why: [p.user for p in picks if p.why == why] for why in ("best", "worst", "median", "drawn")}
    assert by_why["best"] == ranked[:2]
    assert by_why["worst"] == ranked[:-3:-1]
    assert by_why["median"] == ranked[49:51]
    assert len(by_why["drawn"]) == 6
    assert len({p.user for p in picks}) == 12


def test_the_drawn_users_depend_on_the_seed_and_not_on_how_well_they_did() -> None:
    users = np.arange(1000)

    def drawn(seed: int, utility: np.ndarray) -> set[int]:
        return {p.user for p in pick(users, utility, seed) if p.why == "drawn"}

    sample = drawn(3, np.cos(users * 7.0))
    extremes = {p.user for p in pick(users, np.sin(users * 1.0), 3) if p.why != "drawn"}
    assert sample - extremes <= drawn(3, np.sin(users * 1.0))
    assert sample != drawn(4, np.cos(users * 7.0))


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_of_few_users_everyone_is_shown_once(n: int) -> None:
    picks = pick(np.arange(n), np.linspace(0, 1, n), 0)
    assert sorted(p.user for p in picks) == list(range(n))


def test_too_long_a_history_keeps_its_beginning_and_its_end() -> None:
    assert fitting_turns(5, 5) == [0, 1, 2, 3, 4]
    assert fitting_turns(9, 4) == [0, 1, 7, 8]
    assert len(fitting_turns(10 * CAP, CAP)) == CAP


def test_the_list_shows_the_users_own_figures(run: Run) -> None:
    rows = rosters(run, "skg", "never", None)["skg"]
    utility = utility_of(
        tallies(run, "skg", events(run))[0], metrics.metrics(metrics.Utility.of(run.config))["utility"]
    )
    assert rows[0].user == int(np.argmax(utility))
    for row in rows:
        turns = run.turns("skg", ["fallback_to_llm", "book_size"], [row.user])
        hits = [not f for f in turns["fallback_to_llm"].to_pylist()]
        assert row.turns == f"{len(hits):,}"
        assert row.hit_rate == f"{100 * sum(hits) / len(hits):.1f}\u202f%"
        assert row.skills == f"{turns['book_size'].to_pylist()[-1]:,}"


def test_a_user_whom_the_run_does_not_have_is_refused_by_name(run: Run) -> None:
    with pytest.raises(UsageError, match=r"user 999 is not in .*; it has users 0 to 15"):
        rosters(run, "skg", "never", [3, 999])


def test_a_timeline_says_what_the_logs_say(run: Run) -> None:
    packed = timelines(run, "skg", [4], CAP)[4]
    turns, feedback, updates = (log("skg", None, [4]) for log in (run.turns, run.feedback, run.updates))
    feedback = ratings(feedback)
    words = packed.words
    assert [words[m] for m in packed.message] == turns["message"].to_pylist()
    assert [None if s < 0 else words[s] for s in packed.skill] == turns["matched_skill"].to_pylist()
    assert packed.correct == [int(c) for c in turns["answer_correct"].to_pylist()]
    rated = dict(zip(feedback["turn"].to_pylist(), feedback.to_pylist(), strict=True))
    for turn, rating, late in zip(packed.turn, packed.rating, packed.late, strict=True):
        assert rating == (("ok", "partial", "miss").index(rated[turn]["rating"]) if turn in rated else -1)
        delay = (rated[turn]["known_at"] - rated[turn]["time"]).total_seconds() if turn in rated else 0
        assert late == int(delay)
    assert any(late > 0 for late in packed.late)
    assert [u[:2] for u in packed.updates] == [(u["turn"], u["op"]) for u in updates.to_pylist()]
    start = datetime.fromisoformat(packed.start)
    assert start == turns["time"].to_pylist()[0]


def test_the_shortlist_is_packed_best_first_with_the_chosen_skill_and_absent_signals_as_null(run: Run) -> None:
    packed = timelines(run, "skg", [4], CAP)[4]
    skills = run.turns("skg", ["skill"], [4])["skill"].to_pylist()
    for places, skill in zip(packed.shortlist, skills, strict=True):
        combined = [place.combined or 0 for place in places]
        assert combined == sorted(combined, reverse=True)
        assert sum(place.chosen for place in places) == (skill >= 0)
        assert all(place.score is None for place in places)  # this run has no reranker's score


def test_the_same_message_in_other_arms_is_told_as_right_or_wrong(run: Run) -> None:
    packed = timelines(run, "skg", [4], CAP)[4]
    never = run.turns("never", ["answer_correct"], [4])["answer_correct"].to_pylist()
    assert packed.arms["never"] == "".join("L" if right else "l" for right in never)
    assert set(packed.arms["frozen_30"]) <= set("HhLl")


def test_a_cut_timeline_still_counts_all_turns_and_drops_what_belongs_to_those_left_out(run: Run) -> None:
    packed = timelines(run, "skg", [4], 20)[4]
    assert len(packed.turn) == 20 < packed.n
    assert {u[0] for u in packed.updates} <= set(packed.turn)
    assert all(len(outcomes) == 20 for outcomes in (*packed.arms.values(), *packed.causes.values()))


def test_pages_of_users_lie_beside_the_report_and_leave_it_alone(run: Run, page_path: Path) -> None:
    from skg_bench.analysis import report

    before = page_path.read_bytes()
    path = report.write_page(run, [2, 7, 2])
    assert path.name == "report-users-2-7.html"
    assert page_path.read_bytes() == before


def test_users_packed_together_are_packed_as_each_alone(run: Run) -> None:
    together = timelines(run, "skg", [4, 7, 9], CAP)
    assert sorted(together) == [4, 7, 9]
    for user, packed in together.items():
        alone = timelines(run, "skg", [user], CAP)[user]
        assert len(packed.turn) == run.turns("skg", ["turn"], [user]).num_rows
        for name in ("turn", "time", "correct", "hit", "rating", "max_sim"):
            assert getattr(packed, name) == getattr(alone, name), name
