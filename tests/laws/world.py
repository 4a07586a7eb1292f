"""A small dense world for the laws: every component of `conf/` in some arm, and all kinds of learning within a week.

Runnable (`python -m tests.laws.world OUT USERS COHORT WORKERS [table] [summary] [ARM ...]`), so that a test can change
the environment of a process, or kill it; `summary` writes that of some arms beside it, `table` prints a digest of
similarities.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.analysis import summary
from skg_bench.app.compose import Composed, compose
from skg_bench.app.launch import prepare
from skg_bench.core.launching import Launcher
from skg_bench.engine import execute as engine
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import write_table
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName
from tests.runs import save

LOCAL = Local()
LOGS: tuple[LogName, ...] = ("turns", "updates", "feedback", "learning")
EVEN = 64  # a seed whose first users ask about equally often: a run takes as many steps as its busiest user has turns
FREEZE = 15  # the turn at which frozen arms stop to learn
DENSE = (
    "simulator.corpus=builtin_120", "simulator.messages_per_day=7", "simulator.volume_spread=0.3",
    "simulator.day_spread=0.2",
    "simulator.rated_share=0.6", "simulator.late_share=0.3", "simulator.late_hours=6",
    "simulator.concentration=3", "simulator.accept=0.9", "simulator.accept_one_off=0.5", "curator.unused_days=2",
    "curator.harmful_misses=1", "policy.threshold=0.4", "refit_every=10", "seed=7", "weeks=1",
)  # fmt: skip
ARMS = {
    "skg": [],
    "band": ["curator.capture=band", "curator.band_low=0.3"],
    "answer": ["curator.offer_after=answer", "decline_is_miss=true", "refit_on_capture=false"],
    "frozen_book": ["freeze=book", f"freeze_at={FREEZE}"],
    "frozen_scorer": ["freeze=book+scorer", f"freeze_at={FREEZE}"],
    "frozen_all": ["freeze=all", f"freeze_at={FREEZE}"],
    "sham": ["curator=sham"],
    "everything": ["curator=everything"],
    "budget": ["curator=budget", "curator.capacity=2"],
    "without": ["curator=without", "curator.lineage=0.7"],
    "recaptured": ["curator=without", "curator.skill=1", "curator.recapture=true"],
    "masked": ["router=masked"],
    "prompted": ["serving=prompted"],
    "procedure": ["serving=procedure", "named_by=intent"],
    "procedures": ["serving=procedure", "curator=everything"],
    "epsilon": ["policy=epsilon_threshold", "policy.epsilon=0.3"],
    "identity": ["reranker=identity"],
    "mlp_pool": ["reranker=mlp", "scope=pool+user", "pool=8", "refit_apart=4"],
    "permuted": ["reranker=permuted"],
    "linucb": ["reranker=linucb", "refit_every=1", "signals.similarity=0", "signals.preference=0", "signals.score=1"],
    "deaf": ["curator=none"],
    "never": ["policy=never"],
    "always": ["policy=always"],
    "exact": ["router=exact"],
    "centroid": ["router=centroid"],
    "maxsim_centroid": ["router=maxsim_centroid"],
    "knn": ["router=knn", "policy.threshold=0.2"],
    "bm25": ["router=bm25", "policy.threshold=0.2"],
    "exp4": ["policy=exp4", "policy.rate=1", "policy.threshold=0.4"],
    "vcache": ["policy=vcache", "policy.delta=0.3", "policy.least=1"],
    "hybrid": ["router=hybrid"],
    "probe": ["router=probe", "policy.threshold=0.2"],
    "recipe": ["router=recipe"],
    "frequency": ["router=frequency", "policy=proportional"],
    "random": ["policy=uniform"],
    "model": ["curator=reflecting", "serving=prompted"],
    "obedient": ["curator=reflecting", "curator.llm.script=obedient", "curator.batches=compat-v1", "serving=prompted"],
    "repeat_last": ["router=repeat_last", "policy=matched_random", "policy.rate=0.3"],
    "softmax": ["policy=softmax"],
    "thompson": ["policy=thompson"],
    "oracle": ["router=oracle", "policy=always", "curator=oracle"],
}  # fmt: skip
ALL = tuple(ARMS)
SUMMED = ("skg", "epsilon", "never")  # whose tables tests compare: those of all take ten times as long
MANY, TWO = 750, 500  # users of three shards and of two
LARGE = ("everything",)  # an arm whose shards of 250 users have 3,000 turns and updates each
FORK = 15  # the turn at which arms fork from skg
FORKS = {
    "as_before": [f"fork=skg@{FORK}"],
    "at_once": ["fork=skg@0", "policy=always"],
    "stopped": [f"fork=skg@{FORK}", "curator=none"],
    "daring": [f"fork=skg@{FORK}", "policy=always"],
    "matched": [f"fork=skg@{FORK}", "router=exact"],
    "renewed": [f"fork=skg@{FORK}", "reranker.l2=5"],
    "scored": [f"fork=identity@{FORK}", "router.top_k=7"],
    "asking": [f"fork=skg@{FORK}", "serving=prompted"],
    "noting": [f"fork=skg@{FORK}", "curator=reflecting"],
    "twice": [f"fork=daring@{FORK + 9}", "curator=none"],
    "donor": [f"fork=skg@{FORK}", "book=donor", "curator=none"],
    "hindsight": [f"fork=skg@{FORK}", "book=hindsight", "curator=none"],
    "hindsight_later": [f"fork=skg@{FORK + 9}", "book=hindsight", "curator=none"],
}  # fmt: skip
ARMS |= FORKS
FORKED = ("skg", "identity", "frozen_all", "always", *FORKS, "repeat_last", "oracle")
BLIND = tuple(arm for arm in ALL if arm != "oracle")


@cache
def composed(users: int, arms: tuple[str, ...] = ALL) -> Composed:
    """The dense world with these arms. Those of `ALL` are taken from all, which are composed once, as that takes a
    second and more; a process that runs a few composes these alone.
    """
    reference = "never" if "never" in arms else arms[0]
    if set(arms) <= set(ALL) and (users, arms) != (1, ALL) and __name__ != "__main__":
        every = composed(1)
        root = {**every.root, "users": users, "arms": {arm: ARMS[arm] for arm in arms}, "reference": reference}
        return replace(every, root=root, arms={arm: every.arms[arm] for arm in arms})
    table = ", ".join(f"{name}: [{', '.join(ARMS.get(name, []))}]" for name in arms)
    return compose([*DENSE, f"users={users}", f"arms={{{table}}}", f"reference={reference}"])


def plan(users: int, arms: tuple[str, ...] = ALL) -> Plan:
    """Its components."""
    return prepare(composed(users, arms)).plan


def run(out: Path, users: int, cohort: int, workers: int = 1, arms: tuple[str, ...] = ALL) -> Run:
    """Simulate, or go on."""
    return carry_out(plan(users, arms), out, users, cohort, workers)


def carry_out(made: Plan, out: Path, users: int, cohort: int, workers: int = 1, launcher: Launcher = LOCAL) -> Run:
    """Simulate a plan, or go on."""
    manifest(out, users, tuple(arm.name for arm in made.arms))
    engine.execute(made, out, cohort=cohort, workers=workers, launcher=launcher, progress=lambda _done, _total: None)
    return Run(out)


def manifest(out: Path, users: int, arms: tuple[str, ...] = ALL) -> None:
    """Write what `Run` and the analysis want to know of a run."""
    root, arm_configs = composed(users, arms).root, composed(users, arms).arms
    out.mkdir(parents=True, exist_ok=True)
    known = {"schema": schema.SCHEMA_VERSION, "arms": list(arms), "config": root, "compositions": arm_configs}
    known |= {key: root[key] for key in ("question", "seed", "users", "weeks")}
    save(out, known)


def similarities() -> str:
    """SHA-256 of the table of all pairs of some messages: that of all takes as long as a run of all arms."""
    made = plan(1, ("skg",))
    with TemporaryDirectory() as folder:
        table = Path(folder, "table")
        write_table(made.embedder.embed(made.simulator.messages[:1500]), table)
        return sha256(table.read_bytes()).hexdigest()


def summed(ran: Run, out: Path, users: int, arms: tuple[str, ...] = SUMMED) -> Run:
    """A folder that has the logs of a run, with those of its arms whose tables tests look at."""
    manifest(out, users, arms)
    for log in LOGS:
        copytree(ran.path / log, out / log, copy_function=os.link)
    return Run(out)


def rows(source: Run, log: LogName, arm: str, users: Sequence[int]) -> pa.Table:
    """All rows of these users, with words in place of dictionary codes."""
    table = getattr(source, log)(arm, users=users)
    plain = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(plain)).combine_chunks()


def differences(base: Run, other: Run, users: Sequence[int], arms: Sequence[str] | None = None) -> list[str]:
    """Where the rows of these users differ, column by column; bits count, so NaN equals NaN, and 0 is not -0."""
    lines = []
    for arm in base.arms if arms is None else arms:
        for log in LOGS:
            a, b = rows(base, log, arm, users), rows(other, log, arm, users)
            if a.num_rows != b.num_rows:
                lines.append(f"{arm} {log}: {a.num_rows} rows and {b.num_rows}")
            else:
                lines += [f"{arm} {log} {column}" for column in unlike(a, b)]
    return lines


def shards(one: Run) -> dict[str, str]:
    """SHA-256 of every whole shard of a run of production size: 3,000 turns and updates in each, so that its
    dictionaries are whole, with a name that two skills share.
    """
    names = plan(MANY, LARGE).simulator.names
    assert len(set(names)) < len(names) < 3000
    files = {str(file.relative_to(one.path)): file for file in sorted(one.path.glob("*/*.parquet"))}
    large = [file for name, file in files.items() if name.startswith(("turns", "updates"))]
    assert all(pq.read_metadata(file).num_rows >= 3000 for file in large)
    return {name: sha256(file.read_bytes()).hexdigest() for name, file in files.items()}


def unlike(a: pa.Table, b: pa.Table) -> list[str]:
    """Columns of two tables that differ to the bit. Most tables do not differ, which one look at all columns shows."""
    names = a.column_names
    if _stream([a[c] for c in names]) == _stream([b[c] for c in names]):
        return []
    return [c for c in names if bits(a[c]) != bits(b[c])]


def bits(column: pa.ChunkedArray) -> bytes:
    """A column as bytes: two columns are the same to the bit if these are equal."""
    whole: bytes = _stream([column]).to_pybytes()
    return whole


def _stream(columns: Sequence[pa.ChunkedArray]) -> pa.Buffer:
    sink, every = pa.BufferOutputStream(), pa.array(np.arange(len(columns[0])))
    values = [column.combine_chunks().take(every) for column in columns]  # nothing is left under a null
    table = pa.table(values, ["column"] * len(columns))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


if __name__ == "__main__":
    users, cohort, workers = map(int, sys.argv[2:5])
    ran = run(Path(sys.argv[1]), users, cohort, workers, tuple(a for a in ALL if a in sys.argv[5:]) or ALL)
    if "summary" in sys.argv:
        summary.write_summary(summed(ran, ran.path.with_name("summed"), users))
    if "table" in sys.argv:
        sys.stdout.write(similarities())
