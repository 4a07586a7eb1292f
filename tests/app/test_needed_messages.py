"""A small run embeds what its users say and nothing else, and comes out the same to the bit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.app import launch
from skg_bench.app.compose import compose
from skg_bench.app.needed_messages import NeededMessages, needed_only
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16
from skg_bench.embedder.hashing import Hashing
from tests.runs import logs_alone

pytestmark = pytest.mark.usefixtures("bare")
ARMS = (
    "arms={skg: [], knn: [router=knn, policy=softmax], all: [curator=everything, reranker=mlp], never: [policy=never]}"
)
SMALL = ("users=5", "weeks=1", "simulator.volume_spread=0.2", "embedder=hashing", "embedder.dimensions=64", ARMS)


@contextmanager
def recording() -> Iterator[list[str]]:
    """Texts that are embedded."""
    texts: list[str] = []
    embed = Hashing.embed

    def recorded(self: Hashing, given: Sequence[str], progress: Callable[[int, int], None] | None = None) -> I16:
        texts.extend(given)
        return embed(self, given, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hashing, "embed", recorded)
        yield texts


def whole(folder: Path) -> None:
    """A run that embeds all messages."""
    with logs_alone(), pytest.MonkeyPatch.context() as patch, recording() as embedded:
        patch.setattr(launch, "needed_only", lambda plan, turns: plan)
        skg_bench.run([*SMALL, "cohort=8", f"out={folder}"])
    assert len(embedded) == 21_480


@pytest.mark.parametrize("workers", [1, 2])
def test_a_small_run_embeds_what_its_users_say_and_no_bit_is_otherwise(
    workers: int, elsewhere: Path, once: Callable[..., Path]
) -> None:
    with recording() as embedded:
        run = skg_bench.run([*SMALL, f"workers={workers}", "cohort=8", "out=said"])
    said = set(run.turns("never", ["message"])["message"].to_pylist())
    assert sorted(embedded) == sorted(said)
    assert 100 < len(said) < 1000
    other = once("all-embedded", whole)
    for log in ("turns", "updates", "feedback", "learning"):
        shards = [file.relative_to(run.path) for file in sorted((run.path / log).iterdir())]
        assert shards
        for shard in shards:
            assert (run.path / shard).read_bytes() == (other / shard).read_bytes()


@pytest.mark.parametrize(
    "override",
    [
        "+arms.pooled=[scope=pool,pool=2]",
        "+arms.donor=[fork=skg@20,book=donor,curator=none]",
        "users=600",
    ],
)
def test_all_messages_are_embedded_where_others_than_the_users_may_say_them(override: str) -> None:
    job = launch.prepare(compose([*SMALL, override]))
    assert needed_only(job.plan, job.turns() // len(job.plan.arms)) is job.plan


def test_a_message_that_nobody_says_has_its_own_vector_when_it_is_written() -> None:
    embedder = Hashing(64, 0)
    only = NeededMessages(embedder, 3, frozenset({"b"}))
    vectors = only.embed(["a", "b", "c"])
    assert vectors[[0, 2]].tolist() == embedder.embed(["a", "c"]).tolist()
    assert only.embed(["b"]).tolist() == embedder.embed(["b"]).tolist()
    assert (only.pure, only.digest) == (embedder.pure, embedder.digest)


@pytest.mark.parametrize(
    ("given", "says"),
    [(None, "a NoneType"), ([[4000]], "a list"), (np.eye(2), r"float64 \(2, 2\)"),
     (np.full((2, 1), np.nan), r"float64 \(2, 1\)"), (np.full((1, 1), 4000, np.int16), r"int16 \(1, 1\)")],
)  # fmt: skip
def test_vectors_that_are_none_are_refused_before_they_are_put_among_others(given: Any, says: str) -> None:
    """They were cast, or ended in a traceback: of fractions it was said that a row has length 0."""

    class Given(Hashing):
        def embed(self, *_: Any) -> Any:
            return given

    with pytest.raises(UsageError, match=rf"the embedder gave {says} for 2 texts; int16 \[2, D\] is valid"):
        NeededMessages(Given(64, 0), 3, frozenset({"b"})).embed(["a", "b", "c"])
