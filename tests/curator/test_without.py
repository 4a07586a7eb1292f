"""One skill left out: what stays away, what comes back, and that all before is as it was."""

from collections import defaultdict
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import ADD, REMOVE, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.core.shortlist import alike_skills
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.without import Without, WithoutEach
from skg_bench.runfolder.run import Run
from tests.curator.test_curators import PAPER, curated, operations, turn
from tests.laws import world

seeds = st.integers(0, 2**32)
skills = st.integers(0, 9)


def others(batch: Batch, rows: Bool) -> list[list[int]]:
    """Operations on the books of other users than `rows`."""
    return [getattr(batch, f.name)[~rows[batch.row]].tolist() for f in fields(Batch)]


@settings(deadline=None, max_examples=25)
@given(seed=seeds, skill=skills)
def test_the_skill_is_added_and_archived_at_once_and_books_that_are_not_so_far_are_left_alone(
    seed: int, skill: int
) -> None:
    seen, offer, name, known, books = turn(seed)
    real, made = (curated(c, seen, offer, name, known, books) for c in (PAPER, Without(PAPER, skill, False, None)))
    added = {o["row"] for o in operations(real, ADD) if books.n_skills[o["row"]] == skill}
    fresh = [o for o in operations(made, REMOVE) if o["skill"] >= books.n_skills[o["row"]]]
    assert {(o["row"], o["skill"]) for o in fresh} == {(row, skill) for row in added}
    assert all(Without(PAPER, skill, False, None).reasons[o["reason"]] == "left out" for o in fresh)
    assert operations(made, ADD) == operations(real, ADD)  # other skills keep their ids
    touched = np.isin(np.arange(len(books.n_skills)), list(added)) | (books.n_skills > skill)
    assert others(made, touched) == others(real, touched)


@settings(deadline=None, max_examples=25)
@given(seed=seeds, skill=skills)
def test_without_recapture_nothing_renews_it_and_all_others_are_renewed(seed: int, skill: int) -> None:
    seen, offer, name, known, books = turn(seed)
    real, made = (curated(c, seen, offer, name, known, books) for c in (PAPER, Without(PAPER, skill, False, None)))
    assert operations(made, UPDATE) == [o for o in operations(real, UPDATE) if o["skill"] != skill]


@settings(deadline=None, max_examples=25)
@given(seed=seeds, skills=st.lists(skills, min_size=1, max_size=4))
def test_rows_that_leave_out_a_skill_each_do_what_each_does_alone(seed: int, skills: list[int]) -> None:
    seen, offer, name, known, books = turn(seed)
    n = len(books.n_skills)
    chosen = np.resize(skills, n)
    made = curated(WithoutEach(PAPER, tuple(chosen.tolist())), seen, offer, name, known, books)
    for skill in set(skills):
        alone = curated(Without(PAPER, skill, False, None), seen, offer, name, known, books)
        assert others(made, chosen != skill) == others(alone, chosen != skill)


def test_what_sees_the_truth_cannot_be_played_without_a_skill() -> None:
    with pytest.raises(UsageError, match="cannot wrap a curator that sees the truth"):
        WithoutEach(RightAnswers(), (0, 1))


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
def test_with_recapture_it_is_added_anew_once_and_then_renewed_where_it_was_added(seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    curator = Without(PAPER, 0, True, None)
    mask = (offer >= 0) & (offer != 2) & (books.n_skills > 0)
    name = np.where(mask, books.name[:, 0], name)  # all who accept give the name of their first skill
    again = curated(curator, seen, offer, name, known, books)
    assert not [o for o in operations(again, UPDATE) if o["skill"] == 0]
    anew = {o["row"]: o for o in operations(again, ADD) if mask[o["row"]]}
    assert set(anew) == set(np.flatnonzero(mask).tolist())
    assert all(o["name"] == books.name[row, 0] and o["text"] == seen.text[row] for row, o in anew.items())

    last = books.n_skills - 1  # in each of these books the last skill was added in its place
    names = books.name.copy()
    rows = np.flatnonzero(mask & (last > 0))
    names[rows, last[rows]] = books.name[rows, 0]
    faded = replace(books, name=names, last_used=np.zeros_like(books.last_used))  # and would be archived as unused
    later = curated(curator, seen, offer, name, known, faded)
    renewed = {o["row"]: o["skill"] for o in operations(later, UPDATE)}
    assert {row: renewed[row] for row in rows.tolist()} == {row: int(last[row]) for row in rows}
    gone = {(o["row"], o["skill"]) for o in operations(later, REMOVE)}
    assert not gone & set(renewed.items())
    assert gone


@settings(deadline=None, max_examples=20)
@given(seed=seeds, skill=st.integers(0, 3), lineage=st.sampled_from([0.25, 0.5, 0.75]))
def test_a_lineage_stays_away_under_whatever_name(seed: int, skill: int, lineage: float) -> None:
    seen, offer, name, known, books = turn(seed)
    alone, whole = (curated(Without(PAPER, skill, False, x), seen, offer, name, known, books) for x in (None, lineage))
    near = alike_skills(seen.context.similarity.dots(), books, lineage)[:, skill]
    for op in (ADD, UPDATE):
        kept = [o for o in operations(alone, op) if not (near[o["row"]] and books.n_skills[o["row"]] > skill)]
        assert operations(whole, op) == kept


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((PAPER, -1, False, None), r"curator\.skill=-1 must not be negative"),
        ((PAPER, 0, False, 1.2), r"curator\.lineage=1\.2 must lie in \[0, 1\]"),
        ((PAPER, 0, True, 0.8), r"set lineage to null or recapture to false"),
        ((RightAnswers(), 0, False, None), "cannot wrap a curator that sees the truth"),
    ],
)
def test_values_without_a_meaning_are_refused_by_name(values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Without(*values)


# ------------------------------------------------------------------------------------------------ a whole run

USERS = 80
ARMS = {"skg": None, "without": 0, "recaptured": 1, "masked": 0}  # the skill that is left out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A dense week."""
    return world.run(tmp_path_factory.mktemp("without") / "run", USERS, 256, 1, tuple(ARMS))


def by_user(run: Run, log: str, arm: str) -> dict[int, list[dict[str, Any]]]:
    groups = defaultdict(list)
    for row in getattr(run, log)(arm).to_pylist():
        groups[row["user"]].append(row)
    return groups


@pytest.mark.parametrize("arm", ["without", "recaptured", "masked"])
def test_a_user_has_the_turns_of_the_live_arm_until_the_skill_would_be_captured(run: Run, arm: str) -> None:
    live, made, captured = by_user(run, "turns", "skg"), by_user(run, "turns", arm), 0
    updates = by_user(run, "updates", "skg")
    for user, rows in live.items():
        first = next((u["turn"] for u in updates[user] if (u["op"], u["skill"]) == ("ADD", ARMS[arm])), len(rows))
        captured += first < len(rows)
        drop = {"arm", "book_version", "book_hash"} if arm == "masked" else {"arm"}
        for a, b in zip(rows[:first], made[user][:first], strict=True):
            assert {k: v for k, v in a.items() if k not in drop} == {k: v for k, v in b.items() if k not in drop}
        if first < len(rows) and arm != "masked":
            assert rows[first]["skill_learned"]
            assert not made[user][first]["skill_learned"]
    assert captured > 40


@pytest.mark.parametrize("arm", ["without", "recaptured", "masked"])
def test_the_skill_never_answers(run: Run, arm: str) -> None:
    served = [r["skill"] for rows in by_user(run, "turns", arm).values() for r in rows]
    assert ARMS[arm] not in served
    assert ARMS[arm] in [r["skill"] for rows in by_user(run, "turns", "skg").values() for r in rows]
    assert len(set(served)) > 3


def test_a_masked_skill_goes_on_being_learned_and_one_left_out_does_not(run: Run) -> None:
    renewed = {
        arm: sum((u["op"], u["skill"]) == ("UPDATE", 0) for rows in by_user(run, "updates", arm).values() for u in rows)
        for arm in ("skg", "masked", "without")
    }
    assert renewed["masked"] >= renewed["skg"] > 0
    assert renewed["without"] == 0


def test_what_is_recaptured_comes_under_its_name_and_answers(run: Run) -> None:
    answers, turns = 0, by_user(run, "turns", "recaptured")
    for user, rows in by_user(run, "updates", "recaptured").items():
        adds = [u for u in rows if u["op"] == "ADD"]
        left = next((u for u in adds if u["skill"] == 1), None)
        anew = [u for u in adds if left and u["name"] == left["name"] and u["skill"] != 1]
        assert len(anew) <= 1
        for u in anew:
            assert not any((r["op"], r["skill"]) == ("UPDATE", 1) for r in rows)
            answers += sum(r["skill"] == u["skill"] for r in turns[user])
    assert answers > 0
