"""What the recipe is compared with: routers on the same vectors, from the SKG paper's rule to a logistic probe."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from experiments.routing_quality.corpora import Corpus
from experiments.routing_quality.measure import Scored
from experiments.routing_quality.recipe import Messages
from skg_bench.core.grid import F32, F64, I32, SCALE, Bool

NEIGHBOURS = (1, 3, 5, 10, 20)
PENALTIES = (1e-4, 3e-5, 1e-5, 3e-6)
_SMALL = 1e-3  # penalty of the few weights that mix scores


@dataclass(frozen=True)
class Entry:
    """A router as it scores the validation and the test messages."""

    name: str
    validation: Scored
    test: Scored
    threshold: float | None = None  # None: chosen on validation


def baselines(corpus: Corpus) -> Iterator[Entry]:
    """Every baseline; whatever a baseline can choose is chosen by accuracy on in-scope validation messages."""
    known = corpus.train.rows(np.argsort(corpus.train.skill, kind="stable"))
    known = known.rows(known.skill >= 0)
    splits = corpus.validation, corpus.test
    similarity = [_unit(m) @ _unit(known).T for m in splits]  # [n, E], examples in order of their skills
    starts = np.flatnonzero(np.diff(known.skill, prepend=-1))
    skills = known.skill[starts]

    nearest = [np.maximum.reduceat(s, starts, axis=1) for s in similarity]
    means = np.add.reduceat(_unit(known), starts, axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    centre = [_unit(m) @ means.T for m in splits]
    half = [np.float32(0.5) * (a + b) for a, b in zip(nearest, centre, strict=True)]

    def entry(name: str, scores: list[F32], threshold: float | None = None) -> Entry:
        validation, test = (
            Scored(skills[s.argmax(axis=1)], s.max(axis=1).astype(np.float64), m.skill)
            for s, m in zip(scores, splits, strict=True)
        )
        return Entry(name, validation, test, threshold)

    yield entry("SKG's rule: MaxSim, 0.5", nearest, 0.5)
    yield entry("MaxSim", nearest)
    yield entry("centroid", centre)
    yield entry("half MaxSim, half centroid", half)
    votes = {k: entry(f"kNN, vote of {k}", [_votes(s, starts, k) for s in similarity]) for k in NEIGHBOURS}
    yield max(votes.values(), key=_accuracy)

    probes = [_Probe.fit(known, skills, penalty) for penalty in PENALTIES]
    probe = max(probes, key=lambda p: _accuracy(p.entry("", skills, splits)))
    of_probe = probe.entry("logistic probe, energy", skills, splits)
    yield of_probe
    features = [
        np.stack([scored.score, b.max(axis=1), a.max(axis=1)], axis=1)
        for scored, a, b in zip((of_probe.validation, of_probe.test), nearest, centre, strict=True)
    ]
    mixed = _mix(features[0], of_probe.validation.truth >= 0)
    validation, test = (
        Scored(s.skill, mixed(f), s.truth) for s, f in zip((of_probe.validation, of_probe.test), features, strict=True)
    )
    yield Entry("probe class; probe + centroid + MaxSim score", validation, test)


def _unit(messages: Messages) -> F32:
    return messages.vectors.astype(np.float32) / np.float32(SCALE)


def _accuracy(entry: Entry) -> float:
    scored = entry.validation
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
        targets = np.arange(len(x)), np.searchsorted(skills, known.skill)
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

    def entry(self, name: str, skills: I32, splits: tuple[Messages, Messages]) -> Entry:
        """The most probable skill; the score is the log of the summed exponentials (Liu et al. 2020: minus energy)."""
        from scipy.special import logsumexp

        made = []
        for messages in splits:
            logits = _unit(messages).astype(np.float64) @ self.weights[:-1] + self.weights[-1]
            made.append(Scored(skills[logits.argmax(axis=1)], logsumexp(logits, axis=1), messages.skill))
        validation, test = made
        return Entry(name, validation, test)


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
