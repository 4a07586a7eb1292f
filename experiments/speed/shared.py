"""Search in a shared skillbook: FAISS against reading every example: `python -m experiments.speed.shared`."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from skg_bench.core.draws import Purpose, fold, key
from skg_bench.core.grid import F32, I16, I32, quantise
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.router.shared.index import Index, Kind, build
from skg_bench.simulator.corpus import load

NEIGHBOURS = 10
MESSAGES = 300
NOISE = 0.6  # length of what is added to a message's unit vector: two copies have a cosine of about 0.73
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Search:
    """An index, or none, over E examples, one message at a time on one thread."""

    name: str
    seconds: float  # median of a search
    recall: float  # the nearest example is found
    recall_10: float  # share of the ten nearest that are found
    build: float  # seconds


def examples(n: int, seed: int = 0) -> I16:
    """`[n, 384]`: the built-in corpus' messages over and over, each time with other noise.

    Wordings lie in clusters in reality, too; vectors without any structure would be the worst case of every index.
    """
    own = Precomputed(None).embed(load().messages).astype(np.float32)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    made = np.empty((n, own.shape[1]), np.int16)
    for first in range(0, n, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, n))
        noise: F32 = _normal(seed, rows, own.shape[1])
        noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
        made[rows] = quantise(own[rows % len(own)] + noise)
    return made


def _normal(seed: int, rows: np.ndarray, width: int) -> F32:
    """About normal: sums of four uniforms, from one keyed draw each row and column."""
    base = fold(key(seed, rows), int(Purpose.SAMPLE))[:, None]
    parts = fold(base, np.arange(width)[None])
    four = parts.view(np.uint16).reshape(len(rows), width, 4)
    about: F32 = four.sum(axis=2, dtype=np.float32) - np.float32(2 * 65535)
    return about


def searches(n: int, *, seed: int = 0) -> Iterator[Search]:
    """numpy, and FAISS flat, IVF and HNSW, over `n` examples; the approximate ones as wide as recall 0.95 asks for."""
    import faiss

    vectors = examples(n, seed)
    asked = examples(MESSAGES * 40, seed + 1)[::40]
    nearest, seconds = _numpys(vectors.astype(np.float32), asked)
    yield Search("numpy, every example", seconds, 1.0, 1.0, 0.0)
    kinds: tuple[Kind, ...] = ("flat", "ivf", "hnsw")
    for kind in kinds:
        faiss.omp_set_num_threads(os.cpu_count() or 1)
        begun = time.perf_counter()
        index = build(vectors, np.arange(n, dtype=np.int32), kind)
        took = time.perf_counter() - begun
        faiss.omp_set_num_threads(1)
        name = _widened(index, asked, nearest)
        yield Search(name, _median(partial(index.search, k=NEIGHBOURS), asked), *_recall(index, asked, nearest), took)


def _numpys(wide: F32, asked: I16) -> tuple[I32, float]:
    """The ten nearest examples of each message `[n, 10]`, and seconds to find the nearest by a product over all."""

    def nearest(message: I16) -> object:
        return (wide @ message[0].astype(np.float32)).argmax()

    return _nearest(wide, asked), _median(nearest, asked)


def _widened(index: Index, asked: I16, nearest: I32) -> str:
    """Let the index look at ever more until it finds 95 % of the ten nearest; what it then looks at."""
    name = "FAISS flat"
    for much in (1, 2, 4, 8, 16, 32, 64, 128, 256) if index.kind != "flat" else ():
        if index.kind == "ivf":
            index.found.nprobe = much
            name = f"FAISS IVF, {index.found.nlist:,} lists, {much} probes"
        else:
            index.found.hnsw.efSearch = 8 * much
            name = f"FAISS HNSW, 32 links, effort {8 * much}"
        if _recall(index, asked, nearest)[1] >= 0.95:
            return name
    return name


def _nearest(wide: F32, asked: I16) -> I32:
    """The ten nearest examples of each message, exactly."""
    found = []
    for first in range(0, len(asked), 25):
        dots = asked[first : first + 25].astype(np.float32) @ wide.T
        found.append(np.argpartition(-dots, NEIGHBOURS, axis=1)[:, : NEIGHBOURS + 1])
        found[-1] = np.take_along_axis(found[-1], np.argsort(-np.take_along_axis(dots, found[-1], 1), axis=1), 1)
    return np.concatenate(found)[:, :NEIGHBOURS].astype(np.int32)


def _recall(index: Index, asked: I16, nearest: I32) -> tuple[float, float]:
    found, _ = index.search(asked, NEIGHBOURS)
    first = float(np.mean((found == nearest[:, :1]).any(axis=1)))
    return first, float(np.mean((found[:, :, None] == nearest[:, None, :]).any(axis=1)))


def _median(call: Callable[[I16], object], asked: I16) -> float:
    taken = []
    for i in range(len(asked)):
        begun = time.perf_counter()
        call(asked[i : i + 1])
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.speed.shared", description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000_000)
    n = parser.parse_args().examples
    table = Table("search, one message, one thread", "median", "faster", "recall", "recall of ten", "built in")
    table.title = f"{n:,} examples"
    exact = None
    for one in searches(n):
        exact = exact or one.seconds
        table.add_row(one.name, f"{one.seconds * 1e3:.3f} ms", f"{exact / one.seconds:,.1f}x", f"{one.recall:.3f}",
                      f"{one.recall_10:.3f}", f"{one.build:,.0f} s")  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    # one BLAS thread for numpy's product, as for the searches: set before the first one
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ.update(OPENBLAS_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, "-m", "experiments.speed.shared", *sys.argv[1:]])  # noqa: S606
    main()
