"""Builds whose effect is known: real users before and after a change, resampled and shifted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from skg_bench.analysis.gate.against import Held, hold
from skg_bench.analysis.gate.baseline import MARGINS
from skg_bench.analysis.gate.judge import Harm
from skg_bench.analysis.gate.panel import Panel, panel, ratios
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.core.grid import F64, I16, I64, SCALE, quantise
from skg_bench.core.types import Embedder

ARM = "skg"
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
        """What is added to the vector of a text, in whatever order and company it is embedded."""
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
        yield hold(_some(after, rows), _some(before, rows), MARGINS, "baseline", "the same users before")


def _some(whole: Panel, rows: slice) -> Panel:
    ends = np.cumsum(whole.turns)
    turns = slice(int(ends[rows][0] - whole.turns[rows][0]), int(ends[rows][-1]))
    counts = {name: column[rows] for name, column in whole.counts.items()}
    hit, wrong = whole.hit[turns], whole.wrong[turns]
    return replace(whole, users=whole.users[rows], turns=whole.turns[rows], counts=counts, hit=hit, wrong=wrong)


@dataclass(frozen=True)
class Pool:
    """Users of a change, from whom builds are drawn."""

    name: str
    harm: Mapping[str, F64]  # metric -> [n] minus its mean, so that the true effect is 0; NaN: the user has it not
    trials: Mapping[str, F64]  # metric -> [n]

    def __len__(self) -> int:
        return len(next(iter(self.harm.values())))


def pool(name: str, pairs: list[tuple[Panel, Panel]]) -> Pool:
    """The users of all pairs (before, after) together."""
    harm, trials = {}, {}
    for metric in MARGINS:
        each, under = zip(*(_users(before, after, metric) for before, after in pairs), strict=True)
        values = np.concatenate(each)
        harm[metric], trials[metric] = values - np.nanmean(values), np.concatenate(under)
    return Pool(name, harm, trials)


def _users(before: Panel, after: Panel, name: str) -> tuple[F64, F64]:
    held = hold(after, before, {name: MARGINS[name]}, "baseline", "before")
    under = np.minimum(ratios(before, name)[2], ratios(after, name)[2])
    each = np.full(len(before.users), np.nan if held.harms else 0.0)
    for harm in held.harms:
        each[np.searchsorted(before.users, harm.users)] = harm.each
    return each, under


def build(source: Pool, rows: I64, shift: Mapping[str, float]) -> list[Harm]:
    """The harms of a build that these users met, with `shift` added to everybody's harm in some metrics."""
    harms = []
    for name, margin in MARGINS.items():
        each = source.harm[name][rows] + shift.get(name, 0.0)
        kept = np.isfinite(each)
        ids: I64 = np.arange(len(rows))[kept]
        harms.append(Harm(name, margin, ids, each[kept], int((~kept).sum()), int(source.trials[name][rows].sum())))
    return harms
