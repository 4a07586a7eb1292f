"""Arms whose users share a memory: who are together, and what a run with such an arm needs."""

from collections.abc import Sequence

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Keeping
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, Bool
from skg_bench.core.sharing import instance_users
from skg_bench.runfolder import shards

_TOGETHER = 32  # users whose instances are one task, about: what begins anew after a stop


def users_of_instance(arm: Arm, users: int) -> int:
    """Number of users who share one memory of an arm, in a run with `users` of them; 1: each has their own.

    Raises UsageError where the users are no whole instances.
    """
    match arm.assistant:
        case Keeping(shares=shares):
            return instance_users(shares, users)
        case _:
            return 1


def check_instances(arms: Sequence[Arm], users: int, stream: str) -> None:
    """Raises UsageError for users who are no whole instances, and for a world whose events have no time beforehand."""
    for arm in arms:
        if users_of_instance(arm, users) > 1 and stream == "reactive":
            raise UsageError(
                f"arm {arm.name!r}: users who share a memory are played in order of time, and the events of this "
                "simulator depend on answers (stream: reactive); take assistant.shares=user"
            )
    sharing = [arm.name for arm in arms if users_of_instance(arm, users) > 1]
    if sharing and (cut := [arm.name for arm in arms if arm.freeze is not None or arm.fork is not None]):
        raise UsageError(
            f"arm {cut[0]!r} freezes or forks at a turn of each user, and users of arm {sharing[0]!r} share a memory. "
            "Such a run is measured by instance, whose turns are others; take two runs"
        )


def whole_instances(missing: Bool, arms: Sequence[Arm], users: int) -> Bool:
    """`missing` `[arms, shards]`, and with a shard all others that its instances reach into: they are played again."""
    more = missing.copy()
    for row, arm in enumerate(arms):
        if shards.SHARD_USERS % users_of_instance(arm, users) and missing[row].any():
            more[row] = True
    return more


def instance_cohorts(ids: I32, size: int) -> list[I32]:
    """Cohorts of whole instances; `ids` are the users of some, ascending."""
    instances = ids.reshape(-1, size)
    parts = np.array_split(instances, max(1, min(len(instances), len(ids) // _TOGETHER)))
    return [part.ravel() for part in parts if len(part)]
