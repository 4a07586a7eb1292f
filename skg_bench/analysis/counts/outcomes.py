"""Counts and metrics that a domain adds to a run, from the fields of its outcome and by its own words."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.analysis.counts.columns import column, says
from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Metric, Utility, metrics
from skg_bench.analysis.counts.wording import named
from skg_bench.core.domain import Domain, OutcomeMetric, domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import Condition, Telling, telling_of

PAID_COLUMNS = LOSS_COLUMNS[1:]
Counts = dict[str, npt.NDArray[np.float64] | Bool]


def outcome_columns(run: RunTables) -> list[str]:
    """Columns of the turn log by which a run's domain counts."""
    fields = (metric.field for metric in domain_of(run.manifest).metrics)
    return list(dict.fromkeys([*telling_of(run.manifest).columns, *fields]))


def told_counts(run: RunTables, table: pa.Table) -> Counts:
    """Counts of each turn, `[N]`, by the names that the words of the domain give them; without those of feedback."""
    telling = telling_of(run.manifest)
    counts: Counts = {
        count.name: np.logical_and.reduce([_holds(table, each) for each in count.where]) for count in telling.counts
    }
    for amount in telling.amounts:
        values: F64 = column(table, amount.column)
        counts[amount.name] = values - column(table, amount.less) if amount.less else values
    return counts


def outcome_counts(run: RunTables, table: pa.Table) -> Counts:
    """Counts of each turn, `[N]`, by the names of the domain's metrics; NaN where an outcome says nothing."""
    return {_name(metric): _count(metric, table[metric.field]) for metric in domain_of(run.manifest).metrics}


def outcome_metrics(domain: Domain) -> dict[str, Metric]:
    """Metrics of a domain by name: means over a user's turns."""
    return {
        each.name: Metric(each.name, each.label, each.unit, each.better, "turn", {_name(each): 1.0}, each.says)
        for each in domain.metrics
    }


def told_metrics(telling: Telling, prices: Utility) -> dict[str, Metric]:
    """Metrics by the words of a domain, then those of every world that hold there, in the order in which they are
    shown.
    """
    every = metrics(prices)
    if not telling.metrics and not telling.general:
        return every
    by_name = {
        each.name: Metric(
            each.name, each.label, each.unit, each.better, each.over,
            {each.count: 1.0, **(prices.price() if each.priced else {})}, each.says,
        )
        for each in telling.metrics
    }  # fmt: skip
    shared = {name: replace(every[name], says=named(every[name].says, telling.noun)) for name in telling.general}
    return by_name | shared


def metrics_of(run: RunTables, prices: Utility) -> dict[str, Metric]:
    """All metrics of the world of a run, in the order in which they are shown."""
    return told_metrics(telling_of(run.manifest), prices) | outcome_metrics(domain_of(run.manifest))


def worth_of(run: RunTables, arm: str, prices: Utility) -> pa.Table:
    """Turn log of an arm with a column `utility`: what each turn was worth, less money, waiting and offers."""
    worth = telling_of(run.manifest).worth
    table = run.turns(arm, [worth, *PAID_COLUMNS] if worth else LOSS_COLUMNS)
    values = column(table, worth) - prices.paid(table) if worth else 1.0 - prices.loss(table)
    return table.append_column("utility", pa.array(values))


def at_price(run: RunTables, prices: Utility, price: float) -> Metric:
    """Utility where the mistake that the domain prices costs `price`, in a run where it costs `prices.wrong`."""
    (priced,) = telling_of(run.manifest).prices
    utility = metrics_of(run, prices)["utility"]
    count = {**utility.count, priced.count: prices.wrong - price}
    return replace(utility, name=f"utility at {price:g}", count=count)


def _holds(table: pa.Table, condition: Condition) -> Bool:
    values = table[condition.column]
    if pa.types.is_boolean(values.type):
        if not set(condition.levels) <= {"true", "false"}:
            raise UsageError(
                f"the domain of the run counts {condition.column} by {condition.levels}; valid: true, false"
            )
        flags = column(table, condition.column).astype(np.bool_)
        mask: Bool = flags == ("true" in condition.levels)
    else:
        mask = says(values, *condition.levels)
    return mask if condition.holds else ~mask


def _name(metric: OutcomeMetric) -> str:
    return f"outcome.{metric.name}"


def _count(metric: OutcomeMetric, column: pa.ChunkedArray) -> F64 | Bool:
    if metric.levels:
        return says(column, *metric.levels)
    values: F64 = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    return values
