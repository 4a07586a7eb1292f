"""Draws from the prior, run through the closed loop.

Some at once as one cohort, each cohort into a file of its own, so that what was stopped goes on where it was.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from experiments.skg_section5 import crowd as crowds
from experiments.skg_section5 import prior
from experiments.skg_section5.crowd import Answering, Crowd, OwnWeights, Weekly, side_by_side
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms
from skg_bench.app.experiments import Experiment
from skg_bench.app.run_identity import described
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.core.arms import Arm
from skg_bench.core.embedding_grid import check
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.core.types import Similarity
from skg_bench.core.world import Events, World
from skg_bench.engine.cohort import Cohort, Rollout, Setting
from skg_bench.engine.vectors import open_table, write_table
from skg_bench.simulator.answers.judging import Users
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.study import kept_draws
from skg_bench.study import prior as priors
from skg_bench.study.kept_draws import DrawSetup

USERS, WEEKS = 8, 26  # of a draw; six months
MONTH = 4  # weeks
TOGETHER = 512  # draws of a batch, a third of them in each cohort: changes speed and memory, never a result


@dataclass(frozen=True)
class Study:
    """Study that all draws share."""

    setup: DrawSetup
    seed: int
    users: int  # of each draw
    weeks: int
    simulator: AssistantUsers
    arms: Mapping[str, Arm]  # by what a skill is
    vectors: Callable[[], Any]  # [N, D] of all messages


def study(overrides: Sequence[str], users: int = USERS, weeks: int = WEEKS) -> Study:
    """Study of `experiment=skg_section5` with these overrides, and so many users a draw.

    Raises UsageError for bad ones, and for simulated users without the parameters of the prior.
    """
    words = ["experiment=skg_section5", f"users={users}", f"weeks={weeks}", *overrides]
    composed = compose(words)
    root = composed.root
    simulator, embedder = (build(seam, root[seam], COMMAND_LINE) for seam in ("simulator", "embedder"))
    if not isinstance(simulator, AssistantUsers):
        raise UsageError(f"simulator={type(simulator).__name__}: the prior is one of the parameters of `assistant`")
    prior_digest = sha256(prior.FILE.read_bytes()).hexdigest()
    data = {"simulator": simulator.digest, "embedder": embedder.digest, "prior": prior_digest}
    sizes = {name: root[name] for name in ("seed", "users", "weeks")}
    files = tuple(Path(str(module)) for module in (__file__, crowds.__file__, prior.__file__, priors.__file__))
    more = {"overrides": list(overrides), **sizes}
    setup = DrawSetup(tuple(words), described(root, composed.arms, data), data, more, files)
    kinds = {kind: composed.arms[kind] for kind in prior.kinds().options}
    by_kind = {arm.name: arm for arm in arms(kinds, COMMAND_LINE)}
    vectors = partial(embedder.embed, simulator.messages)
    return Study(setup, **sizes, simulator=simulator, arms=by_kind, vectors=vectors)


def batch(plan: Study, similarity: Callable[[], Similarity], draws: I64) -> pa.Table:
    """A row for each of these draws, ascending: its parameters, and the figures of its users. Draws in which a skill is
    the same kind of thing are a cohort.
    """
    kind = prior.kinds().drawn(plan.seed, draws)
    parts = [_of_kind(plan, name, similarity, draws[kind == name]) for name in np.unique(kind).tolist()]
    return pa.concat_tables(parts).sort_by("draw")


def _of_kind(plan: Study, kind: str, similarity: Callable[[], Similarity], draws: I64) -> pa.Table:
    """Draws in which a skill is of this kind."""
    values = prior.drawn(plan.seed, draws)
    ways = [
        replace(plan.simulator, **prior.of_users({name: float(column[i]) for name, column in values.items()}))
        for i in range(len(draws))
    ]
    users = (draws[:, None] * plan.users + np.arange(plan.users)).reshape(-1).astype(np.int32)
    each = np.repeat(np.arange(len(draws)), plan.users)
    habits = side_by_side([way.habits for way in ways], each)
    events = plan.simulator.populated(habits, plan.seed, users, plan.weeks)
    events = events.rows(np.argsort(-events.n, kind="stable"))  # a cohort's order
    draw_index = np.searchsorted(draws, events.user // plan.users)
    crowd = _crowd(plan.simulator, ways, draw_index)
    weights = np.stack([values[name][draw_index] for name in prior.WEIGHTS])
    arm = plan.arms[kind]
    arm = with_components(arm, signals=OwnWeights.of(components(arm).signals, weights))
    able = {name: column[draw_index] for name, column in prior.of_llm(values).items()}
    arm = replace(arm, llm=Answering(arm.llm, **able))
    log, cohort = Weekly(len(events.n), plan.weeks), Cohort(events.user, events.n, Users.of(events))
    rollout = Rollout(Setting(plan.seed, cast("World[Users]", crowd), similarity, plan.weeks), [arm], cohort)
    rollout.run(events.time.shape[1], log, lambda _: None)
    known = {"draw": draws, prior.KIND: [kind] * len(draws), **values}
    return pa.table({**known, **figures(log, events, draw_index, len(draws))})


def _crowd(simulator: AssistantUsers, ways: Sequence[AssistantUsers], index: I64) -> Crowd:
    """Users of the ways `index` `[B]`."""
    judging = simulator.judging
    running = judging.running.under(side_by_side([way.procedures for way in ways], index))
    return Crowd(simulator, side_by_side([way.reactions for way in ways], index), replace(judging, running=running))


def figures(log: Weekly, events: Events, draw_index: I64, n_draws: int) -> dict[str, F64]:
    """Means over each draw's users of the user's ratio, `[n_draws]`; NaN where no user has a denominator."""
    weeks = log.turns.shape[1]
    first, half, last = slice(0, 1), slice(max(weeks // 2 - MONTH, 0), weeks // 2), slice(weeks - MONTH, weeks)
    whole = slice(0, weeks)

    def share(part: np.ndarray, over: np.ndarray, of_weeks: slice = whole) -> F64:
        return mean(part[:, of_weeks].sum(axis=1), over[:, of_weeks].sum(axis=1))

    def mean(part: np.ndarray, over: np.ndarray) -> F64:
        rows = np.flatnonzero(over > 0)
        total = np.bincount(draw_index[rows], part[rows] / over[rows], n_draws)
        n = np.bincount(draw_index[rows], minlength=n_draws)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)

    ones = np.ones(len(draw_index))
    book = _carried(log.book)
    again, requests = _again(events)
    return {
        "hits_week_1": share(log.hits, log.turns, first),
        "hits_month_3": share(log.hits, log.turns, half),
        "hits_month_6": share(log.hits, log.turns, last),
        "added_per_week": mean(log.added.sum(axis=1) / weeks, ones),
        "added_per_week_at_first": mean(log.added[:, : weeks // 2].sum(axis=1) / (weeks // 2), ones),
        "skills_month_3": mean(book[:, weeks // 2 - 1], ones),
        "skills_month_6": mean(book[:, -1], ones),
        "skills_growth_last_month": mean(book[:, -1] - book[:, weeks - MONTH - 1], ones),
        "ok_of_hits": share(log.ok_hits, log.rated_hits),
        "ok_of_hits_month_6": share(log.ok_hits, log.rated_hits, last),
        "ok_of_all": share(log.ok, log.rated),
        "right_of_hits": 1.0 - share(log.wrong_hits, log.hits),
        "hit_ms_month_6": share(log.hit_ms, log.hits, last),
        "right_hits_month_6": share(log.hits - log.wrong_hits, log.turns, last),
        "right": 1.0 - share(log.wrong, log.turns),
        "turns_per_week": mean(log.turns.sum(axis=1) / weeks, ones),
        "asked_again": mean(again, requests),
        "could_be_hits_month_6": share(log.answerable, log.turns, last),
        "used_up": mean((events.truth.used_up & _real(events)).sum(axis=1), requests),
    }


def _real(events: Events) -> np.ndarray:
    return np.arange(events.time.shape[1])[None] < events.n[:, None]


def _again(events: Events) -> tuple[np.ndarray, np.ndarray]:
    """Counts by row: requests of a type that this user asked before, and all requests."""
    row, col = np.nonzero(_real(events) & (events.truth.type >= 0))
    kind = events.truth.type[row, col]
    width = np.int64(events.truth.type.max() + 1)
    first = np.unique(row * width + kind) // width
    again = np.bincount(row, minlength=len(events.n)) - np.bincount(first, minlength=len(events.n))
    return again, events.n


def _carried(book: np.ndarray) -> np.ndarray:
    """Sizes by week, `[B, W]`: in weeks without a turn that of the week before; everyone has one in the first."""
    week = np.maximum.accumulate(np.where(book >= 0, np.arange(book.shape[1]), 0), axis=1)
    return np.take_along_axis(book, week, axis=1)


# ----------------------------------------------------------------------------------------------------------- files


def simulate(plan: Study, out: Path, draws: int, say: Callable[[str], None], *, backwards: bool = False) -> None:
    """Run what is not there yet of the first `draws` draws, in whole batches, into `out`; `backwards`: the last first.

    Raises UsageError for a folder that holds draws of another study, and where draws are missing from one of other
    code.
    """
    missing = [first for first in range(0, draws, TOGETHER) if not (out / _name(first)).exists()]
    kept_draws.begin(out, plan.setup, complete=not missing)
    if not missing:
        say(f"{out} holds the first {draws:,} draws already")
        return
    vectors = plan.vectors()
    check(vectors, len(plan.simulator.messages))
    table = out / f"similarity.{os.getpid()}.tmp.npy"
    write_table(vectors, table)
    opened, begun, made = open_table(table), time.monotonic(), 0
    for first in missing[:: -1 if backwards else 1]:
        file = out / _name(first)
        if not file.exists():
            temporary = file.with_suffix(f".{os.getpid()}.tmp")
            pq.write_table(batch(plan, lambda: opened, np.arange(first, first + TOGETHER)), temporary)
            temporary.rename(file)
            made += TOGETHER
            say(f"draws {first:,} to {first + TOGETHER - 1:,}, {made / (time.monotonic() - begun):.2f} draws/s")
    table.unlink(missing_ok=True)


def _name(first: int) -> str:
    """File of the batch that begins with a draw."""
    return f"draws-{first:06d}.parquet"


def read(out: Path) -> tuple[Mapping[str, Any], pa.Table]:
    """Manifest and all draws of a folder.

    Raises UsageError for a folder without draws, or with draws of a prior in which a skill was one kind of thing.
    """
    files = sorted(out.glob("draws-*.parquet"))
    if not files or not (out / kept_draws.NAME).is_file():
        raise UsageError(f"{out} holds no draws; make them: skg-bench experiment skg_section5/draws --out {out}")
    manifest = kept_draws.kept_manifest(out)
    table = pa.concat_tables([pq.read_table(file) for file in files])
    if prior.KIND not in table.column_names:
        raise UsageError(f"{out} holds draws of an earlier prior, without {prior.KIND!r}; make them again elsewhere")
    return manifest, table


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as simulator=clinc150 embedder=minilm.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the draws; what is there already is kept.")] = Path(
        "runs/skg_section5"
    ),
    draws: Annotated[int, typer.Option(help=f"Rounded up to batches of {TOGETHER}.", min=1)] = 3072,
    backwards: Annotated[bool, typer.Option("--backwards", help="For a second process beside the first.")] = False,
) -> None:
    """Writes what `skg-bench experiment skg_section5` reads."""
    plan = study(overrides or [])
    simulate(plan, out, draws, lambda line: print(line, flush=True), backwards=backwards)


EXPERIMENT = Experiment(analyse)
