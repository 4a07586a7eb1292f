"""Runs of one configuration under several seeds, read as one run: users of different seeds are different users."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.runfolder.manifest import BESIDE
from skg_bench.runfolder.run import Run, flat
from skg_bench.runfolder.shards import LogName

STRIDE = 10**9  # users of the n-th seed are numbered from n times this on
_Seed = tuple[int, str]  # and the hash of its salt
_LABELLED = 3  # more keys than this are no label


@dataclass(frozen=True)
class SeedRuns:
    """A run, or several that differ in their seed; has what `tally` reads of a run."""

    runs: tuple[Run, ...]
    seed_index: tuple[int, ...]  # of each run's seed among all that are compared

    @property
    def path(self) -> Path:
        return Path(" + ".join(str(run.path) for run in self.runs))

    @property
    def arms(self) -> list[str]:
        return self.runs[0].arms

    @property
    def manifest(self) -> dict[str, Any]:
        return self.runs[0].manifest

    @property
    def config(self) -> dict[str, Any]:
        return self.runs[0].config

    def rows(self) -> Mapping[range, int]:
        """Turns of the first arm by the users who are read together, in order."""
        return {
            range(users.start + seed_index * STRIDE, users.stop + seed_index * STRIDE): rows
            for run, seed_index in zip(self.runs, self.seed_index, strict=True)
            for users, rows in run.rows().items()
        }

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm of all runs, by user and turn; the same holds for the other logs."""
        return self._joined("turns", arm, columns, users)

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self._joined("updates", arm, columns, users)

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self._joined("feedback", arm, columns, users)

    def _joined(self, log: LogName, arm: str, columns: Sequence[str] | None, users: Sequence[int] | None) -> pa.Table:
        parts = [
            (run, k, None if users is None else _of_seed(users, k))
            for run, k in zip(self.runs, self.seed_index, strict=True)
        ]
        tables = []
        for run, seed_index, run_users in [part for part in parts if part[2] is None or part[2]] or parts[:1]:
            table = getattr(run, log)(arm, columns, run_users)
            if seed_index:
                number = pc.add(table["user"].cast(pa.int64()), seed_index * STRIDE)
                table = table.set_column(table.schema.get_field_index("user"), "user", number)
            tables.append(table)
        if len(tables) == 1:
            return tables[0]
        return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().combine_chunks()


def _of_seed(users: Sequence[int], seed_index: int) -> Sequence[int]:
    """Numbers in its run of the `users` who are of a seed."""
    first = seed_index * STRIDE
    if isinstance(users, range):  # as it is: whole shards are read faster
        start, stop = (min(max(end - first, 0), STRIDE) for end in (users.start, users.stop))
        return range(start, stop)
    return [user - first for user in users if user // STRIDE == seed_index]


def by_configuration(runs: Sequence[Run]) -> list[SeedRuns]:
    """Runs gathered by what they are besides their seed, in the order in which they were given.

    Runs that are the same in all, seed included, stay apart.
    """
    seeds = sorted({_seed(run) for run in runs})
    gathered: dict[tuple[str, int], list[Run]] = {}
    seen: dict[tuple[str, _Seed], int] = {}
    for run in runs:
        key, seed = _besides_seed(run), _seed(run)
        again = seen[key, seed] = seen.get((key, seed), -1) + 1
        gathered.setdefault((key, again), []).append(run)
    groups = []
    for members in gathered.values():
        ordered = sorted(members, key=_seed)
        groups.append(SeedRuns(tuple(ordered), tuple(seeds.index(_seed(run)) for run in ordered)))
    return groups


def labels(groups: Sequence[SeedRuns]) -> list[str]:
    """Labels that tell several combined runs apart: the keys of configuration that differ, else the folder.

    >>> labels([SeedRuns((run_with_threshold_4,), (0,)), SeedRuns((run_with_threshold_5,), (0,))])
    ['policy.threshold=0.4', 'policy.threshold=0.5']
    """
    configs = [flat(_counted(combined.config)) for combined in groups]
    keys = sorted({key for config in configs for key in config})
    differ = [key for key in keys if len({json.dumps(config.get(key)) for config in configs}) > 1]
    texts = [" ".join(f"{key}={_word(config.get(key))}" for key in differ) for config in configs]
    scalars = all(not isinstance(config.get(key), list | dict) for key in differ for config in configs)
    if scalars and len(differ) <= _LABELLED and len(set(texts)) == len(texts):
        return texts
    names = [combined.runs[0].path.name for combined in groups]
    return [
        name if names.count(name) == 1 else str(combined.runs[0].path)
        for name, combined in zip(names, groups, strict=True)
    ]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _seed(run: Run) -> _Seed:
    """Runs that differ in one of these had other draws."""
    return int(run.manifest["seed"]), str(run.manifest.get("salt_hash", ""))


def _besides_seed(run: Run) -> str:
    data = {key: value for key, value in (run.manifest.get("data") or {}).items() if key != "salt"}
    whole = [_counted(run.config), run.manifest.get("code"), data, run.arms]
    return json.dumps(whole, sort_keys=True)


def _counted(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in (*BESIDE, "seed", "salt")}
