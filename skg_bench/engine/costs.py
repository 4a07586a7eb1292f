"""Cost of what was served: the model where it was called, tools where procedures were run."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from skg_bench.core.assistant import FromBook, InWords, Reply
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.types import Completions
from skg_bench.core.world import (
    FAILED,
    PROCEDURE,
    PROMPTED,
    SILENT,
    STORED,
    AsServed,
    Execution,
    Metered,
    MeteredColumn,
    Response,
    Silence,
    calls,
)


def as_served(
    reply: Reply, how: I32, called: Completions, response: Response, latency_ms: float
) -> tuple[Response, Reply, I32, Completions]:
    """How users were served in the end, and what that cost; the response says of procedures only where one was run.
    `called`: cost of the model if it is called; `latency_ms`: waiting time of an answer without it.
    """
    match response.case:
        case AsServed():
            return response, reply, how, without_calls(called, how == STORED, latency_ms)
        case Metered(columns):
            return response, reply, how, _metered(columns, reply, how, called, latency_ms)
        case Execution() as given:
            execution = _where(given, how == PROCEDURE)
            return replace(response, case=execution), *_executed(reply, how, called, execution, latency_ms)
        case Silence(unspoken):
            return response, *_unless_silent(reply, how, called, unspoken)


def _metered(
    columns: Mapping[MeteredColumn, F64], reply: Reply, how: I32, called: Completions, latency_ms: float
) -> Completions:
    """Costs by the log where the model is called, NaN at turns at which it has no figure: hits and calls alike, so that
    arms are held against one another on the same turns.

    Raises UsageError where a prompt is another one than that of the log.
    """
    if (how == PROMPTED).any() or isinstance(reply.case, InWords):
        without = ", ".join(f"{name}: null" for name in columns)
        raise UsageError(
            "the log says what the model cost as it was asked there, and nobody knows what it would have cost with "
            "skills in its prompt, or as an assistant in words asks it. Leave its figures out, then costs are "
            f"simulated: simulator.columns={{{without}}}"
        )
    usd, latency = columns.get("cost_usd", called.cost_usd), columns.get("latency_ms", called.latency_ms)
    cost = without_calls(replace(called, cost_usd=usd, latency_ms=latency), how == STORED, latency_ms)
    return replace(
        cost,
        cost_usd=np.where(np.isnan(usd), np.nan, cost.cost_usd),
        latency_ms=np.where(np.isnan(latency), np.nan, cost.latency_ms),
    )


def _unless_silent(reply: Reply, how: I32, called: Completions, silent: Bool) -> tuple[Reply, I32, Completions]:
    """Answers that were served where nothing may have been said, and their costs."""
    how = np.where(silent, SILENT, how).astype(np.int32)
    return _without_skill(reply, silent), how, without_calls(called, ~calls(how), 0.0)


def _where(execution: Execution, run: Bool) -> Execution:
    """Results of procedures where one was run; elsewhere nothing failed and nothing was spent."""
    cause = np.where(run, execution.cause, -1).astype(np.int32)
    usd, latency = np.where(run, execution.cost_usd, 0.0), np.where(run, execution.latency_ms, 0.0)
    return Execution(run & execution.failed, cause, usd, latency)


def _executed(
    reply: Reply, how: I32, called: Completions, execution: Execution, latency_ms: float
) -> tuple[Reply, I32, Completions]:
    """Answers where procedures were run, and their costs: the model, where it answered, and tools. No skill served
    where nothing came back. `execution`: of procedures only.
    """
    failed = execution.failed
    how = np.where(failed, FAILED, how).astype(np.int32)
    tools = Completions(
        np.zeros_like(called.tokens_in), np.zeros_like(called.tokens_out), execution.cost_usd,
        execution.latency_ms + np.where(failed, latency_ms, 0.0),
    )  # fmt: skip
    cost = total(without_calls(called, ~calls(how), latency_ms), tools)
    return _without_skill(reply, failed), how, cost


def _without_skill(reply: Reply, which: Bool) -> Reply:
    match reply.case:
        case FromBook(skill=skill) as book:
            return replace(reply, case=replace(book, skill=np.where(which, -1, skill).astype(np.int32)))
        case _:
            return reply


def without_calls(called: Completions, which: Bool, latency_ms: float) -> Completions:
    """Costs of turns where the model is not called in `which`: no tokens and no price."""
    if not np.logical_or.reduce(which):
        return called
    tokens_in, tokens_out = np.where(which, 0, called.tokens_in), np.where(which, 0, called.tokens_out)
    usd, latency = np.where(which, 0.0, called.cost_usd), np.where(which, latency_ms, called.latency_ms)
    return Completions(tokens_in, tokens_out, usd, latency)


def total(cost: Completions, more: Completions) -> Completions:
    """Costs of both, turn by turn."""
    return Completions(
        cost.tokens_in + more.tokens_in, cost.tokens_out + more.tokens_out, cost.cost_usd + more.cost_usd,
        cost.latency_ms + more.latency_ms,
    )  # fmt: skip
