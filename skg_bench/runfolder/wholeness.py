"""Faults of a run folder: what is missing, or not as it was written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

from skg_bench.core.errors import UsageError
from skg_bench.runfolder import shards
from skg_bench.runfolder.manifest import TABLES, accepted
from skg_bench.runfolder.run import Run

Place = tuple[str, int]  # arm, and number of a shard
_NEVER: Mapping[str, Sequence[str]] = MappingProxyType({})  # the run has not ended yet


def faults(run: Run, *, tables: bool = True) -> Iterator[str]:
    """A line for each file of a run that is missing, torn or changed; of an unfinished run those that are there.

    All bytes are read once in a process, at 1 to 2 GB a second. `tables`: those and the page are looked at too.
    """
    places = [(arm, number) for arm in run.arms for number in run.numbers(arm)]
    yield from lost_shards(run, places, run.manifest.get("shards", {}))
    if tables:
        yield from lost_tables(run)


def lost_tables(run: Run) -> Iterator[str]:
    """A line for each table, page or trained model of a finished run that is missing or changed."""
    pools = [name for name in run.manifest.get("files", {}) if name.startswith("pool/")]
    for name in (*TABLES, *pools) if run.finished else ():
        try:
            if not (run.path / name).exists():
                yield f"{run.path / name} is missing; {shards.AGAIN}"
            elif not accepted(run.path, name, run.manifest.get("files", {})):
                yield f"{run.path / name} is not as it was written; {shards.AGAIN}"
        except UsageError as error:
            yield f"{error}; {shards.AGAIN}"


def lost_shards(run: Run, places: Iterable[Place], ended: Mapping[str, Sequence[str]] = _NEVER) -> Iterator[str]:
    """A line for each shard in one of these places that is missing, torn, changed, or of another run.

    `ended`: digests that the shards of an arm had when the run ended, and must have.
    """

    def fault(place: Place) -> str:
        arm, number = place
        digests = ended.get(arm, ())
        return shards.fault(run.path, run.key, arm, number, digests[number] if number < len(digests) else None)

    with ThreadPoolExecutor() as threads:
        yield from filter(None, threads.map(fault, places))
