"""Differences between arms whose words were judged: by a judge alone, and with its errors taken out by labels.

A turn i of user u, one of the user's B_u, has the difference d_i of right answers, arm minus reference (1, 0, -1), and
f_i as a judge has it. Where both say the same words, both are 0. Of the M other turns m are labelled, a simple random
sample (`hit_pairs`). With weights w_i = 1 / (n B_u), as users count alike, and a factor L,
    t = sum_i w_i L f_i + W mean_w(d_i - L f_i over the labelled),      W = sum of w_i over the M turns,
is the difference estimator of prediction-powered inference (Angelopoulos and others, Science 2023). L is the
regression of d on f among the labelled turns, between 0 and 1 (Angelopoulos, Duchi and Zrnic 2023): a judge that knows
nothing gets no weight, and then labels alone count. t is a sum of a part for each user, with
residuals e_i = d_i - L f_i - mean,
    t_u = sum_i w_i L f_i + W_u mean + W / sum w_i sum_i w_i e_i (m / (m - 1))^1/2.
Their spread has both errors: that of other users, and that of the judge, which few labels measure. It is
that of the mean of n t_u (Student, users with a label minus 1 degrees of freedom). Where m labels all agree with the
judge, the spread of residuals is not 0 but unknown: a prior of two coins, as in `label_shares`, adds
    W^2 (1 - m / M) / (m (m + 2)).
In the same way n users who are all alike leave 1 / (n (n + 2)).

A label that cannot tell counts both ways, and the interval covers both. An answer that is near counts as not right.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.labels.hit_pairs import ArmHits, HitPairs
from skg_bench.analysis.labels.label_shares import LabelShare, PairLabel, judged_prefix
from skg_bench.analysis.labels.labelled_run import hit_labels
from skg_bench.analysis.labels.rater_labels import JUDGE_FILE, merged, read_sheet, settled
from skg_bench.analysis.labels.word_pairs import check_labels, silent_labels, word_pairs
from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.analysis.statistics.intervals import ALPHA, holm, p_value, sums, t_quantile
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.runfolder.run import Run

UNLABELLED = LabelShare(nan, nan, nan)
_LEAST = 10  # labelled turns: with fewer there is no verdict


@dataclass(frozen=True, slots=True)
class UserMean:
    """A mean over users with its error."""

    mean: float
    se: float
    df: float

    @property
    def share(self) -> LabelShare:
        """The mean with its 95 % interval, within what is possible."""
        half = t_quantile(1 - ALPHA / 2, self.df) * self.se if self.se else 0.0
        return LabelShare(self.mean, max(self.mean - half, -1.0), min(self.mean + half, 1.0))

    @property
    def p(self) -> float:
        """Two-sided p-value of no difference."""
        return p_value(self.mean / self.se, self.df) if self.se else float(self.mean == 0)


@dataclass(frozen=True, slots=True)
class WordsDifference:
    """An arm against the reference, by one judge."""

    arm: str
    judge: str  # empty: none, labels alone count
    turns: int  # whose task has a reference
    differ: int  # of these, turns at which the two said other words
    labelled: int  # of these, turns that count as labelled
    alone: LabelShare  # difference of right answers by the judge alone; NaN: it has not judged all
    corrected: LabelShare  # NaN without labels
    found: tuple[int, int]  # pairs that people call right: by the judge too, and all
    refused: tuple[int, int]  # pairs that people call not right: by the judge too, and all
    verdict: str


def judged_words(
    run: Run, by_rater: Mapping[int, Mapping[str, int]], judges: Mapping[str, Mapping[int, int]], seed: int = 0
) -> Sequence[WordsDifference]:
    """Differences of all arms by all judges, labels by pair; without a judge by the run's own check, if it has one.
    `seed`: of the order in which turns are labelled. Empty for a run without references, or without arms to compare.
    """
    reference, arms = roles(run).reference, compared_arms(run)
    if reference is None or not arms:
        return []
    pairs = word_pairs(run, arms, reference, seed)
    if not len(pairs.table):
        return []
    by_check = check_labels(run, pairs, reference)
    given = {**({f"the run's check ({run.config['simulator']['check']})": by_check} if by_check else {}), **judges}
    silent, people = silent_labels(pairs), settled(by_rater)
    rows = list[WordsDifference]()
    for judge, grades in (given or {"": {}}).items():
        of_judge, p = list[WordsDifference](), list[float]()
        for hits in pairs.arms:
            row, error = _row(pairs, hits, judge, people, grades, silent)
            of_judge, p = [*of_judge, row], [*p, error]
        rows += [_decided(row, error) for row, error in zip(of_judge, holm(p), strict=True)]
    return rows


def compared_arms(run: Run) -> Sequence[str]:
    """Arms that are held against the reference arm; none: there is none."""
    reference = roles(run).reference
    return [arm for arm in run.arms if reference not in (None, arm)]


def labelled_words(
    run: Run, by_rater: Mapping[int, Mapping[str, int]], seed: int = 0
) -> tuple[HitPairs, Sequence[tuple[I64, I64]]]:
    """Words of all arms but the reference arm; of each the labels of its words and of those of the reference arm.

    Raises UsageError for a run without a reference arm and another one, and for one without references.
    """
    reference, others = roles(run).reference, compared_arms(run)
    if reference is None or not others:
        raise UsageError(f"{run.path}: words are judged arm against arm; name one of two arms at least: reference=ARM")
    pairs = word_pairs(run, others, reference, seed)
    if not len(pairs.table):
        raise UsageError(f"{run.path}: none of its messages has a reference, so there is nothing to judge")
    labels = {**settled(by_rater), **silent_labels(pairs)}
    return pairs, [hit_labels(hits, labels) for hits in pairs.arms]


def kept_judges(run: Run) -> dict[str, dict[int, int]]:
    """Labels that judges gave, which lie beside the run, by name of the judge; by name and file where two have one."""
    sheets = {file.stem: merged(read_sheet(file)) for file in sorted(run.path.glob(JUDGE_FILE.format("*")))}
    names = {stem: next(iter(next(iter(sheet.values())))) for stem, sheet in sheets.items() if sheet}
    many = Counter(names.values())
    judges = {
        name if many[name] == 1 else f"{name} ({stem})": {
            pair: next(iter(by_name.values())) for pair, by_name in sheets[stem].items()
        }
        for stem, name in names.items()
    }
    return dict(sorted(judges.items()))


def corrected_difference(user: I64, judge: F64, truth: F64, judged: Bool, differ: Bool) -> UserMean:
    """The module's t and its error, from `[N]` turns: users 0..n-1, f, d (any value where it is not labelled), which
    turns are labelled, and at which two arms said other words. Two labelled turns at least, if any differ.
    """
    n = int(user.max()) + 1
    w = 1.0 / (n * sums(user, n)[user])
    sample = judged & differ
    m, every = int(sample.sum()), int(differ.sum())
    if not every:
        return UserMean(0.0, 0.0, n - 1.0)
    weight, at = w[sample], user[sample]
    factor = _factor(judge[sample], truth[sample])
    rest = truth[sample] - factor * judge[sample]
    mean = float(weight @ rest / weight.sum())
    total = float(w[differ].sum())
    residual = total / weight.sum() * weight * (rest - mean) * ((m / (m - 1)) ** 0.5 if m < every else 1.0)
    of_user = sums(user, n, factor * w * judge) + mean * sums(user[differ], n, w[differ])
    spread = paired_t(n * (of_user + sums(at, n, residual)))
    unseen = total**2 * (1 - m / every) / (m * (m + 2))
    df = (min(n, len(np.unique(at))) if m < every else n) - 1.0
    return UserMean(spread.mean, float(np.hypot(_spread(spread, n), unseen**0.5)), df)


def _spread(mean: PairedT, n: int) -> float:
    """Standard error of a mean over n users."""
    return mean.se if mean.se or not mean.mean else float((n * (n + 2)) ** -0.5)


def _factor(judge: F64, truth: F64) -> float:
    """L."""
    centred = judge - judge.mean()
    square = float(centred @ centred)
    return min(max(float(centred @ truth) / square, 0.0), 1.0) if square else 0.0


def _row(pairs: HitPairs, hits: ArmHits, judge: str, *known: Mapping[int, int]) -> tuple[WordsDifference, float]:
    """A row without its verdict, and the p-value of no difference; NaN: not tested. `known`: labels of people, of the
    judge, and of pairs without words.
    """
    people, grades, silent = known
    _, user = np.unique(pairs.table["user"].to_numpy(), return_inverse=True)
    mine, theirs = hit_labels(hits, {**people, **silent})
    by_judge = hit_labels(hits, {**grades, **silent})
    differ, judged, f = np.zeros(len(user), np.bool_), np.zeros(len(user), np.bool_), np.zeros(len(user))
    differ[hits.turn], judged[hits.turn] = True, judged_prefix(hits, mine, theirs)
    f[hits.turn] = _right(by_judge[0]) - _right(by_judge[1])
    n, m, every = int(user.max()) + 1, int(judged.sum()), len(hits.turn)
    alone, corrected, p = UNLABELLED, UNLABELLED, nan
    if n > 1 and not any((each == PairLabel.UNJUDGED).any() for each in by_judge):
        by_user = paired_t(sums(user, n, f) / sums(user, n))
        alone = UserMean(by_user.mean, _spread(by_user, n), by_user.df).share
    if n > 1 and (m == every or (m >= _LEAST and len(np.unique(user[judged])) > 1)):
        ends = list[UserMean]()
        for least in (True, False):
            d = np.zeros(len(user))
            d[hits.turn] = _right(mine, could=not least) - _right(theirs, could=least)
            ends.append(corrected_difference(user, f, d, judged, differ))
        low, high = min(each.share.low for each in ends), max(each.share.high for each in ends)
        corrected = LabelShare((ends[0].mean + ends[1].mean) / 2, low, high)
        p = max(end.p for end in ends) if ends[0].mean * ends[1].mean > 0 else 1.0
    right, others = _confusion(hits, hit_labels(hits, people), hit_labels(hits, grades))
    row = WordsDifference(hits.arm, judge, len(user), every, m, alone, corrected, right, others, "")
    return row, p


def _right(labels: I64, *, could: bool = False) -> F64:
    """1 where a label says right, else 0; `could`: also where it cannot tell."""
    some = (PairLabel.RIGHT, PairLabel.UNKNOWN) if could else (PairLabel.RIGHT,)
    return np.isin(labels, some).astype(np.float64)


def _confusion(hits: ArmHits, people: tuple[I64, I64], judge: tuple[I64, I64]) -> Sequence[tuple[int, int]]:
    """Pairs of the arm and of the reference that people call right, and not right: as the judge has them."""
    _, first = np.unique(np.concatenate([hits.pair, hits.logged]), return_index=True)
    known, graded = np.concatenate(people)[first], np.concatenate(judge)[first]
    both = (known < PairLabel.UNKNOWN) & (graded != PairLabel.UNJUDGED)
    right, says = known[both] == PairLabel.RIGHT, graded[both] == PairLabel.RIGHT
    return (int((right & says).sum()), int(right.sum())), (int((~right & ~says).sum()), int((~right).sum()))


def _decided(row: WordsDifference, p: float) -> WordsDifference:
    if np.isnan(p):
        few = f"no verdict: fewer than {_LEAST} labels"
        return replace(row, verdict=few if row.labelled or not row.judge else "no verdict: only by this judge")
    if p >= ALPHA:
        return replace(row, verdict="inconclusive" if row.differ else "the same words")
    return replace(row, verdict="better" if row.corrected.mean > 0 else "worse")
