"""Builds whose effect is known: real users before and after a change, resampled and shifted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from skg_bench.analysis.gate import tail
from skg_bench.analysis.gate.against import Held, Reference, harm, hold
from skg_bench.analysis.gate.judge import Harm
from skg_bench.analysis.gate.panel import Panel, panel, ratios
from skg_bench.analysis.gate.rules import RULES, WORST, Rule, blocking
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.grid import F64, I16, I64, SCALE
from skg_bench.core.types import Embedder
from skg_bench.study.replications import generator

ARM = "gated"
JITTER = 1e-3  # standard deviation of what is added to each coordinate of a unit vector


@dataclass(frozen=True)
class Jittered:
    """Vectors of another embedder, each coordinate moved at random: another machine, another version of a library."""

    inner: Embedder
    seed: int

    @property
    def pure(self) -> bool:
        return self.inner.pure

    @property
    def digest(self) -> str:
        return f"{self.inner.digest}+{JITTER:g}:{self.seed}"

    def embed(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> I16:
        vectors = self.inner.embed(texts, progress)
        moved = np.stack([self._noise(text, vectors.shape[1]) for text in texts])
        return quantise(vectors / SCALE + moved)

    def _noise(self, text: str, size: int) -> F64:
        """Noise that is added to the vector of a text, in whatever order and company it is embedded."""
        key = int.from_bytes(blake2b(text.encode(), digest_size=16, salt=self.seed.to_bytes(16, "little")).digest())
        return np.random.Generator(np.random.Philox(key=key)).normal(0.0, JITTER, size)


def play(out: Path, overrides: tuple[str, ...], jitter: int | None = None) -> Panel:
    """Run the gated arm, with vectors jittered by this seed."""
    job = prepare(compose(["experiment=gate", f"out={out}", *overrides]))
    if jitter is not None:
        job = replace(job, plan=replace(job.plan, embedder=Jittered(job.plan.embedder, jitter)))
    return panel(start(job), ARM)


def groups(before: Panel, after: Panel, size: int) -> Iterator[Held]:
    """The gate's verdict on every full group of `size` users: they are independent, so each group is a fresh panel."""
    for first in range(0, len(before.users) - size + 1, size):
        rows = slice(first, first + size)
        reference = Reference("baseline", _some(before, rows), RULES, "the same users before")
        yield hold(_some(after, rows), [reference])[0]


def _some(whole: Panel, rows: slice) -> Panel:
    ends = np.cumsum(whole.turns)
    turns = slice(int(ends[rows][0] - whole.turns[rows][0]), int(ends[rows][-1]))
    counts = {name: column[rows] for name, column in whole.counts.items()}
    part = replace(whole, users=whole.users[rows], turns=whole.turns[rows], counts=counts)
    return replace(part, hit=whole.hit[turns], wrong=whole.wrong[turns], rated=whole.rated[turns])


MEANS = tuple(rule for rule in blocking(RULES) if rule.role not in ("tail", "lead"))
TAILS = tuple(rule for rule in blocking(RULES) if rule.role == "tail")
MANY = 20_000  # users of whom the true tail of a pool is taken


@dataclass(frozen=True)
class Pool:
    """Users of a change, from whom builds are drawn."""

    name: str
    harm: Mapping[str, F64]  # metric -> [n]; NaN: the user has it not
    trials: Mapping[str, F64]  # metric -> [n]
    halves: F64  # [n, 2] rise of wrong answers per request in even and odd turns
    half_turns: I64  # [n, 2]

    def __len__(self) -> int:
        return len(self.halves)

    @property
    def harmless(self) -> "Pool":
        """The same without the mean of each harm, so that the true effect is 0."""
        harm = {name: values - np.nanmean(values) for name, values in self.harm.items()}
        return replace(self, harm=harm, halves=self.halves - self.halves.mean())


@dataclass(frozen=True)
class Few:
    """Harm that is added to some users alone."""

    share: float  # of the users
    points: float  # more wrong answers per request


def pool(name: str, pairs: list[tuple[Panel, Panel]]) -> Pool:
    """The users of all pairs (before, after) together."""
    harms, trials = {}, {}
    for rule in MEANS:
        each, under = zip(*(_users(before, after, rule) for before, after in pairs), strict=True)
        harms[rule.metric], trials[rule.metric] = np.concatenate(each), np.concatenate(under)
    halves, turns = zip(*(tail.halves(before, after) for before, after in pairs), strict=True)
    return Pool(name, harms, trials, np.concatenate(halves), np.concatenate(turns))


def _users(before: Panel, after: Panel, rule: Rule) -> tuple[F64, F64]:
    under = np.minimum(ratios(before, rule.metric)[2], ratios(after, rule.metric)[2])
    judged, each = harm(before, after, rule), np.full(len(before.users), np.nan)
    each[np.searchsorted(before.users, judged.users)] = judged.each
    return each, under


def build(source: Pool, rows: I64, shift: Mapping[str, float], few: Few | None = None) -> list[Harm]:
    """The harms of a build that these users met, with `shift` added to everybody's harm in some metrics, and `few` to
    that of some users, drawn by their place in `rows`.
    """
    planted = (
        np.where(np.arange(len(rows)) < round(few.share * len(rows)), few.points, 0.0) if few else np.zeros(len(rows))
    )
    harms = []
    for rule in MEANS:
        more = planted * {"utility": 2.0, "utility_late": 2.0, "err_per_request": 1.0}.get(
            rule.metric, 0.0
        )  # utility.wrong is 1
        each = source.harm[rule.metric][rows] + shift.get(rule.metric, 0.0) + more
        kept = np.isfinite(each)
        ids: I64 = np.arange(len(rows))[kept]
        harms.append(Harm(rule, ids, each[kept], int((~kept).sum()), int(source.trials[rule.metric][rows].sum())))
    rise = source.halves[rows] + shift.get("err_per_request", 0.0) + planted[:, None]
    for rule in TAILS:
        trials = tail.trials(rise, source.half_turns[rows], rule)
        harms.append(Harm(rule, np.arange(len(rows)), tail.user_contributions(rise, rule), 0, trials))
    return harms


def planted(source: Pool, rule: Rule, true: float) -> Few:
    """Harm to add to few users, so that the true value of a tail metric is `true`: points for the worst 5 %, or users
    who are harmed by twice what is exceeded.
    """
    rows = np.arange(MANY) % len(source)
    shuffled = source.halves[generator(0, 0).permutation(rows)]  # a pool holds one run after another

    def value(few: Few) -> float:
        more = np.where(np.arange(MANY) < few.share * MANY, few.points, 0.0)
        return float(tail.user_contributions(shuffled + more[:, None], rule).mean())

    option = rule.option or 0.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        few = Few(option, middle) if rule.metric == WORST else Few(middle, 2 * option)
        low, high = (middle, high) if value(few) < true else (low, middle)
    return few
