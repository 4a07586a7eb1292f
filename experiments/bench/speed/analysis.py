"""The benchmark table: closed loop, growth with the population, one online decision, comparisons, start-up."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from experiments.bench.speed import advice, asking, documents, embedding, footprint, replay, replaying, spoken
from skg_bench.analysis.statistics.inference import cluster_bootstrap
from skg_bench.app.api import run
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare
from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.decision import Memory, choose_skills
from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.assistant.pipeline.stack import stacked
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.grid import F32, SCALE
from skg_bench.core.texts import Texts
from skg_bench.core.types import BookExamples, Query, Skillbooks, UseHistory
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.engine import execute as engine
from skg_bench.engine.cohort import Setting, cohort_of, run_cohort
from skg_bench.engine.pieces import write_shards
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import Pinned, Rows
from skg_bench.launcher.local import Local
from skg_bench.runfolder.manifest import UNNAMED
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LOGS
from skg_bench.skillbook.terms_of_book import TermsOfBook

Row = tuple[str, str, str, str]
EVEN = ["arms={skg: []}", "reference=skg", "simulator.messages_per_day=14", "simulator.volume_spread=0"]


LEARNERS = {  # what learns more than weights, and turns a second that it must reach
    "reranker=lambdarank": (["reranker=lambdarank", "refit_apart=25"], 2_000),
    "reranker=mlp": (["reranker=mlp", "refit_apart=25"], 5_000),
    "router=probe": (["router=probe"], 5_000),
}
SERVINGS = ("stored", "prompted", "procedure")
WORLDS = {"as the paper captures": [], "every answer captured": ["curator=everything"]}
LEAST = 0.8  # turns a second of procedures, relative to stored answers
ALL_RATED = ["policy=always", "simulator.rated_share=1", "simulator.late_share=0", "refit_every=25"]


def plan(users: int, weeks: int, *more: str) -> Plan:
    """One learning arm; users of equal volume, about 1,830 turns each in 26 weeks."""
    return prepare(compose([*EVEN, f"users={users}", f"weeks={weeks}", *more])).plan


def closed_loop(users: int, weeks: int, workers: int, finite: bool, *more: str) -> tuple[float, float]:
    """Turns a second of a whole run at the default cohort, and the most memory it held, in GiB."""
    count = 0

    def progress(_: int, total: int) -> None:
        nonlocal count
        count = total

    with TemporaryDirectory() as folder, _table(finite), _memory() as most:
        begun = time.perf_counter()
        engine.execute(
            plan(users, weeks, *more), Path(folder), cohort=512, workers=workers, launcher=Local(), progress=progress
        )
        seconds = time.perf_counter() - begun
    return count / seconds, max(most)


@contextmanager
def _memory() -> Iterator[list[float]]:
    """Samples of the memory of this process and its children, GiB; what they share counts once (Linux: PSS)."""
    samples, stop = [0.0], threading.Event()

    def kilobytes(pid: str) -> int:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
        except OSError:  # it has ended meanwhile
            return 0
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))

    def look() -> None:
        while not stop.wait(0.5):
            children = [c for f in Path("/proc/self/task").glob("*/children") for c in f.read_text("utf-8").split()]
            samples.append(sum(map(kilobytes, ["self", *children])) / 2**20)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


@contextmanager
def _table(finite: bool) -> Iterator[None]:
    """Keeps or forgoes the table of all pairs: without it every vector is treated as one never seen before."""
    limit = engine.TABLE_LIMIT
    engine.TABLE_LIMIT = limit if finite else 0
    try:
        yield
    finally:
        engine.TABLE_LIMIT = limit


def loop_cost(users: int, weeks: int, *more: str) -> float:
    """Microseconds a turn in one process, events and vectors given: stepping, learning and writing the logs."""
    job = plan(users, weeks, *more)
    vectors = job.embedder.embed(job.simulator.messages)
    setting = Setting(job.seed, job.simulator, lambda: Rows(vectors), job.weeks)
    setting.labels(components(job.arms[0]).curator.reasons)
    whole = cohort_of(setting, np.arange(users, dtype=np.int32))
    order = np.argsort(-whole.n, kind="stable")
    with TemporaryDirectory() as folder:
        for log in LOGS:
            (Path(folder) / log).mkdir()
        since = time.perf_counter()
        for i in range(0, users, 512):
            cohort = whole.rows(np.sort(order[i : i + 512]))
            logs = run_cohort(setting, job.arms, cohort, 5, lambda _: None)
            write_shards(Path(folder), UNNAMED, logs, cohort.user)
        return (time.perf_counter() - since) / int(whole.n.sum()) * 1e6


def servings(users: int, weeks: int, *more: str, rounds: int = 3) -> dict[str, float]:
    """Turns a second by what a skill is, as `loop_cost` counts them: medians of rounds in which each has its turn."""
    costs: dict[str, list[float]] = {serving: [] for serving in SERVINGS}
    for _ in range(rounds):
        for serving, taken in costs.items():
            taken.append(loop_cost(users, weeks, f"serving={serving}", *more))
    return {serving: 1e6 / median(taken) for serving, taken in costs.items()}


def online(skills: int = 150, each: int = 100, messages: int = 400) -> tuple[float, float]:
    """Median microseconds of a decision at B = 1 and of numpy's float32 MaxSim, in turn over the same messages."""
    n, dimensions = skills * each, 384
    raw = draw(key(0, 0), np.arange(n + messages)[:, None], Purpose.SAMPLE, np.arange(dimensions)[None]) - 0.5
    vectors = quantise(raw)
    example = np.arange(n, dtype=np.int32)[None]
    starts = np.arange(0, n, each)
    blank = np.zeros((1, skills), np.int32)
    then = np.zeros((1, skills), np.int64)
    square = (vectors[:n].reshape(skills, each, -1).sum(axis=1, dtype=np.int64) ** 2).sum(axis=1)[None]
    examples = BookExamples(
        np.array([n], np.int32), example, np.repeat(np.arange(skills, dtype=np.int32), each)[None],
        of_skill=blank + each, square=square, starts=starts,
    )  # fmt: skip
    books = Skillbooks(
        n_skills=np.array([skills], np.int32), active=np.ones((1, skills), bool), name=blank, source=blank, uses=blank,
        ok=blank, partial=blank, miss=blank, born=then, last_used=then, lineage=then,
        content=np.zeros((1, skills), np.uint64), examples=examples,
        history=UseHistory(then, np.zeros((1, skills, 8), np.int16), blank, blank - 1),
    )  # fmt: skip
    arm = plan(1, 1).arms[0]
    scorer = components(arm).reranker.start(1, components(arm).signals.names)
    pinned = Pinned(vectors, example[0])
    stack, memory, event = stacked([arm]), Memory(scorer, (None,), np.zeros(1, np.int32)), np.zeros(1, np.uint64)
    matrix: F32 = vectors[:n].astype(np.float32)
    queries: F32 = vectors.astype(np.float32)
    ones, zero, silent = np.ones(1, np.int32), np.zeros(1, np.int32), vocabulary_of([""] * len(vectors))
    now = np.ones(1, np.int64)

    def ours(i: int) -> None:
        text = np.array([i], np.int32)
        near, words = InBook(pinned, text, books), TermsOfBook(silent, text, books)
        query = Query(1, now, text, ones, now, zero, near, words, None, now, Texts([], [], None).contents)
        choose_skills(stack, query, books, memory, event)

    def numpys(i: int) -> None:
        best = np.maximum.reduceat(matrix @ queries[i], starts) / SCALE**2
        int(best.argmax())

    times: dict[Callable[[int], None], list[float]] = {ours: [], numpys: []}
    for i in range(n, n + messages):
        for call, taken in times.items():
            begun = time.perf_counter()
            call(i)
            taken.append(time.perf_counter() - begun)
    return median(times[ours]) * 1e6, median(times[numpys]) * 1e6


def start_up(*arguments: str, first_line: bool = False, runs: int = 5) -> float:
    """Median seconds of `skg-bench ARGUMENTS`, to its end or to its first line."""
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        command = [sys.executable, "-m", "skg_bench", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:  # noqa: S603
            if process.stdout is not None and first_line:
                process.stdout.readline()
                taken.append(time.perf_counter() - begun)
                process.kill()
            else:
                process.communicate()
                taken.append(time.perf_counter() - begun)
    return median(taken)


def resampling(users: int = 1000, metrics: int = 20) -> float:
    """Seconds of a cluster bootstrap of 10,000 resamples."""
    values = draw(key(0, np.arange(users))[:, None], np.arange(metrics), Purpose.SAMPLE)
    begun = time.perf_counter()
    cluster_bootstrap(values, 0)
    return time.perf_counter() - begun


def comparison(users: int) -> tuple[float, int]:
    """Seconds of `skg-bench compare` of two runs, start-up included, and the turns of each."""
    with TemporaryDirectory() as folder:
        each = [f"{folder}/{threshold}" for threshold in (0.4, 0.5)]
        for out in each:
            threshold = f"policy.threshold={Path(out).name}"
            run([*EVEN, threshold, f"users={users}", "weeks=26", "workers=2", f"out={out}"], progress=False)
        turns = Run(each[0]).turns("skg", ["turn"]).num_rows
        return start_up("compare", *each, runs=3), turns


def rows(quick: bool) -> Iterator[Row]:
    """Figure, measured, mark, ratio to the mark."""
    users = 250 if quick else 1000
    for finite, mark in ((True, 50_000), (False, 20_000)):
        rate, memory = closed_loop(users, 26, 2, finite)
        what = "finite set" if finite else "arbitrary vectors"
        name = f"closed loop, {what}, {users} users x 26 weeks, 2 processes"
        yield name, f"{rate:,.0f} turns/s", f"{mark:,}", f"{rate / mark:.2f}x"
        yield "  largest memory, all processes", f"{memory:.2f} GiB", "4.00", f"{memory / 4:.2f}x"
    users = 100 if quick else 250
    for name, (overrides, mark) in LEARNERS.items():
        for world, more in (("as users rate", []), ("every hit rated, a refit every 25 turns", ALL_RATED)):
            rate, _ = closed_loop(users, 26, 2, True, *overrides, *more)
            yield f"closed loop, {name}, {world}", f"{rate:,.0f} turns/s", f"{mark:,}", f"{rate / mark:.2f}x"
    costs = {n: loop_cost(n, 4) for n in ((1, 100, 1000) if quick else (1, 100, 1000, 10_000))}
    for n, cost in costs.items():
        yield (
            f"loop, {n:,} user{'s' * (n > 1)} x 4 weeks, 1 process",
            f"{cost:.1f} us/turn",
            "",
            f"{cost / costs[100]:.2f}x of 100 users",
        )
    del costs[1]  # what a step costs however few its users are
    spread = max(costs.values()) / min(costs.values())
    yield "  dearest over cheapest, from 100 users on", f"{spread:.2f}", "1.2", f"{spread / 1.2:.2f}x"
    for world, more in WORLDS.items():
        rates = servings(users, 8, *more)
        for serving, rate in rates.items():
            name = f"loop, serving={serving}, {world}, {users} users x 8 weeks, 1 process"
            least = f"{LEAST:.2f}x of stored" if serving == "procedure" else ""
            yield name, f"{rate:,.0f} turns/s", least, f"{rate / rates['stored']:.2f}x of stored"
    ours, numpys = online()
    yield (
        "message to decision, B = 1, 15,000 examples",
        f"{ours:,.0f} us",
        f"{numpys:,.0f} us (numpy)",
        f"{ours / numpys:.2f}x",
    )
    seconds = resampling()
    yield (
        "cluster bootstrap, 10,000 resamples, 1,000 users, 20 metrics",
        f"{seconds:.2f} s",
        "2.00",
        f"{seconds / 2:.2f}x",
    )
    seconds, turns = comparison(280 if quick else 1100)
    yield f"compare two runs of {turns:,} turns", f"{seconds:.2f} s", "10.00", f"{seconds / 10:.2f}x"
    seconds = start_up("--help")
    yield "skg-bench --help", f"{seconds:.2f} s", "0.30", f"{seconds / 0.3:.2f}x"
    with TemporaryDirectory() as folder:
        seconds = start_up("run", "profile=smoke", f"out={folder}/run", first_line=True, runs=3)
    yield "first line of a run", f"{seconds:.2f} s", "2.00", f"{seconds / 2:.2f}x"
    yield from embedding.rows(2 if quick else 4)
    yield from documents.rows()
    yield from replay.rows(20_000 if quick else replay.BATCHES)
    yield from asking.rows(250 if quick else asking.PROMPTS)
    yield from replaying.rows(2_000 if quick else replaying.ASKS)
    yield from spoken.rows(quick)
    yield from advice.rows(500 if quick else 5000)
    yield from footprint.rows(quick)


def analyse(
    quick: Annotated[bool, typer.Option("--quick", help="250 users, no population of 10,000: a minute.")] = False,
) -> Report:
    """Takes a quarter of an hour on two cores; no mark is checked, as absolute figures belong to the machine."""
    table = Table("skg_bench: speed and size", ("figure", "measured", "mark", "ratio"), list(rows(quick)))
    about = (
        f"On {os.cpu_count()} cores; another host, or other work on it, moves the absolute figures by 1.4x either way, "
        "the ratios less. Other tables: [a shared index of a million examples](shared_index.md), "
        "[embedders](embedding.md), [peers](peers.md)."
    )
    return Report(
        [table], page("Speed and size", "skg-bench experiment speed --write reports", about, table.markdown())
    )


EXPERIMENT = Experiment(analyse, one_thread=True)
