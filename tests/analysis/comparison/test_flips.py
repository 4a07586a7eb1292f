"""Events that one arm answered rightly and another wrongly: found, counted by reason, told."""

from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.comparison.flips import REASONS, Done, Flips, done, examples, flips, lines
from skg_bench.core.errors import UsageError
from skg_bench.core.types import CAUSES
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import make_run
from tests.laws import world


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("flips") / "run", users=8, weeks=4)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The closed loop itself, with a prompted arm."""
    return world.run(
        tmp_path_factory.mktemp("flips") / "loop", 24, 256, 1, ("skg", "oracle", "prompted", "never", "donor")
    )


def made(user: list[int], right: list[bool], hit: list[bool], cause: list[str], run: Run) -> Done:
    turn = [sum(u == v for v in user[:i]) for i, u in enumerate(user)]
    codes = np.array([CAUSES.index(c) for c in cause], np.int32)
    ids = np.array(user, np.int32), np.array(turn, np.int32)
    return Done(run, "skg", *ids, np.array(right), ~np.array(right), np.array(hit), codes)


def test_every_cause_has_a_reason_in_words() -> None:
    assert set(REASONS) == set(CAUSES)
    assert set(REASONS.values()) >= {"not captured", "shortlist", "score", "threshold", "stale", "wrong source"}


def test_flips_are_the_events_on_which_the_arms_differ(run: Run) -> None:
    skg, never = done(run, "skg"), done(run, "never")
    worse, better = flips(skg, never), flips(never, skg)
    rows = {arm: run.turns(arm, ["answer_correct"]).to_pylist() for arm in ("skg", "never")}
    pairs = list(zip(rows["skg"], rows["never"], strict=True))
    assert worse.at.tolist() == [i for i, (a, b) in enumerate(pairs) if b["answer_correct"] > a["answer_correct"]]
    assert better.at.tolist() == [i for i, (a, b) in enumerate(pairs) if a["answer_correct"] > b["answer_correct"]]
    assert sum(worse.counts().values()) == len(worse.at) > 3
    assert list(worse.counts().values()) == sorted(worse.counts().values(), reverse=True)


def test_the_reason_is_the_wrong_arms_cause_unless_both_asked_the_llm(run: Run) -> None:
    wrong = made([0] * 4, [False] * 4, [True, False, False, True], ["threshold", "capture", "novelty", "none"], run)
    right = made([0] * 4, [True] * 4, [False, True, False, False], ["none"] * 4, run)
    assert [REASONS[CAUSES[c]] for c in flips(wrong, right).cause] == ["threshold", "not captured", "LLM", "LLM"]


@pytest.mark.parametrize("n", [0, 1, 7, 10_000])
def test_examples_are_as_many_as_wanted_and_all_flips_in_the_end(run: Run, n: int) -> None:
    flipped = flips(done(run, "never"), done(run, "skg"))
    samples = examples(flipped, n)
    assert len({(f.user, f.turn) for f in samples}) == len(samples) == min(n, len(flipped.at))


def test_examples_take_each_reason_in_turn_and_other_users_first(run: Run) -> None:
    users = [0, 0, 0, 1, 1, 2]
    cause = ["score", "score", "capture", "score", "score", "score"]
    wrong = made(users, [False] * 6, [True] * 6, cause, run)
    flipped = flips(wrong, made(users, [True] * 6, [True] * 6, ["none"] * 6, run))
    samples = [(f.user, f.turn, f.reason) for f in examples(flipped, 5)]
    assert samples == [(0, 0, "score"), (0, 2, "not captured"), (1, 0, "score"), (2, 0, "score"), (0, 1, "score")]


def test_an_example_tells_what_each_arm_answered_from(loop: Run) -> None:
    skg, oracle = done(loop, "skg"), done(loop, "oracle")
    rows = {(r["user"], r["turn"]): r for r in loop.turns("skg").to_pylist()}
    samples = examples(flips(skg, oracle), 50)
    assert len({f.reason for f in samples}) >= 3
    for f in samples:
        row = rows[f.user, f.turn]
        assert f.message == row["message"]
        assert f.time == f"{row['time']:%a %Y-%m-%d %H:%M}"
        assert (f.wrong == "the LLM") == row["fallback_to_llm"]
        if not row["fallback_to_llm"]:
            source = rows[f.user, row["source_turn"]]["message"]
            assert f.wrong.startswith(f"skill {row['matched_skill']!r} (score {row['skill_score']:.2f})")
            assert f.wrong.endswith(f"stored at turn {row['source_turn']} for {source!r}")
        first, *others = lines(f, "skg", "oracle")
        assert f"user {f.user}, turn {f.turn}" in first
        assert [line.split()[:2] for line in others] == [["wrong", "skg:"], ["right", "oracle:"]]


def test_a_prompted_answer_has_no_source(loop: Run) -> None:
    samples = examples(flips(done(loop, "prompted"), done(loop, "never")), 10_000)
    prompted = [f for f in samples if f.wrong != "the LLM"]
    assert prompted
    assert all(f.wrong.endswith("), prompted") for f in prompted)
    assert any(f.reason == "LLM" for f in prompted)


def test_the_answer_of_a_donor_is_another_users(loop: Run) -> None:
    samples = examples(flips(done(loop, "donor"), done(loop, "never")), 10_000)
    stored = [
        (f.turn >= world.FORK, f.wrong.endswith("stored by another user")) for f in samples if f.wrong != "the LLM"
    ]
    assert set(stored) == {(False, False), (True, True)}


def test_two_runs_are_held_together_on_the_turns_that_both_have(tmp_path: Path, run: Run) -> None:
    longer = make_run(tmp_path / "longer", users=12, weeks=5)
    counts = np.bincount(done(run, "skg").user)
    keep = [(u, int(n)) for u, n in enumerate(counts) if n]
    assert not len(flips(done(run, "skg"), done(longer, "skg", keep)).at)
    with pytest.raises(UsageError, match="have other events"):
        flips(done(run, "skg"), done(longer, "skg"))


def test_flips_of_nothing_are_none(run: Run) -> None:
    none = flips(done(run, "skg"), done(run, "skg"))
    assert isinstance(none, Flips)
    assert (none.counts(), examples(none, 5)) == ({}, [])
