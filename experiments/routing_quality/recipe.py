"""The recipe: labelled messages in, a router that knows what it does not know out. The same for any corpus.

Kernel ridge regression (Saunders, Gammerman and Vovk 1998) of the skills' indicators on the vectors, with the Gaussian
kernel on the sphere, ``k(x, y) = exp(width (x y - 1))``:

    A = (K + ridge W)^-1 Y,        f(x) = k(x, X) A,        one column a skill, and one for what is out of scope,

W diagonal: the size of the example's skill over the median size, so that skills weigh alike however many examples they
have. A message gets the skill of the highest column, and as score that column less the one of out of scope; where no
out-of-scope messages are given for training, there is no such column and the score is the height alone. A large width
looks at the nearest examples only, like MaxSim, a small one at where a skill lies as a whole, like a probe; which skill
it is and how far a message is from all of them may be told best at different widths.

Widths and ridges are chosen on the validation messages, by accuracy of the skills and by AUROC of the score, with fits
on at most SEARCH examples; the last fit takes all. The threshold is the best at the stated share of out-of-scope
messages. Where validation has none, each third of the skills is left out of training in turn, and the validation
messages of these skills stand in.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.routing_quality.measure import Scored, best_threshold
from skg_bench.analysis.statistics.ranking import auroc
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32, F64, I16, I32, SCALE

SHARE = 0.2  # stated share of out-of-scope messages: one in five
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
RIDGE, RIDGES = 0.3, (0.1, 1.0)  # where the search begins, and what else is tried
SEARCH = 6_000  # examples of the fits that widths and ridges are chosen from, as many of each skill
LIMIT = 16_000  # examples: the kernel matrix is [n, n] and takes n^3 / 3 multiplications; beyond, as many of each skill
_FOLDS = 3


@dataclass(frozen=True)
class Messages:
    """n labelled messages."""

    vectors: I16  # [n, D] on the embedding grid
    skill: I32  # [n] skill, -1: out of scope

    def rows(self, which: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> "Messages":
        """Messages at these places only."""
        return Messages(self.vectors[which], self.skill[which])


@dataclass(frozen=True)
class Regression:
    """A fitted kernel ridge regression."""

    examples: F32  # [M, D] unit rows
    weights: F32  # [M, C]
    width: float

    def __call__(self, vectors: I16) -> F32:
        """`[n, C]`, about 1 for the column that a message belongs to, about 0 for others."""
        scores: F32 = np.exp(self.width * (_unit(vectors) @ self.examples.T - 1.0)) @ self.weights
        return scores


@dataclass(frozen=True)
class Model:
    """A router fitted on a corpus."""

    skills: I32  # [S] the skills that it knows
    of_skill: Regression
    of_scope: Regression
    threshold: float
    share: float  # of out-of-scope messages, at which the threshold is best

    def score(self, messages: Messages) -> Scored:
        """Skills and scores of messages, before the threshold."""
        if messages.vectors.shape[1] != self.of_skill.examples.shape[1]:
            raise UsageError(
                f"messages have vectors of {messages.vectors.shape[1]} dimensions, the router was fitted on "
                f"{self.of_skill.examples.shape[1]}; embed both with the same model"
            )
        n = len(self.skills)
        best = self.of_skill(messages.vectors)[:, :n].argmax(axis=1)
        return Scored(self.skills[best], _height(self.of_scope(messages.vectors), n), messages.skill)

    def route(self, messages: Messages) -> I32:
        """The skill that answers each message, `[n]`, -1: the LLM does."""
        scored = self.score(messages)
        return np.where(scored.score >= self.threshold, scored.skill, -1).astype(np.int32)


def fit(train: Messages, validation: Messages, share: float = SHARE) -> Model:
    """A router from training messages, everything chosen on validation messages.

    Raises UsageError for messages without a skill, of other dimensions, or a share outside (0, 1).
    """
    _check(train, validation)
    train = _limited(train, LIMIT)
    trials = [(train, validation)] if (validation.skill < 0).any() else _stand_ins(train, validation)
    fitted = [_Fitting(_limited(known, SEARCH)) for known, _ in trials]

    def judged(width: float, ridge: float) -> tuple[float, float]:
        """Accuracy of the skills and AUROC of the score."""
        results = []
        for candidate, (_, held_out) in zip(fitted, trials, strict=True):
            made, n = candidate.fit(width, ridge)(held_out.vectors), len(candidate.skills)
            ins = held_out.skill >= 0
            right = candidate.skills[made[:, :n].argmax(axis=1)] == held_out.skill
            results.append((float(right[ins].mean()), auroc(-_height(made, n), ~ins)))
        accuracy, area = np.mean(results, axis=0)
        return float(accuracy), float(area)

    seen = {(width, RIDGE): judged(width, RIDGE) for width in WIDTHS}
    chosen = []
    for what in (0, 1):
        width = max(WIDTHS, key=lambda w: (seen[w, RIDGE][what], -w))
        for ridge in RIDGES:
            if (width, ridge) not in seen:
                seen[width, ridge] = judged(width, ridge)
        chosen.append(max((pair for pair in seen if pair[0] == width), key=lambda pair: seen[pair][what]))

    of_trials = [_Fitting(known).model(chosen, share) for known, _ in trials]
    scored = [made.score(held_out) for made, (_, held_out) in zip(of_trials, trials, strict=True)]
    columns = (np.concatenate([getattr(s, f) for s in scored]) for f in ("skill", "score", "truth"))
    threshold = best_threshold(Scored(*columns), share)
    whole = of_trials[0] if trials[0][0] is train else _Fitting(train).model(chosen, share)
    return Model(whole.skills, whole.of_skill, whole.of_scope, threshold, share)


class _Fitting:
    """Training messages with their cosines, which all widths and ridges share."""

    def __init__(self, train: Messages) -> None:
        self.skills, column = np.unique(train.skill[train.skill >= 0], return_inverse=True)
        self._examples = _unit(train.vectors)
        self._less = self._examples @ self._examples.T - 1.0  # [M, M]
        self._target = np.zeros((len(train.skill), len(self.skills) + bool((train.skill < 0).any())), np.float32)
        self._target[train.skill >= 0, column] = 1.0
        self._target[train.skill < 0, len(self.skills) :] = 1.0
        size = self._target.sum(axis=0)
        self._weigh = (self._target @ size) / np.median(size)  # [M]

    def fit(self, width: float, ridge: float) -> Regression:
        """Solve for the weights."""
        from scipy.linalg import cho_factor, cho_solve

        kernel = np.exp(width * self._less)
        np.einsum("mm->m", kernel)[:] += ridge * self._weigh
        factor = cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)
        return Regression(self._examples, cho_solve(factor, self._target, check_finite=False), width)

    def model(self, chosen: list[tuple[float, float]], share: float) -> Model:
        """Model with these (width, ridge) for the skill and for the score, and no threshold yet."""
        fits = {pair: self.fit(*pair) for pair in set(chosen)}
        of_skill, of_scope = (fits[pair] for pair in chosen)
        return Model(self.skills.astype(np.int32), of_skill, of_scope, np.nan, share)


def _unit(vectors: I16) -> F32:
    return vectors.astype(np.float32) / np.float32(SCALE)


def _height(made: F32, n_skills: int) -> F64:
    """Score: the best skill's column, less that of out of scope if there is one."""
    outside = made[:, n_skills] if made.shape[1] > n_skills else np.float32(0.0)
    height: F64 = (made[:, :n_skills].max(axis=1) - outside).astype(np.float64)
    return height


def _check(train: Messages, validation: Messages) -> None:
    for name, messages in (("training", train), ("validation", validation)):
        if not (messages.skill >= 0).any():
            raise UsageError(f"no {name} message has a skill ({len(messages.skill)} messages)")
    if train.vectors.shape[1] != validation.vectors.shape[1]:
        raise UsageError(
            f"training vectors have {train.vectors.shape[1]} dimensions, validation vectors "
            f"{validation.vectors.shape[1]}; embed both with the same model"
        )


def _limited(train: Messages, most: int) -> Messages:
    """Messages, `most` at most: the first ones of each skill, of all skills as evenly as there are any."""
    if len(train.skill) <= most:
        return train
    order = np.argsort(train.skill, kind="stable")
    skills = train.skill[order]
    nth = np.arange(len(skills)) - np.searchsorted(skills, skills)
    kept = order[np.argsort(nth, kind="stable")[:most]]
    return train.rows(np.sort(kept))


def _stand_ins(train: Messages, validation: Messages) -> list[tuple[Messages, Messages]]:
    """Training without each third of the skills, and validation in which these are out of scope."""
    skills = np.unique(train.skill[train.skill >= 0])
    if len(skills) < 2:
        raise UsageError(
            "validation has no out-of-scope message, and with one skill none can stand in; give some, labelled out of "
            "scope"
        )
    trials = []
    for fold in range(min(_FOLDS, len(skills))):
        left_out = skills[fold::_FOLDS]
        labels = np.where(np.isin(validation.skill, left_out), -1, validation.skill).astype(np.int32)
        trials.append((train.rows(~np.isin(train.skill, left_out)), Messages(validation.vectors, labels)))
    return trials
