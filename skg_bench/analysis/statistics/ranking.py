"""Quality of scores, as a function of plain arrays; held against scikit-learn in the tests."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64

Flags = npt.NDArray[Any]  # [n] bool, or 0 and 1


def auroc(score: F64, positive: Flags) -> float:
    """Probability that a positive scores above a negative, ties counting half: area under the ROC curve.

    Equal scores are one group, as no threshold can part them, so that the order of rows changes nothing. NaN without a
    positive or without a negative.
    """
    if len(score) != len(positive):
        raise UsageError(f"{len(score)} scores and {len(positive)} outcomes; one outcome for each score is needed")
    if np.isnan(score).any():
        raise UsageError(f"{int(np.isnan(score).sum())} of {len(score)} scores are missing; leave those rows out")
    _, group = np.unique(-np.asarray(score, np.float64), return_inverse=True)  # the highest score first
    alarms, hits = (np.cumsum(np.bincount(group, flag)) for flag in (np.asarray(positive) == 0, positive))
    if not (hits[-1:].any() and alarms[-1:].any()):
        return np.nan
    hit_rate, alarm_rate = (np.append(0.0, count / count[-1]) for count in (hits, alarms))
    return float(np.trapezoid(hit_rate, alarm_rate))
