"""The order control: how much of a rise is the order of requests (P31).

A rise is what a user's last quarter of turns is worth more than the first. It may come from learning, or from the
order in which requests come: what is asked again soon after, what interests fall behind. Permuting each user's requests
over the user's own times (`simulator.order=permuted`) leaves nothing of the order, and learns from the same requests:
what is left of the rise is not order; what is gone bounds what was.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.analysis.comparison.turn_bins import utility
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.runfolder.manifest import BESIDE
from skg_bench.runfolder.run import Run, flat

QUARTERS = 4


@dataclass(frozen=True, slots=True)
class OrderControl:
    """Rises of one arm over the users of both runs, `what` being utility against the reference, or the hit rate."""

    arm: str
    what: str
    ordered: PairedT
    permuted: PairedT
    by_order: PairedT  # ordered - permuted, user by user


def order_control(ordered: Run, permuted: Run, arm: str | None = None) -> list[OrderControl]:
    """The rise of `arm` (default: the live arm) in time, and with the order of requests permuted.

    Raises UsageError when the runs differ in more than `simulator.order`, and arms that are not compared.
    """
    arm = roles(ordered).live if arm is None else arm
    ordered_keys, permuted_keys = (_described(run, arm) for run in (ordered, permuted))
    apart = {
        key for key in ordered_keys.keys() | permuted_keys.keys() if ordered_keys.get(key) != permuted_keys.get(key)
    }
    orders = ordered_keys.get("simulator.order"), permuted_keys.get("simulator.order")
    if orders != ("time", "permuted") or apart != {"simulator.order"}:
        raise UsageError(
            f"{ordered.path} and {permuted.path} must be the same run with simulator.order=time and permuted; they "
            f"have {orders[0]} and {orders[1]}, and differ in {', '.join(sorted(apart)) or 'nothing'}"
        )
    results = []
    for what in ("utility", "hit_rate"):
        before, after = (_rises(run, arm, what) for run in (ordered, permuted))
        some = ~np.isnan(before)
        tests = (paired_t(rise[some]) for rise in (before, after, before - after))
        results.append(OrderControl(arm, what, *tests))
    return results


def _described(run: Run, arm: str) -> dict[str, Any]:
    """All that the rises of an arm come from."""
    left_out = (*BESIDE, "arms", "question", "contrasts", "learner")
    config = {key: value for key, value in run.config.items() if key not in left_out}
    compositions = run.manifest["compositions"]
    return flat(config | {name: compositions.get(name) for name in (arm, str(roles(run).reference))})


def _rises(run: Run, arm: str, what: str) -> F64:
    requests, reference = events(run), roles(run).reference
    if what == "hit_rate":
        return rises((~run.turns(arm, ["fallback_to_llm"])["fallback_to_llm"].to_numpy()).astype(np.float64), requests)
    prices = Utility.of(run.config)
    against = 0.0 if reference in (None, arm) else utility(run, str(reference), requests, prices)
    return rises(utility(run, arm, requests, prices) - against, requests)


def rises(values: F64, requests: LoggedEvents) -> F64:
    """Mean of the last quarter of a user's turns less that of the first, `[n]`; NaN: fewer than four turns."""
    n = np.bincount(requests.row, minlength=len(requests.users))
    quarter = requests.turn * QUARTERS // n[requests.row]
    slot = requests.row * QUARTERS + quarter
    count = np.bincount(slot, minlength=len(n) * QUARTERS).reshape(-1, QUARTERS)
    total = np.bincount(slot, values, len(n) * QUARTERS).reshape(-1, QUARTERS)
    mean = total / np.maximum(count, 1)
    return np.where(n >= QUARTERS, mean[:, -1] - mean[:, 0], np.nan)
