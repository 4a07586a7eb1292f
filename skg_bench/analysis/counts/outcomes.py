"""Counts and metrics that a domain adds to a run, from the fields of its outcome, by its own declaration."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.analysis.counts.columns import says
from skg_bench.analysis.counts.metrics import Metric
from skg_bench.core.domain import Domain, OutcomeMetric, domain_of
from skg_bench.core.grid import F64, Bool
from skg_bench.runfolder.run import RunTables


def outcome_columns(run: RunTables) -> list[str]:
    """Columns of the turn log that the metrics of a run's domain need."""
    return list(dict.fromkeys(metric.field for metric in domain_of(run.manifest).metrics))


def outcome_counts(run: RunTables, table: pa.Table) -> dict[str, npt.NDArray[np.float64] | Bool]:
    """Counts of each turn, `[N]`, by the names of the domain's metrics; NaN where an outcome says nothing."""
    return {_name(metric): _count(metric, table[metric.field]) for metric in domain_of(run.manifest).metrics}


def outcome_metrics(domain: Domain) -> dict[str, Metric]:
    """Metrics of a domain by name: means over a user's turns."""
    return {
        each.name: Metric(each.name, each.label, each.unit, each.better, "turn", {_name(each): 1.0}, each.says)
        for each in domain.metrics
    }


def _name(metric: OutcomeMetric) -> str:
    return f"outcome.{metric.name}"


def _count(metric: OutcomeMetric, column: pa.ChunkedArray) -> F64 | Bool:
    if metric.levels:
        return says(column, *metric.levels)
    values: F64 = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    return values
