"""Plans of a contrast: from a pilot of users under two arms, how many decide it, and what that costs, by design."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.statistics.planned_users import PlannedUsers, planned_users
from skg_bench.core.grid import F64


@dataclass(frozen=True)
class ChanceLog:
    """A log of both arms in which chance decides."""

    name: str
    noise: F64  # [G] variance of a user's difference
    value: float  # mean reward while it is made


@dataclass(frozen=True)
class Pilot:
    """G users under two arms."""

    reference: F64  # [G] mean reward a turn
    arm: F64  # [G]
    turns: float  # a user
    apart: float  # turns a user in which the answers differ
    usd: tuple[float, float]  # metered cost a user: of the reference, of the arm; NaN: not known
    logs: tuple[ChanceLog, ...]
    without: str  # why there are no logs; empty: there are
    doubt: str  # why the log of a replayed pilot does not suffice; empty: it does


@dataclass(frozen=True, slots=True)
class Design:
    """A way to decide a contrast, and what it takes."""

    name: str
    planned: PlannedUsers  # of each group
    groups: int
    turns: float  # of all users; inf: without end
    apart: float  # turns among these in which the arms answer otherwise
    lost: float  # reward a turn that users lose meanwhile, against the better arm alone
    usd: float  # metered cost of all answers, US dollars; NaN: not known

    @property
    def users(self) -> float:
        """Users of all groups."""
        return self.groups * self.planned.users


@dataclass(frozen=True)
class ContrastPlan:
    """Numbers of users that a contrast needs, from a pilot."""

    arm: str
    reference: str
    reward: str
    users: int  # of the pilot
    difference: float  # arm - reference, mean over users
    largest: float  # of a user's differences, without sign
    effect: float | None  # given; None: the pilot's difference is planned for
    designs: tuple[Design, ...]
    new_requests: float | None  # users for a verdict of `compare`; inf: no number is enough; None: not known
    without: str  # why there are no designs of a log; empty: there are
    doubt: str  # why the log of a replayed pilot does not suffice; empty: it does


def planned_designs(pilot: Pilot, effect: float | None) -> Iterator[Design]:
    """Designs that find an effect, by default the difference of the pilot, in 80 % of cases; simulation first.

    Raises UsageError for a pilot that says too little.
    """
    difference, none = pilot.arm - pilot.reference, np.zeros(len(pilot.arm))
    first, second = float(pilot.reference.mean()), float(pilot.arm.mean())
    better, middle = max(first, second), (first + second) / 2
    shapes = [
        ("simulation", [difference], none, 0.0, 2),
        ("A/B in two groups", [pilot.reference, pilot.arm], none, better - middle, 1),
        *((log.name, [difference], log.noise, better - log.value, 1) for log in pilot.logs),
    ]
    for name, groups, noise, lost, answers in shapes:
        if np.isinf(noise).any():
            planned = PlannedUsers(np.inf, np.inf, np.inf, len(difference), len(difference))
        else:
            planned = planned_users(groups, noise, difference, effect)
        users = len(groups) * planned.users
        usd = users * answers * sum(pilot.usd) / 2
        yield Design(name, planned, len(groups), users * pilot.turns, users * pilot.apart, max(lost, 0.0), usd)
