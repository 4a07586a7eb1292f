"""Check of a run's log: do users say something else after a skill answered than after the LLM did?"""

import numpy as np

from skg_bench.analysis.policy_value.estimates import StreamCheck
from skg_bench.analysis.policy_value.next_messages import ChanceDecisions, stream_check
from skg_bench.core.grid import F64
from skg_bench.core.world import FALLBACK
from skg_bench.simulator.logs.arm_log import ArmLog
from skg_bench.simulator.logs.outcome_models import MessageFeatures

_FOLLOWING = [0, 4, 6, 5]  # columns of `MessageFeatures.pairs` that are NEXT_FEATURES


def log_stream(log: ArmLog, features: MessageFeatures, chance: F64 | None) -> StreamCheck | None:
    """Test of an arm's log; `chance` `[N]`: that a skill answered. None: it is not known."""
    if chance is None:
        return None
    now = np.flatnonzero(log.user[1:] == log.user[:-1])  # turns that another one of the user follows
    after = now + 1
    pairs = features.pairs(log.text[after], log.text[now], log.time[after] - log.time[now], np.zeros(len(now)))
    return stream_check(ChanceDecisions(log.how[now] != FALLBACK, chance[now], pairs[:, _FOLLOWING]))
