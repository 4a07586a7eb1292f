"""Outcomes of the learning jobs of an arm."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from skg_bench.analysis.summary.figures import digits
from skg_bench.core.learning_jobs import RESULTS
from skg_bench.runfolder.run import Run


@dataclass(frozen=True)
class LearningJobs:
    """Learning jobs of all users."""

    results: Mapping[str, int]  # how many ended in each way
    operations: int  # admitted
    refused: int  # operations that were proposed and not admitted
    tokens: int
    cost_usd: float | None
    served: Sequence[str]  # models as servers named them, and the forms of their answers


def learning_jobs(run: Run, arm: str) -> LearningJobs | None:
    """Learning jobs of an arm; None: it has none."""
    table = run.learning(arm, ["result", "operations", "refused", "tokens_in", "tokens_out", "cost_usd", "served"])
    if not table.num_rows:
        return None
    ended = Counter(table["result"].cast("string").to_pylist())
    results = {result: ended[result] for result in RESULTS if ended[result]}
    operations, refused, tokens_in, tokens_out, cost = (
        pc.sum(table[name]).as_py() for name in ("operations", "refused", "tokens_in", "tokens_out", "cost_usd")
    )
    served = sorted({word for word in table["served"].cast("string").to_pylist() if word is not None})
    return LearningJobs(results, operations, refused, tokens_in + tokens_out, digits(cost), served)
