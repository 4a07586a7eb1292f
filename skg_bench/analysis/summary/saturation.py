"""How much of a run the corpus forced rather than the users: once it is used up, curves flatten for no reason of the
assistant's, and messages that come again for want of others are worth to a skillbook what no user's would be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skg_bench.analysis.counts.columns import distinct_keys, seen_before
from skg_bench.analysis.counts.measure import Difference
from skg_bench.analysis.counts.tally import LoggedEvents
from skg_bench.analysis.statistics.intervals import sums
from skg_bench.core.grid import F64, Bool

OUR_CORPUS = "the built-in corpus"
LIMIT = 0.05  # above it, claims about curves and verdicts on utility read "not testable here"


@dataclass(frozen=True, slots=True)
class Saturation:
    """Means over users of the user's share; NaN where no user has a denominator."""

    verbatim: float  # of requests: the same user asked it before in the same words, by habit or for want of others
    verbatim_last_week: float
    types_used_up: float  # of a user's request types: all wordings were said, and one was said again
    one_offs_again: float  # of one-off requests: the user had drawn that one before

    @property
    def reasons(self) -> list[str]:
        """Reasons why claims about curves and utility are not testable here; none if they are."""
        return _reasons(self.types_used_up, self.one_offs_again)


def withheld(difference: Difference, reasons: Sequence[str]) -> Difference:
    """The difference without a verdict on utility where there are reasons against one; that two arms did the same
    stays.
    """
    drawn = difference.verdict in ("better", "worse", "inconclusive", "depends on the interval", "withheld")
    if not (reasons and drawn and difference.metric == "utility"):
        return difference
    return replace(difference, verdict="not testable here")


def corpus(config: Mapping[str, Any]) -> str:
    """Whose messages the users of a run say, by its resolved configuration.

    >>> corpus({"simulator": {"corpus": {"_target_": "skg_bench.simulator.logs.clinc150.Clinc150", "split": "test"}}})
    'Clinc150 (split=test)'
    """
    simulator = config["simulator"]
    users = simulator.get("users")  # a world may be made of another one's users
    chosen = simulator.get("corpus", users.get("corpus") if isinstance(users, Mapping) else None)
    if not isinstance(chosen, Mapping):
        return OUR_CORPUS if chosen in (None, "", "builtin", ["builtin"]) else str(chosen)
    parameters = ", ".join(f"{key}={value}" for key, value in chosen.items() if key != "_target_" and value is not None)
    return f"{chosen['_target_'].rpartition('.')[2]} ({parameters})"


def saturation(requests: LoggedEvents) -> Saturation:
    """Saturation of the events of a run; the same for all of its arms."""
    return saturation_of([used(requests)])


Used = dict[str, tuple[F64, F64]]
"""Counts of each user `[n]`, and what they are shares of, by the names of the fields of Saturation."""


def used(requests: LoggedEvents) -> Used:
    """Counts of the users of some events."""
    everything = np.ones(len(requests), np.bool_)
    texts = len(requests.message)
    repeat = seen_before(requests.row * texts + requests.text, len(requests.users) * texts)
    last = requests.slot % requests.weeks == requests.weeks - 1
    return {
        "verbatim": _counted(requests, repeat, everything),
        "verbatim_last_week": _counted(requests, repeat & last, last),
        **used_up(requests),
    }


def used_up(requests: LoggedEvents) -> Used:
    """Counts of what the corpus forced, from which there are reasons."""
    n, types = len(requests.users), int(requests.kind.max()) + 1

    def types_of(some: Bool) -> F64:
        """Request types of each user among these events."""
        pairs, _ = distinct_keys(requests.row[some] * types + requests.kind[some], n * types)
        return sums(pairs // types, n)

    real = ~requests.one_off
    return {
        "types_used_up": (types_of(real & requests.used_up), types_of(real)) if types else (np.zeros(n), np.zeros(n)),
        "one_offs_again": _counted(requests, requests.used_up & requests.one_off, requests.one_off),
    }


def saturation_of(blocks: Sequence[Used]) -> Saturation:
    """Saturation of all users, who come block by block."""
    return Saturation(**_shares(blocks))


def reasons_of(blocks: Sequence[Used]) -> list[str]:
    """Reasons as in `Saturation.reasons`, from `used_up` alone."""
    return _reasons(**_shares(blocks))


def _reasons(types_used_up: float, one_offs_again: float) -> list[str]:
    shares = (
        (types_used_up, "of a user's request types have no wording left"),
        (one_offs_again, "of one-off requests were drawn before"),
    )
    return [f"{share:.1%} {what} (limit {LIMIT:.0%})" for share, what in shares if share > LIMIT]


def _shares(blocks: Sequence[Used]) -> dict[str, float]:
    return {
        name: _mean(*(np.concatenate([block[name][i] for block in blocks]) for i in range(2))) for name in blocks[0]
    }


def _counted(requests: LoggedEvents, these: Bool, whole: Bool) -> tuple[F64, F64]:
    return sums(requests.row[these], len(requests.users)), sums(requests.row[whole], len(requests.users))


def _mean(count: F64, over: F64) -> float:
    kept = over > 0
    return float((count[kept] / over[kept]).mean()) if kept.any() else float("nan")
