"""semantic-router and GPTCache beside ours, on the same vectors: `make peers`.

Speed: one message in one process, all routers in turn. Quality: labelled corpora. Closed loop: each of them with
captures of its own, on the same users and random draws.
"""

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Any

import numpy as np
import typer

from experiments.bench.speed.analysis import plan
from experiments.bench.speed.peer_routers import (
    MISSING,
    Encoder,
    GPTCache,
    SemanticRouter,
    cached,
    gptcache,
    semantic_router,
)
from experiments.controls.analysis import rows as controls
from experiments.routing_quality.analysis import Line, table
from experiments.routing_quality.baselines import Entry, baselines
from experiments.routing_quality.corpora import Corpus, builtin, clinc150, read
from experiments.routing_quality.measure import FIGURES, Scored, interval
from experiments.routing_quality.recipe import SHARE, Messages
from skg_bench.analysis.counts.measure import Difference
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.wording import interval as span
from skg_bench.analysis.counts.wording import number
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare, start
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.assistant.pipeline.decision import Memory, choose_skills
from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.assistant.pipeline.stack import stacked
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32, I32, SCALE
from skg_bench.core.texts import Texts
from skg_bench.core.types import Query, Router
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.vectors import Pinned
from skg_bench.router.shared.index import build_index
from skg_bench.router.shared.one_book import shared_book
from skg_bench.router.shared.route import SharedMaxSim
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.terms_of_book import TermsOfBook

MARK = 10.0  # times as fast as either peer
OWN = "skg_bench, the exact router of shared skillbooks (FAISS, a byte a coordinate)"
LOOP = Path("runs/peers/loop")
DISK = Path("runs/peers/stores")
# GPTCache writes to its database at every hit: where quality is measured, no disk has to slow it down
STORES = Path("/dev/shm/skg_bench_peers") if Path("/dev/shm").is_dir() else DISK  # noqa: S108
TIMED, BLOCK = 400, 10  # messages, and how many of them in a row; the first of a block warms up
TESTED = 1_500  # messages at most, of the test and of validation each: a get takes milliseconds
SPEED = (
    "CLINC150: 15,000 examples of 150 skills, vectors given; one message at a time on one thread, in one process, "
    "all on the same ten messages in turn."
)
QUALITY = (
    f"Thresholds that are not a default are the best on validation at a stated out-of-scope share of {SHARE:.0%}. In "
    "percent, 95 % intervals by bootstrap over messages."
)
CLOSED = (
    "The same requests and random draws for all; each arm captures for itself. `skg` asks before it captures; "
    "all others but "
    "`semantic_router_asks` keep every answer of the LLM. Peers decide with their defaults (semantic-router at 0.5); "
    "`maxsim_60` is GPTCache's rule in our words."
)
HEADINGS = {  # metrics of experiments/controls, which shows the same
    "utility": "utility",
    "hit_rate": "hit rate",
    "err_per_request_hits": "wrong hits per request",
    "new_skills_per_week": "new skills a week",
    "skills": "skills",
}
ARMS = {  # in the closed loop; the routers of the peers replace the one that is named here
    "skg": "[]",
    "never": "[policy=never, curator=none]",
    # a cache: similarity alone decides, and every answer is kept
    "skg_everything": "[curator=everything, reranker=identity, signals.preference=0]",
    "maxsim_60": "[curator=everything, reranker=identity, signals.preference=0, policy.threshold=0.6]",
    "semantic_router": "[curator=everything, reranker=identity, signals.preference=0]",
    "semantic_router_asks": "[reranker=identity, signals.preference=0]",
    "gptcache": "[curator=everything, reranker=identity, signals.preference=0, policy=always]",
}


@dataclass(frozen=True)
class Timed:
    """One message to a skill or none, timed in turn with the others."""

    name: str
    seconds: float  # median
    least: float  # the fastest tenth take no longer


# ------------------------------------------------------------------------------------------------------- speed


def speed(corpus: Corpus) -> list[Timed]:
    """Ours, and the peers', over a corpus' examples on one thread; first ours."""
    known = corpus.train.rows(np.argsort(corpus.train.skill, kind="stable"))
    known = known.rows(known.skill >= 0)
    queries = corpus.test.rows(np.arange(len(corpus.test.skill)) % max(1, len(corpus.test.skill) // TIMED) == 0)
    n, vectors = len(known.skill), np.concatenate([known.vectors, queries.vectors])
    example = np.arange(n, dtype=np.int32)
    unit: F32 = vectors.astype(np.float32) / np.float32(SCALE)
    cache = _filled(unit, known.skill, DISK)
    arrays, lists = (semantic_router(Encoder(unit, lists), example, known.skill, "max") for lists in (False, True))
    calls: dict[str, Callable[[int], object]] = {
        **_ours(vectors, example, known.skill),
        "semantic-router, a call, vectors as float32 arrays": lambda i: arrays(str(i)),
        "semantic-router, a call, vectors as lists (its own type)": lambda i: lists(str(i)),
        "GPTCache, a get (SQLite and FAISS)": lambda i: cached(cache, i),
    }
    return in_turn(calls, range(n, n + len(queries.skill)))


def _filled(unit: F32, skill: I32, folder: Path) -> Any:
    """GPTCache with the skills `[E]` of the first texts as answers."""
    rmtree(folder, ignore_errors=True)
    cache = gptcache(Encoder(unit), folder)
    cache.import_data([str(i) for i in range(len(skill))], [str(s) for s in skill.tolist()])
    return cache


def in_turn(calls: dict[str, Callable[[int], object]], items: Sequence[int]) -> list[Timed]:
    """Seconds of each call, all of them on one block of items after the other; the first item of a block warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for first in range(0, len(items), BLOCK):
        for name, call in calls.items():
            for nth, item in enumerate(items[first : first + BLOCK]):
                begun = time.perf_counter()
                call(item)
                if nth:
                    times[name].append(time.perf_counter() - begun)
    return [Timed(name, float(np.median(taken)), float(np.quantile(taken, 0.1))) for name, taken in times.items()]


def _ours(vectors: np.ndarray, example: I32, skill: I32) -> dict[str, Callable[[int], object]]:
    """Ours at B = 1: the router, a whole decision (features, score and policy too), and the router of shared books."""
    books, arm = shared_book(vectors, example, skill, 1), plan(1, 1).arms[0]
    scorer = components(arm).reranker.start(1, components(arm).signals.names)
    pinned, silent = Pinned(vectors, example), vocabulary_of([""] * len(vectors))
    stack, memory, event = stacked([arm]), Memory(scorer, (None,), np.zeros(1, np.int32)), np.zeros(1, np.uint64)
    ones, zero, now = np.ones(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int64)
    exact = SharedMaxSim(build_index(vectors[: len(skill)], skill, "flat"), vectors, 5)
    indexed = SharedMaxSim(build_index(vectors[: len(skill)], skill, "hnsw"), vectors, 5, 10)

    def query(i: int) -> Query:
        text = np.array([i], np.int32)
        near, words = InBook(pinned, text, books), TermsOfBook(silent, text, books)
        return Query(1, now, text, ones, now, zero, near, words, None, now, Texts([], [], None).contents)

    return {
        OWN: lambda i: exact.route(query(i), books),
        "skg_bench, router=maxsim: the same skills, by a product with every example": lambda i: components(
            arm
        ).router.route(query(i), books),
        "skg_bench, message to decision: router, features, score, policy": lambda i: choose_skills(
            stack, query(i), books, memory, event
        ),
        "skg_bench, the approximate router of shared skillbooks (FAISS HNSW)": lambda i: indexed.route(query(i), books),
    }


def speed_section(timed: Sequence[Timed]) -> str:
    """The table; ours is the first."""
    ours = timed[0]
    peers = [router for router in timed if not router.name.startswith("skg_bench")]
    missed = [router for router in peers if router.seconds < MARK * ours.seconds]
    headings = ("one message", "median", "times the first", "fastest tenth", "times the first")
    rows = [
        (router.name, f"{router.seconds * 1e3:.2f} ms", f"{router.seconds / ours.seconds:,.1f}x",
         f"{router.least * 1e3:.2f} ms", f"{router.least / ours.least:,.1f}x")
        for router in timed
    ]  # fmt: skip
    verdict = f"**Missed** against: {'; '.join(router.name for router in missed)}." if missed else "Reached."
    mark = f"Mark: the first line {MARK:.0f} times as fast as each peer. {verdict}"
    return "\n\n".join(["## Speed", SPEED, Table("", headings, rows).markdown(), mark]) + "\n"


# ----------------------------------------------------------------------------------------------------- quality


def thinned(corpus: Corpus) -> Corpus:
    """The corpus with every so many-th message of validation and test."""

    def some(messages: Messages) -> Messages:
        return messages.rows(np.arange(0, len(messages.skill), -(-len(messages.skill) // TESTED)))

    return replace(corpus, validation=some(corpus.validation), test=some(corpus.test))


def entries(corpus: Corpus) -> Iterator[Entry]:
    """The first of our baselines, and the peers, on a corpus' validation and test messages."""
    yield from islice(baselines(corpus), 4)  # MaxSim at 0.5 and at the best threshold, centroid, both
    known = corpus.train.rows(corpus.train.skill >= 0)
    n, parts = len(known.skill), (corpus.validation, corpus.test)
    unit: F32 = np.concatenate([known.vectors, *(p.vectors for p in parts)]).astype(np.float32) / np.float32(SCALE)
    first = (n, n + len(corpus.validation.skill))
    example = np.arange(n, dtype=np.int32)

    mean = semantic_router(Encoder(unit), example, known.skill, "mean")
    validation, test = (_chosen(mean, f, part) for f, part in zip(first, parts, strict=True))
    yield Entry("semantic-router, mean (its default), 0.5", validation, test, 0.5)

    best = semantic_router(Encoder(unit), example, known.skill, "max")
    validation, test = (_chosen(best, f, part) for f, part in zip(first, parts, strict=True))
    texts = [str(first[0] + i) for i in range(len(parts[0].skill))]
    best.fit(texts, [None if s < 0 else str(s) for s in parts[0].skill.tolist()])
    sure, surely = (replace(s, score=np.asarray(best.calibrator(s.score), np.float64)) for s in (validation, test))
    yield Entry("semantic-router, max, Platt on validation, 0.5", sure, surely, 0.5)
    yield Entry("semantic-router, max, best threshold on validation", validation, test)

    cache = _filled(unit, known.skill, STORES)
    for f, part in zip(first, parts, strict=True):
        _threshold_is_theirs(cache, f, min(50, len(part.skill)))
    validation, test = (_answered(cache, f, part) for f, part in zip(first, parts, strict=True))
    yield Entry("GPTCache, its defaults (0.8 of its score)", validation, test, 0.8)
    yield Entry("GPTCache, best threshold on validation", validation, test)


def _chosen(router: Any, first: int, messages: Messages) -> Scored:
    """Answer that semantic-router would give, and its score, whatever its threshold."""
    choices = [router(str(first + i), threshold=-np.inf) for i in range(len(messages.skill))]
    skill = np.array([int(c.name) for c in choices], np.int32)
    return Scored(skill, np.array([c.confidence for c in choices], np.float64), messages.skill)


def _answered(cache: Any, first: int, messages: Messages) -> Scored:
    """Answer that GPTCache would give, and its score, whatever its threshold."""
    answers = [cached(cache, first + i, 0.0) for i in range(len(messages.skill))]
    skill = np.array([s for s, _ in answers], np.int32)
    return Scored(skill, np.array([score for _, score in answers], np.float64), messages.skill)


def _threshold_is_theirs(cache: Any, first: int, n: int) -> None:
    """A default get answers exactly what scores 0.8 or more."""
    for i in range(first, first + n):
        any_skill, score = cached(cache, i, 0.0)
        if cached(cache, i)[0] != (any_skill if score >= 0.8 else -1):
            raise AssertionError(f"GPTCache answers message {i} by another rule than its score {score}")


def quality_section(corpus: Corpus, lines: Sequence[Line]) -> str:
    """A table of one corpus."""
    test = corpus.test.skill
    head = ("router", "threshold", *FIGURES)
    what = (
        f"{len(corpus.skills)} skills, {(corpus.train.skill >= 0).sum():,} examples, {(test >= 0).sum():,} messages in "
        f"scope and {(test < 0).sum():,} out of it to test."
    )
    rows = []
    for line in lines:
        spans = [interval(line.resampled[:, i]) for i in range(len(FIGURES))]
        cells = [f"{v:.1f} ({low:.1f}-{high:.1f})" for v, (low, high) in zip(line.values, spans, strict=True)]
        rows.append((line.name, f"{line.threshold:.3f}", *cells))
    text = Table("", head, rows).markdown()
    return "\n\n".join([f"## Quality: {corpus.name}", f"{what} {QUALITY}", text]) + "\n"


# ------------------------------------------------------------------------------------------------- closed loop


def closed_loop(users: int, weeks: int) -> Run:
    """A run in which the peers decide and what they decide is learned from."""
    rmtree(LOOP, ignore_errors=True)
    arms = ", ".join(f"{name}: {overrides}" for name, overrides in ARMS.items())
    arguments = [f"arms={{{arms}}}", "reference=skg", f"users={users}", f"weeks={weeks}", f"out={LOOP}", "workers=1"]
    job = prepare(compose([*arguments, "question=What would the peers do in the place of the router?"]))
    grid = job.plan.embedder.embed(Relabelled(job.plan.simulator, job.plan.seed).messages)  # by the text ids of the run
    whole, unit = grid.astype(np.float64), grid.astype(np.float32) / np.float32(SCALE)
    rmtree(STORES, ignore_errors=True)
    routers: dict[str, Router] = {
        "semantic_router": SemanticRouter(whole, 5, "mean"),
        "semantic_router_asks": SemanticRouter(whole, 5, "mean"),
        "gptcache": GPTCache(unit, STORES, 5),
    }
    made = tuple(with_components(arm, router=routers.get(arm.name, components(arm).router)) for arm in job.plan.arms)
    return start(replace(job, plan=replace(job.plan, arms=made)))


def loop_section(run: Run) -> str:
    """Worth of each arm beside skg."""
    shown = metrics(Utility.of(run.config))
    head = ("arm", *HEADINGS.values(), "utility - skg", "new requests")
    rows = [
        (row.arm, *(number(row.means[m].mean, shown[m].unit) for m in HEADINGS), *_against(row.against))
        for row in controls(run)
    ]
    about = f"{run.config['users']} simulated users, {run.config['weeks']} weeks. {CLOSED}"
    return "\n\n".join(["## In the closed loop", about, Table("", head, rows).markdown()]) + "\n"


def _against(difference: Difference | None) -> tuple[str, str]:
    if difference is None:
        return "", ""
    e = difference.estimate
    return number(e.mean, "utility", signed=True), span(*e.interval(new=True), "utility", signed=True)


def sections(users: int, weeks: int) -> dict[str, Callable[[], str]]:
    """The parts of the page by name, each to be made when it is called."""
    return {
        "speed": lambda: speed_section(speed(read(clinc150()))),
        "clinc150": lambda: _quality(read(clinc150())),
        "built-in": lambda: _quality(builtin()),
        "loop": lambda: loop_section(closed_loop(users, weeks)),
    }


def _quality(corpus: Corpus) -> str:
    few = thinned(corpus)
    return quality_section(few, table(list(entries(few)), SHARE))


def analyse(
    users: Annotated[int, typer.Option(help="Of the closed loop.", min=1)] = 10,
    weeks: Annotated[int, typer.Option(help="Of the closed loop.", min=1)] = 6,
    parts: Annotated[Path, typer.Option(help="Folder of the parts made so far.")] = Path("runs/peers/parts"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="Make this part anew, and take the others from that folder; may be given again."),
    ] = None,
) -> Report:
    """Needs the peers: `make peers` installs them and calls this; nothing expected is checked."""
    try:
        versions = f"semantic-router {version('semantic-router')}, GPTCache {version('gptcache')}"
    except ImportError as error:
        raise UsageError(MISSING) from error
    made = sections(users, weeks)
    if unknown := sorted(set(only or []) - set(made)):
        raise UsageError(f"--only {unknown[0]}: valid are {', '.join(made)}")
    # GPTCache looks for what it needs with the first pip on PATH
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    atexit.register(rmtree, STORES, ignore_errors=True)  # before their own, which write there once more
    texts = []
    for name, make in made.items():
        part = parts / f"{name}.md"
        if only is None or name in only or not part.is_file():
            print(f"making {part}", file=sys.stderr, flush=True)
            text = make()
            parts.mkdir(parents=True, exist_ok=True)
            part.write_text(text, "utf-8")
        texts.append(part.read_text("utf-8"))
    return Report(texts, page("Peers on the same vectors", "make peers", f"{versions}.", *texts))


EXPERIMENT = Experiment(analyse, one_thread=True)
