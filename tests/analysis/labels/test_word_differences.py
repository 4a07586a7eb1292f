"""Differences between arms whose words a judge with errors graded: labels of people take the errors out."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.labels.word_differences import UserMean, corrected_difference
from skg_bench.core.grid import F64, I64, Bool

DRAWS, USERS, LABELS = 2000, 60, 80
Draw = tuple[I64, F64, F64, Bool, Bool]  # user, by the judge, in truth, labelled, with other words


def draws(n: int, *, found: float, refused: float, gain: float = 1.2, labels: int = LABELS) -> Iterator[Draw]:
    """Users and turns of a population, two arms, and a judge that says right to a share `found` of right answers and
    not right to a share `refused` of the others. At three of ten turns the arms say the same.
    """
    random = np.random.default_rng(3)

    def judged(right: Bool) -> Bool:
        says: Bool = random.random(len(right)) < np.where(right, found, 1 - refused)
        return says

    for _ in range(n):
        user = np.repeat(np.arange(USERS), 1 + random.poisson(12, USERS))
        ease = random.normal(0, 0.6, USERS)[user] + random.normal(0, 1, len(user))
        helped = gain + random.normal(0, 0.3, USERS)[user]
        arm, reference = (random.random(len(user)) < 1 / (1 + np.exp(-x)) for x in (ease + helped, ease))
        differ = random.random(len(user)) > 0.3
        sample = np.zeros(len(user), np.bool_)
        sample[random.permutation(np.flatnonzero(differ))[:labels]] = True
        truth, grades = (
            np.where(differ, mine.astype(float) - theirs, 0.0)
            for mine, theirs in ((arm, reference), (judged(arm), judged(reference)))
        )
        yield user, grades, np.where(sample, truth, 9.0), sample, differ  # 9: nobody may look at it


def population(gain: float = 1.2) -> float:
    """The true difference, from four million users."""
    random = np.random.default_rng(9)
    ease, n = np.hypot(0.6, 1.0) * random.normal(0, 1, 4_000_000), 4_000_000
    helped = gain + random.normal(0, 0.3, n)
    return 0.7 * float((1 / (1 + np.exp(-ease - helped)) - 1 / (1 + np.exp(-ease))).mean())


def alone(draw: Draw) -> UserMean:
    """The judge's own difference: as if its grades were labels."""
    user, grades, _, _, differ = draw
    return corrected_difference(user, grades, grades, differ, differ)


def coverage(truth: float, made: list[UserMean]) -> float:
    return float(np.mean([mean.share.low <= truth <= mean.share.high for mean in made]))


def test_a_judge_of_known_error_is_corrected_and_the_interval_holds_the_truth() -> None:
    """2,000 draws, 10 % of right and 20 % of other answers flipped, 80 turns labelled. The arm is 15.3 points
    better; by the judge alone it is 10.8, and 41 % of its intervals hold the truth. Corrected it is
    15.4, and 95.5 % hold it.
    """
    truth, sample = population(), list(draws(DRAWS, found=0.9, refused=0.8))
    corrected, naive = [corrected_difference(*draw) for draw in sample], [alone(draw) for draw in sample]
    assert np.mean([each.mean for each in naive]) == pytest.approx(0.7 * truth, abs=0.005)
    assert coverage(truth, naive) < 0.5
    assert np.mean([each.mean for each in corrected]) == pytest.approx(truth, abs=0.005)
    assert 0.93 <= coverage(truth, corrected) <= 0.97
    words = " ".join((Path(__file__).parents[3] / "docs/models.md").read_text("utf-8").split())
    assert (
        f"where the arm is {100 * truth:.1f} points better: a judge that flips its grade of 10 % of right and of 20 % "
        f"of other answers finds {100 * np.mean([each.mean for each in naive]):.1f} points on average, and "
        f"{100 * coverage(truth, naive):.0f} % of its intervals hold the truth. Corrected by {LABELS} labels, "
        f"{100 * coverage(truth, corrected):.1f} % do."
    ) in words


def test_a_judge_that_knows_nothing_costs_no_width_and_one_that_knows_makes_it_narrower() -> None:
    truth = population()
    widths = {}
    for name, found in (("coin", 0.5), ("good", 0.95)):
        sample = list(draws(300, found=found, refused=found))
        with_judge = [corrected_difference(*draw) for draw in sample]
        without = [corrected_difference(user, 0 * f, d, m, differ) for user, f, d, m, differ in sample]
        assert coverage(truth, with_judge) > 0.92
        widths[name] = np.mean([each.se for each in with_judge]) / np.mean([each.se for each in without])
    assert 0.95 < widths["coin"] < 1.05
    assert widths["good"] < 0.75


def test_where_there_is_no_difference_hardly_any_is_found() -> None:
    """1,000 draws, a judge that passes 30 % of what is wrong."""
    made = [corrected_difference(*draw) for draw in draws(1000, found=0.9, refused=0.7, gain=0.0)]
    assert np.mean([each.p < 0.05 for each in made]) < 0.07


def test_with_all_turns_labelled_the_judge_does_not_count() -> None:
    user = np.array([0, 0, 1, 1, 1, 2])
    truth = np.array([1.0, 0.0, 0.0, 1.0, -1.0, 1.0])
    differ = np.array([True, False, True, True, True, True])
    by_user = np.array([0.5, 0.0, 1.0])
    for judge in (np.zeros(6), np.array([0.0, 0.0, 1.0, 1.0, 1.0, -1.0])):
        made = corrected_difference(user, judge, truth, differ, differ)
        assert made.mean == pytest.approx(by_user.mean())
        assert made.se == pytest.approx(by_user.std(ddof=1) / 3**0.5)
        assert made.df == 2


def test_labels_that_all_agree_with_the_judge_leave_an_error() -> None:
    """Errors that 24 labels did not show may stand in the other turns."""
    user = np.repeat(np.arange(10), 10)
    judge = np.ones(100)
    judged = np.arange(100) < 24
    made = corrected_difference(user, judge, judge, judged, np.ones(100, np.bool_))
    assert made.mean == pytest.approx(1.0)
    assert 0.02 < made.se < 0.06
