"""Digests of what arms decided: the dense world under every arm, one stack of ten arms, the gate's panel
for 8 weeks, with users who ask about equally often, on the 120 intents of which the digests are older than the other
180.

`python -m tests.laws.decisions` compares with the committed digests and prints each column that differs, `--write`
writes them. They change only where a commit changes a rule, and then the commit names the columns.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.laws import world
from tests.runs import save

FILE = Path(__file__).with_name("decisions.txt")
USERS, PLACES = 24, 7  # of the dense world
STACK = (
    "skg", "band", "frozen_book", "frozen_all", "sham", "everything", "budget", "without", "softmax", "vcache",
)  # fmt: skip
GATE = (
    "experiment=gate", "profile=gate", "simulator.corpus=builtin_120", "serving=stored", "router=maxsim",
    "curator=skg", "arms={skg: []}", "reference=skg", "weeks=8",
    "simulator.volume_spread=0.1", "simulator.day_spread=0.1",
)  # fmt: skip
WORLDS = ("dense", "stack", "gate")
_TRUTH = frozenset(f.name for f in schema.turns(1) if f.metadata[b"truth"] == b"yes")
_LOGGED = frozenset(f.name for f in schema.REPLAYED_COLUMNS)  # null in these worlds
_GIVEN = frozenset({"user_msg_id", "message", "arm", "seed", "user", "turn", "event", "time"})  # not decided by an arm


def simulated(name: str, out: Path) -> Run:
    """The run of one of `WORLDS`."""
    if name == "dense":
        return world.run(out, USERS, 256, arms=(*world.ALL, *world.FORKS))
    if name == "stack":
        return world.run(out, USERS, 10 * USERS, arms=STACK)
    composed = compose(GATE)
    out.mkdir(parents=True)
    manifest = {"schema": schema.SCHEMA_VERSION, "arms": list(composed.arms), "config": composed.root} | {
        "users": composed.root["users"]
    }
    save(out, manifest)
    plan = prepare(composed).plan
    engine.execute(plan, out, cohort=512, workers=1, launcher=Local(), progress=lambda _done, _total: None)
    return Run(out)


def digests(name: str, run: Run, arms: Iterable[str] | None = None) -> Iterator[tuple[str, str]]:
    """`world arm log column` and eight hex digits of its values, of each column that an arm decides."""
    users = range(USERS if name == "dense" else run_users(run))
    for arm in run.arms if arms is None else arms:
        for log in world.LOGS:
            rows = world.rows(run, log, arm, users)
            rows = longer(rows) if name == "dense" and log == "turns" else rows
            for column in rows.column_names:
                if (log != "learning" or rows.num_rows) and column not in (
                    _TRUTH | _GIVEN | _LOGGED if log == "turns" else {"arm"}
                ):
                    digest = blake2b(world.bits(rows[column]), digest_size=4).hexdigest()
                    yield f"{name} {arm} {log} {column}", digest


def longer(rows: pa.Table) -> pa.Table:
    """Turns with lists as long as in a run whose longest shortlist has that many places."""
    for place, field in enumerate(rows.schema):
        size = getattr(field.type, "list_size", PLACES)
        if size < PLACES:
            lists = rows[field.name].combine_chunks()
            values = np.full((len(lists), PLACES), -1.0 if field.name == "shortlist" else 0.0)
            values[:, :size] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
            kind = pa.list_(field.type.value_field, PLACES)
            flat = pa.array(values.reshape(-1)).cast(kind.value_type)
            rows = rows.set_column(place, field.name, pa.FixedSizeListArray.from_arrays(flat, type=kind))
    return rows


def run_users(run: Run) -> int:
    """Number of users of a run."""
    return int(run.config["users"])


def committed() -> dict[str, str]:
    """`world arm log column` to its digest, as committed."""
    lines = [line.split() for line in FILE.read_text().splitlines()]
    return {f"{line[0]} {column}": digest for line in lines for column, digest in _pairs(line)}


def _pairs(line: list[str]) -> Iterator[tuple[str, str]]:
    for pair in line[3:]:
        column, digest = pair.split("=")
        yield f"{line[1]} {line[2]} {column}", digest


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    """One line for each log of an arm."""
    logs: dict[str, list[str]] = {}
    for name, digest in pairs:
        log, column = name.rsplit(" ", 1)
        logs.setdefault(log, [log]).append(f"{column}={digest}")
    return "".join(" ".join(words) + "\n" for words in logs.values())


def main() -> int:
    """Compare, or write."""
    with tempfile.TemporaryDirectory() as folder:
        now = {k: v for name in WORLDS for k, v in digests(name, simulated(name, Path(folder) / name))}
    if "--write" in sys.argv:
        FILE.write_text(_lines(now.items()))
        return 0
    before = committed()
    differing = [name for name in now.keys() | before.keys() if now.get(name) != before.get(name)]
    sys.stdout.write("\n".join([*sorted(differing), f"{len(differing)} of {len(now)} columns differ\n"]))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
