"""Tasks that are left of a run: cohorts to simulate, and shards to put together from pieces of cohorts that are done.

Shards are a fixed partition, cohorts are not: users of like volume are stepped together, as a cohort takes as many
steps as its busiest user. Cohorts are formed among the users of a few shards, so that few pieces make a shard.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.pieces import Piece, apart
from skg_bench.engine.plan import Plan
from skg_bench.engine.sharing_arms import instance_cohorts, users_of_instance
from skg_bench.runfolder import shards

_POOLED = 16  # shards among whose users cohorts are formed
_WAVE = 30_000_000  # turns, of about 110 bytes in a piece, after which shards are put together

Part = tuple[int, int]  # (I, N): the I-th of N parts of a run, from 0
WHOLE: Part = (0, 1)
Begun = tuple[tuple[str, ...], I32]  # arms and users of a cohort that has a checkpoint


@dataclass(frozen=True)
class Task:
    """A cohort to simulate: users, by ascending id, under the arms of a stack (indices)."""

    arms: tuple[int, ...]
    users: I32
    becomes: Literal["piece", "shards", "nothing"] = "nothing"  # shards: these hold nobody else


@dataclass(frozen=True)
class Join:
    """A shard of some arms (indices) to put together, from pieces of cohorts that were simulated under all of them."""

    arms: tuple[int, ...]
    shard: int


@dataclass(frozen=True)
class Existing:
    """Pieces of a run, or of a part of it, from earlier attempts."""

    mine: Bool  # [arms, shards] what this run, or part, makes
    missing: Bool  # [arms, shards] of these the shards that are not there
    pieces: Sequence[Piece]
    begun: Sequence[Begun] = ()


@dataclass(frozen=True)
class Left:
    """Tasks that are left of a run, or of a part of it."""

    tasks: Sequence[Task]
    joins: Sequence[Join]
    done: int  # turns that are in shards and pieces
    total: int  # turns of all


def ours(plan: Plan, part: Part) -> Bool:
    """`[arms, shards]`: what a part of a run makes. Parts are of like size, and arms that are stepped together stay
    together where a part has several.

    Raises UsageError for a part where users share a memory.
    """
    for arm in plan.arms if part != WHOLE else ():
        if users_of_instance(arm, plan.users) > 1:
            raise UsageError(
                f"part={part[0]}/{part[1]}: users of arm {arm.name!r} share a memory, and a part may end among them; "
                "run it whole, without part"
            )
    order = [arm for stack in stacks(plan.arms) for arm in stack]
    n_shards = shards.count(plan.users)
    first, end = (len(order) * n_shards * i // part[1] for i in (part[0], part[0] + 1))
    mask = np.zeros((len(order), n_shards), np.bool_)
    number, place = np.divmod(np.arange(first, end), len(order))
    mask[np.array(order)[place], number] = True
    return mask


def waves(counts: I32, mine: Bool) -> Iterator[Bool]:
    """`[arms, shards]`: what is made before shards are put together and pieces deleted, one after the other; so pieces
    take a few gigabytes at most. Only the shards of `mine`.
    """
    turns, first, n_shards = 0.0, 0, mine.shape[1]
    of_shard = np.bincount(np.arange(len(counts)) // shards.SHARD_USERS, counts, n_shards)
    for number in range(n_shards):
        turns += float(of_shard[number]) * int(mine[:, number].sum())
        if (turns >= _WAVE and (number + 1) % _POOLED == 0) or number + 1 == n_shards:
            wave = np.zeros_like(mine)
            wave[:, first : number + 1] = mine[:, first : number + 1]
            yield wave
            turns, first = 0.0, number + 1


def tasks_left(plan: Plan, counts: I32, existing: Existing, cohort: int) -> Left:
    """`counts`: events of each user; `cohort`: rows of one, which are users times arms. Cohorts that have a checkpoint
    stay as they are.
    """
    mine, missing = existing.mine, existing.missing
    turns, shard_of = counts.astype(np.int64), np.arange(plan.users) // shards.SHARD_USERS
    of_shard = np.bincount(shard_of, turns, mine.shape[1]).astype(np.int64)
    total, done = (int((mask @ of_shard).sum()) for mask in (mine, mine & ~missing))
    tasks: list[Task] = []
    joins: list[Join] = []
    for stack in stacks(plan.arms):
        for arms, numbers in _alike(stack, missing & mine):
            names = tuple(plan.arms[i].name for i in arms)
            users = np.flatnonzero(np.isin(shard_of, numbers)).astype(np.int32)
            before = [piece.users for piece in apart(existing.pieces, names)]
            simulated = np.concatenate([np.zeros(0, np.int32), *before])
            done += int(turns[np.intersect1d(users, simulated)].sum()) * len(arms)
            begun = [ids for theirs, ids in existing.begun if theirs == names]
            left, size = np.setdiff1d(users, simulated), users_of_instance(plan.arms[arms[0]], plan.users)
            cohorts = _cohorts(left, counts, begun, cohort, len(arms)) if size == 1 else instance_cohorts(left, size)
            whole = {
                number for ids in cohorts if _alone(ids, plan.users) for number in np.unique(ids // shards.SHARD_USERS)
            }
            tasks += [
                Task(arms, ids, "shards" if ids[0] // shards.SHARD_USERS in whole else "piece") for ids in cohorts
            ]
            joins += [Join(arms, number) for number in numbers.tolist() if number not in whole]
    # the longest first, so that workers end together; of these the largest, whose events serve the smaller ones
    tasks.sort(key=lambda task: (-counts[task.users].max(), -len(task.users)))
    return Left(tasks, joins, done, total)


def _alone(ids: I32, users: int) -> bool:
    """Are these users, of a run with so many, all that their shards hold?"""
    return len(ids) == sum(
        len(shards.users_of(number, users)) for number in np.unique(ids // shards.SHARD_USERS).tolist()
    )


def _alike(stack: Sequence[int], missing: Bool) -> Iterator[tuple[tuple[int, ...], I64]]:
    """Arms of a stack, and a few shards that are missing of all of them and of no other arm of it."""
    mask = missing[list(stack)].T  # [shards, arms of the stack]
    for first in range(0, len(mask), _POOLED):
        pooled = mask[first : first + _POOLED]
        for pattern in np.unique(pooled[pooled.any(axis=1)], axis=0):
            yield tuple(np.array(stack)[pattern].tolist()), first + np.flatnonzero((pooled == pattern).all(axis=1))


def _cohorts(users: I32, counts: I32, begun: Sequence[I32], cohort: int, n_arms: int) -> list[I32]:
    """Users of like volume together, the busiest first; those of a cohort that was begun as they are."""
    chosen = []
    for ids in begun:
        if len(np.setdiff1d(ids, users)) == 0:
            chosen.append(ids)
            users = np.setdiff1d(users, ids)
    if not len(users):
        return chosen
    by_volume, n_cohorts = users[np.argsort(-counts[users], kind="stable")], round(len(users) / cohort)
    for together in np.array_split(
        by_volume, max(1, n_cohorts)
    ):  # the same for all stacks: whose events serve them all
        n_parts = round(len(together) * n_arms / cohort)  # about: a few users left over are not worth a piece
        chosen += [np.sort(ids).astype(np.int32) for ids in np.array_split(together, max(1, n_parts)) if len(ids)]
    return chosen
