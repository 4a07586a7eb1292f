"""Cost of embedding, and what neighbours do to a text's vector."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from unittest import mock

import numpy as np
import typer

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.grid import I16
from skg_bench.embedder import cache, minilm, packaged, sentence_transformer
from skg_bench.embedder.hashing import Hashing
from skg_bench.simulator.answers.corpus import load_corpus

BLOCK = 128  # texts embedded at once, by each way in turn
ALONE = 16  # texts of a block that are embedded one by one, too
LIBRARY, HASHING = "sentence-transformers, encode", "embedder=hashing"
FASTER, LOADED = 2.0, 50.0  # marks: the library's core time over MiniLM's; ms to load 10,000 kept vectors

Embed = Callable[[Sequence[str]], I16]


@dataclass
class Way:
    """One way to embed, and what was seen of it."""

    name: str
    embed: Embed
    seconds: list[float] = field(default_factory=list)  # of each block
    busy: list[float] = field(default_factory=list)  # seconds of all cores, of each block
    vectors: list[I16] = field(default_factory=list)
    moved: int = 0  # texts whose vector is another one alone
    alone: list[float] = field(default_factory=list)  # seconds of one text by itself

    def cosine(self, other: "Way") -> float:
        """The least cosine between the vectors of two ways."""
        first, second = (np.concatenate(way.vectors).astype(np.float64) for way in (self, other))
        return float(((first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)).min())

    def faster(self, other: "Way") -> float:
        """Than another way, block by block: other work on the machine slows both."""
        return median(theirs / ours for ours, theirs in zip(self.seconds, other.seconds, strict=True))

    def cheaper(self, other: "Way") -> float:
        """The same of the time of all cores."""
        return median(theirs / ours for ours, theirs in zip(self.busy, other.busy, strict=True))


def ways() -> list[Way]:
    """The library as it is called by default, on all cores and on one, then this package's embedders uncached."""
    import torch

    packed = sentence_transformer.SentenceTransformer(packaged.PACKAGED, None, None, None, None, "cpu", False)
    library: Any = sentence_transformer._loaded(packed)  # noqa: SLF001

    def encode(texts: Sequence[str], threads: int) -> I16:
        torch.set_num_threads(threads)
        return quantise(library.encode(list(texts), show_progress_bar=False))

    cores = len(os.sched_getaffinity(0))
    return [
        Way(LIBRARY, partial(encode, threads=cores)),
        Way("  the same, one thread", partial(encode, threads=1)),
        Way("embedder=sentence_transformer, one thread", partial(sentence_transformer._embed, packed)),  # noqa: SLF001
        Way("embedder=minilm: ONNX Runtime, fp32", minilm._embed),  # noqa: SLF001
        Way(HASHING, Hashing(384, 0).embed),
    ]


def messages(n: int) -> list[str]:
    """A keyed sample of the built-in corpus."""
    every = load_corpus().messages
    order = np.argsort(draw(key(0, np.arange(len(every))), 0, Purpose.SAMPLE))
    return [every[i] for i in order[:n]]


def measure(blocks: int) -> list[Way]:
    """Each way embeds each block, in turn."""
    compared, texts = ways(), messages(blocks * BLOCK)
    for way in compared:
        way.embed(texts[:2])  # loads
    for first in range(0, len(texts), BLOCK):
        block = texts[first : first + BLOCK]
        for way in compared:
            begun, busy = time.perf_counter(), time.process_time()
            way.vectors.append(way.embed(block))
            way.seconds.append(time.perf_counter() - begun)
            way.busy.append(time.process_time() - busy)
    for way in compared:
        for i, text in enumerate(texts[:ALONE]):
            begun = time.perf_counter()
            vector = way.embed([text])[0]
            way.alone.append(time.perf_counter() - begun)
            way.moved += not np.array_equal(vector, way.vectors[0][i])
    return compared


def loading(n: int = 10_000) -> tuple[float, float]:
    """Milliseconds to find `n` texts of a sentence's length in the cache, and those of the core; median of nine."""
    texts = [f"message number {i} of a person who says quite a lot" for i in range(n)]
    vectors = Hashing(384, 0).embed(texts)
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
        cache.through("timed", texts, lambda some: vectors[[int(text.split()[2]) for text in some]])
        taken = []
        for _ in range(9):
            begun, busy = time.perf_counter(), time.process_time()
            cache.through("timed", texts, _never)
            taken.append((time.perf_counter() - begun, time.process_time() - busy))
    wall, core = (median(column) * 1e3 for column in zip(*taken, strict=True))
    return wall, core


def _never(texts: Sequence[str]) -> I16:
    raise AssertionError(f"{len(texts)} texts were not in the cache")


def rows(blocks: int = 4) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    _, one_thread, _, onnx, _ = measure(blocks)
    yield f"embedder=minilm, blocks of {BLOCK}", f"{BLOCK / median(onnx.seconds):,.0f} texts/s", "", ""
    less = onnx.cheaper(one_thread)
    yield "  core time, sentence-transformers' over its own", f"{less:.2f}", f"{FASTER:.2f}", f"{less / FASTER:.2f}x"
    wall, _ = loading()
    yield "load 10,000 kept vectors", f"{wall:.0f} ms", f"{LOADED:.0f}", f"{wall / LOADED:.2f}x"


COMMAND = "skg-bench experiment speed/embedding --write reports"
HEADINGS = ("embedder", "texts/s", "faster", "core time", "less", "one text", "least cosine", "moved")


def lines(compared: Sequence[Way]) -> Iterator[tuple[str, ...]]:
    """A line of the table for each way."""
    library, one_thread = compared[:2]
    for way in compared:
        yield (
            way.name,
            f"{BLOCK / median(way.seconds):,.0f}",
            f"{way.faster(library):,.1f}x",
            f"{median(way.busy) / BLOCK * 1e3:.2f} ms",
            f"{way.cheaper(one_thread):,.1f}x",
            f"{median(way.alone) * 1e3:.1f} ms",
            "" if way.name == HASHING else f"{way.cosine(library):.6f}",
            f"{way.moved} of {ALONE}",
        )


def markdown(compared: Sequence[Way], took: tuple[float, float]) -> str:
    """The report."""
    note = (
        f"all-MiniLM-L6-v2 on {len(os.sched_getaffinity(0))} cores with {os.getloadavg()[0]:.0f} processes at work: "
        f"{len(compared[0].seconds) * BLOCK:,} messages of the built-in corpus in blocks of {BLOCK}, each way in turn, "
        "no cache. *Faster*: than the library's own `encode` on all cores, median over blocks; other work on the "
        "machine slows threads that wait for one another most, and torch's do. So *core time*: what a text costs all "
        "cores together, and how much *less* that is than the library's on one thread, where nobody waits. *One text*: "
        "by itself. *Least cosine*: to the library's vectors, on the embedding grid. *Moved*: texts whose vector on "
        "the grid is another one if they are embedded alone."
    )
    marks = (
        f"10,000 kept vectors are loaded in {took[0]:.0f} ms, {took[1]:.0f} of them at work (mark {LOADED:.0f}). "
        "Marks: MiniLM for half the core time of sentence-transformers or less, cosine at least 0.9999, no text moved."
    )
    return page("Embedding", COMMAND, note, _table(compared).markdown(), marks)


def _table(compared: Sequence[Way]) -> Table:
    return Table("embedding", HEADINGS, list(lines(compared)))


def analyse(blocks: Annotated[int, typer.Option(help=f"Of {BLOCK} texts each.", min=1)] = 8) -> Report:
    """Needs the extra `embed`; no mark is checked, as absolute figures belong to the machine."""
    compared, took = measure(blocks), loading()
    loaded = f"10,000 kept vectors are loaded in {took[0]:.0f} ms, {took[1]:.0f} at work"
    return Report([_table(compared), loaded], markdown(compared, took))


EXPERIMENT = Experiment(analyse)
