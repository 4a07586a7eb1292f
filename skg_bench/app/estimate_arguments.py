"""The command `estimate`, as Typer reads it."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors


def estimate_command(
    log: Annotated[Path, typer.Argument(help="A run folder, or a table: CSV, TSV or Parquet.")],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy, by its probability of what the log did: a number or a column. May be given again.",
            metavar="NAME=P",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a run: the arm with overrides of its policy. May be given again.", metavar="NAME=[KEY=VALUE]"
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns by field: user, action, propensity, reward, reward_propensity, candidates, predicted.",
            metavar="'{FIELD: COLUMN}'",
        ),
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help="Column of the reward, such as answer_correct.", metavar="COLUMN")
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Of a run: the arm that made the log.")] = None,
    against: Annotated[str, typer.Option(help="Policy to compare with. Default: the one that made the log.")] = "log",
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help="ips, snips, dr, sndr, dm, clipped=20, switch=5, dros=slope, sg-ips=0.05. May be given again.",
            metavar="NAME",
        ),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the values into this file, .svg.")] = None,
    by_row: Annotated[bool, typer.Option("--by-row", help="Also print intervals as if rows were independent.")] = False,
) -> None:
    """Estimate the value of policies that were not run.

    Estimand: other decisions in the states that a log reached. The log has to state the probability of each decision.
    """
    with plain_errors():
        from skg_bench.app.estimate_tables import show_estimates

        show_estimates(
            log, policy or [], targets=target or [], columns=columns, reward=reward, arm=arm, against=against,
            estimators=estimator or [], figure=figure, by_row=by_row,
        )  # fmt: skip
