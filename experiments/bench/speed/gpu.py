"""Work on a GPU beside the same on the processor: embedding, the listwise net, search in a shared skillbook.

A GPU must give the same: bits of the net, products of a search, and vectors within a unit of the grid.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import Annotated, Literal, cast

import numpy as np
import typer

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, snap
from skg_bench.core.types import TrainingRows
from skg_bench.embedder import packaged
from skg_bench.embedder.sentence_transformer import SentenceTransformer
from skg_bench.reranker.mlp import MLP, MLPScorer
from skg_bench.router.shared.index import build_index

Device = Literal["cpu", "cuda"]
Work = Callable[[], F64]
COMMAND = "make gpu"
DIMENSIONS, FEATURES, PLACES, USERS = 384, 32, 5, 64


def _drawn(rows: int, columns: int = 1) -> F64:
    """Uniforms `[rows, columns]`."""
    return draw(key(0, np.arange(rows))[:, None], 0, Purpose.SAMPLE, np.arange(columns)[None])


def net(device: Device, size: int) -> Work:
    """Fits the nets of `USERS` to `size` rated turns; gives their weights."""
    rated = TrainingRows(
        row=(_drawn(size)[:, 0] * USERS).astype(np.int32),
        features=snap(_drawn(size, PLACES * FEATURES).reshape(size, PLACES, FEATURES)),
        candidates=np.full(size, PLACES, np.int32),
        place=(_drawn(size, 2)[:, 1] * PLACES).astype(np.int32),
        label=np.round(_drawn(size, 3)[:, 2] * 2) / 2,
        event=np.arange(size, dtype=np.uint64),
    )
    made = MLP(units=64, steps=10, rate=0.01, l2=1.0, window=size, seed=0, device=device)
    scorer = cast("MLPScorer", made.start(USERS, [f"f{i}" for i in range(FEATURES)]))

    def fit() -> F64:
        fitted = cast("MLPScorer", made.fit(scorer, np.arange(USERS), rated))
        return np.concatenate([fitted.hidden.ravel(), fitted.out.ravel()])

    return fit


def embedding(device: Device, size: int) -> Work:
    """Embeds `size` texts by the packaged MiniLM; gives their vectors."""
    model = SentenceTransformer(packaged.PACKAGED, None, None, None, None, device, False)
    texts = [f"what became of the parcel number {i}, and when will it be here" for i in range(size)]
    return lambda: model.embed(texts).astype(np.float64)


def search(device: Device, size: int) -> Work:
    """Finds the ten nearest of `size` examples for 100 messages at once; gives their products."""
    vectors = quantise(_drawn(size + 100, DIMENSIONS) - 0.5)
    index = build_index(vectors[:size], np.arange(size, dtype=np.int32), "flat")
    index = index.on_gpu() if device == "cuda" else index
    return lambda: index.search(vectors[size:], 10)[1].astype(np.float64)


WORK: Mapping[str, tuple[Callable[[Device, int], Work], int, float]] = MappingProxyType(
    {  # what, its size, and by how much a result may differ
        "listwise net, 64 users, rated turns": (net, 20_000, 0.0),
        "MiniLM, texts": (embedding, 2_000, 1.0),
        "search for 100 messages, examples": (search, 200_000, 0.0),
    }
)


def timed(work: Work, rounds: int) -> tuple[float, F64]:
    """Median seconds of a piece of work, and what it gives. It is done once before, which makes a device ready."""
    result, seconds = work(), list[float]()
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return median(seconds), result


def compared(name: str, other: Device, rounds: int, share: float) -> tuple[bool, tuple[str, ...]]:
    """Does another device give the same? And the row of the table. `share` of the size is done."""
    make, size, allowed = WORK[name]
    size = max(int(size * share), 1)
    (seconds, mine), (other_seconds, theirs) = (timed(make(device, size), rounds) for device in ("cpu", other))
    most = float(np.abs(mine - theirs).max())
    cells = (
        f"{size:,}",
        f"{1e3 * seconds:,.1f} ms",
        f"{1e3 * other_seconds:,.1f} ms",
        f"{seconds / other_seconds:.1f}x",
        f"{most:g}",
    )
    return most <= allowed, (name, *cells)


def device_name() -> str:
    """Name of the first GPU.

    Raises UsageError where there is none.
    """
    import torch

    if not torch.cuda.is_available():
        raise UsageError("torch finds no GPU here, and this table holds one against the processor")
    return str(torch.cuda.get_device_name(0))


def analyse(
    rounds: Annotated[int, typer.Option(help="Of each piece of work.", min=1)] = 5,
) -> Report:
    """As expected if the GPU gives the same bits, or vectors within a unit of the grid."""
    device = device_name()
    same, rows = zip(*map(partial(compared, other="cuda", rounds=rounds, share=1.0), WORK), strict=True)
    headings = ("work", "size", "processor", "GPU", "times as fast", "largest difference")
    table = Table(device, headings, rows)
    return Report([table], page("The same work on a GPU", COMMAND, table), holds=all(same))


EXPERIMENT = Experiment(analyse)
