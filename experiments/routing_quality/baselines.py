"""Baselines of the recipe: routers on the same vectors, from the SKG paper's rule to a logistic probe.

Where the corpus has labelled out-of-scope messages to train, every router but the SKG paper's rule is given them, as
one more skill: its score is that of the best skill less a share of that of the out-of-scope messages. The share (0: the
messages do not help) is the best in AUROC on validation.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.routing_quality.corpora import Corpus
from experiments.routing_quality.measure import Scored
from experiments.routing_quality.recipe import Messages
from skg_bench.analysis.statistics.ranking import auroc
from skg_bench.core.grid import F32, F64, I32, SCALE, Bool

NEIGHBOURS = (1, 3, 5, 10, 20)
PENALTIES = (1e-4, 3e-5, 1e-5, 3e-6)
OUTSIDE = (0.0, 0.25, 0.5, 0.75, 1.0)  # shares of the out-of-scope messages' score that are tried
RULE = "SKG's rule: MaxSim, 0.5"
_SMALL = 1e-3  # penalty of the few weights that mix scores


@dataclass(frozen=True)
class Entry:
    """A router as it scores the validation and the test messages."""

    name: str
    validation: Scored
    test: Scored
    threshold: float | None = None  # None: chosen on validation


@dataclass(frozen=True)
class _Raw:
    """Raw scores of a router for the messages of a split."""

    skill: I32  # [n] the best
    inside: F64  # [n] its score
    outside: F64 | None  # [n] score of the out-of-scope training messages, None: there are none
    truth: I32  # [n]

    def scored(self, share: float) -> Scored:
        """Scores with this share of `outside` taken off."""
        score = self.inside if self.outside is None else self.inside - share * self.outside
        return Scored(self.skill, score, self.truth)

    @property
    def columns(self) -> list[F64]:
        return [self.inside] if self.outside is None else [self.inside, self.outside]


def baselines(corpus: Corpus) -> Iterator[Entry]:
    """Every baseline; what names the skill is chosen by accuracy on in-scope validation messages."""
    labels = np.where(corpus.train.skill < 0, np.iinfo(np.int32).max, corpus.train.skill)  # out of scope comes last
    known = corpus.train.rows(np.argsort(labels, kind="stable"))
    splits = corpus.validation, corpus.test
    similarity = [_unit(m) @ _unit(known).T for m in splits]  # [n, E], examples in order of their skills
    starts = np.flatnonzero(np.diff(known.skill, prepend=-2))
    skills = known.skill[starts]

    nearest = [np.maximum.reduceat(s, starts, axis=1) for s in similarity]
    means = np.add.reduceat(_unit(known), starts, axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    centre = [_unit(m) @ means.T for m in splits]
    half = [np.float32(0.5) * (a + b) for a, b in zip(nearest, centre, strict=True)]

    def raw(scores: Sequence[F32]) -> list[_Raw]:
        return [_raw(s, skills, m.skill) for s, m in zip(scores, splits, strict=True)]

    of_nearest, of_centre = raw(nearest), raw(centre)
    rule = [r.scored(0.0) for r in of_nearest]
    yield Entry(RULE, rule[0], rule[1], 0.5)
    yield _entry("MaxSim", of_nearest)
    yield _entry("centroid", of_centre)
    yield _entry("half MaxSim, half centroid", raw(half))
    votes = {k: raw([_votes(s, starts, k) for s in similarity]) for k in NEIGHBOURS}
    best = max(votes, key=lambda k: _accuracy(votes[k]))
    yield _entry(f"kNN, vote of {best}", votes[best])

    probes = [_Probe.fit(known, skills, penalty).raw(skills, splits) for penalty in PENALTIES]
    probe = max(probes, key=_accuracy)
    yield _entry("logistic probe, energy", probe)
    features = [
        np.stack([column for router in routers for column in router.columns], axis=1)
        for routers in zip(probe, of_nearest, of_centre, strict=True)
    ]
    mixed = _mix(features[0], probe[0].truth >= 0)
    validation, test = (Scored(r.skill, mixed(f), r.truth) for r, f in zip(probe, features, strict=True))
    yield Entry("probe class; probe + centroid + MaxSim score", validation, test)


def _raw(scores: F32, skills: I32, truth: I32) -> _Raw:
    """Raw scores from those of all skills `[n, S]`, the last of which may be out of scope."""
    n = int((skills >= 0).sum())
    inside = scores[:, :n]
    outside = scores[:, n].astype(np.float64) if n < len(skills) else None
    return _Raw(skills[inside.argmax(axis=1)], inside.max(axis=1).astype(np.float64), outside, truth)


def _entry(name: str, splits: Sequence[_Raw]) -> Entry:
    """Entry with the share of the out-of-scope messages' score that is the best on validation."""
    validation, test = splits
    shares = OUTSIDE if validation.outside is not None else (0.0,)
    share = max(shares, key=lambda s: auroc(-validation.scored(s).score, validation.truth < 0))
    return Entry(name, validation.scored(share), test.scored(share))


def _unit(messages: Messages) -> F32:
    return messages.vectors.astype(np.float32) / np.float32(SCALE)


def _accuracy(splits: Sequence[_Raw]) -> float:
    scored = splits[0].scored(0.0)  # of validation
    return float(scored.right.sum() / (~scored.out).sum())


def _votes(similarity: F32, starts: np.ndarray, k: int) -> F32:
    """Sum of the cosines of each skill's examples among the k nearest, over k: `[n, S]`, as `router/knn.py` has it."""
    k = min(k, similarity.shape[1])
    near = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
    row = np.arange(len(similarity))[:, None]
    out = np.zeros((len(similarity), len(starts)), np.float32)
    np.add.at(out, (row, np.searchsorted(starts, near, side="right") - 1), np.maximum(similarity[row, near], 0.0) / k)
    return out


@dataclass(frozen=True)
class _Probe:
    """Softmax regression with a quadratic penalty on all but the constants."""

    weights: F64  # [D + 1, S]

    @classmethod
    def fit(cls, known: Messages, skills: I32, penalty: float) -> "_Probe":
        """Mean cross-entropy + penalty / 2 times the squared weights, by L-BFGS."""
        from scipy.optimize import minimize

        x = np.concatenate([_unit(known), np.ones((len(known.skill), 1), np.float32)], axis=1)
        column = np.searchsorted(skills[skills >= 0], known.skill)
        targets = np.arange(len(x)), np.where(known.skill < 0, len(skills) - 1, column)
        shape = x.shape[1], len(skills)

        def loss(flat: F64) -> tuple[float, F64]:
            w = flat.reshape(shape)
            z = x @ w.astype(np.float32)
            z -= z.max(axis=1, keepdims=True)
            e = np.exp(z)
            total = e.sum(axis=1, keepdims=True)
            cross_entropy = float(np.mean(np.log(total[:, 0]) - z[targets], dtype=np.float64))
            e /= total
            e[targets] -= 1.0
            gradient = (x.T @ e).astype(np.float64) / len(x)
            gradient[:-1] += penalty * w[:-1]
            return cross_entropy + penalty / 2 * float((w[:-1] ** 2).sum()), gradient.reshape(-1)

        optimum = minimize(loss, np.zeros(shape).reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        return cls(optimum.x.reshape(shape))

    def raw(self, skills: I32, splits: tuple[Messages, Messages]) -> list[_Raw]:
        """The most probable skill; the score is the log of the summed exponentials (Liu et al. 2020: minus energy)."""
        from scipy.special import logsumexp

        made, n = [], int((skills >= 0).sum())
        for messages in splits:
            logits = _unit(messages).astype(np.float64) @ self.weights[:-1] + self.weights[-1]
            inside, outside = logits[:, :n], logits[:, n] if n < len(skills) else None
            made.append(_Raw(skills[inside.argmax(axis=1)], logsumexp(inside, axis=1), outside, messages.skill))
        return made


def _mix(features: F64, inside: Bool) -> Callable[[F64], F64]:
    """Logistic regression of being in scope on standardised scores, both kinds weighing the same."""
    from scipy.optimize import minimize

    mean, spread = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    x = np.concatenate([(features - mean) / spread, np.ones((len(features), 1))], axis=1)
    sign = np.where(inside, 1.0, -1.0)
    weight = np.where(inside, 0.5 / inside.sum(), 0.5 / (~inside).sum())

    def loss(w: F64) -> tuple[float, F64]:
        z = sign * (x @ w)
        gradient = -(x * (weight * sign / (1.0 + np.exp(z)))[:, None]).sum(axis=0) + _SMALL * w
        return float((weight * np.logaddexp(0.0, -z)).sum() + _SMALL / 2 * (w @ w)), gradient

    w = minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS").x
    return lambda f: (f - mean) / spread @ w[:-1] + w[-1]
