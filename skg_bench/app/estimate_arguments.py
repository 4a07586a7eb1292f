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
        typer.Option(help="For a run: its arm with these overrides. May be given again.", metavar="NAME=[KEY=VALUE]"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns by field: user, action, propensity, reward, reward_propensity, candidates, predicted.",
            metavar="'{FIELD: COLUMN}'",
        ),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(help="Column of the reward; of a replay utility or answer_correct.", metavar="COLUMN"),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Of a run: the arm that made the log.")] = None,
    judged: Annotated[
        Path | None,
        typer.Option(help="Of a replay: table of `data label RUN` that says which answers were right.", metavar="FILE"),
    ] = None,
    against: Annotated[str, typer.Option(help="Policy to compare with. Default: the one that made the log.")] = "log",
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help="ips, snips, dr, sndr, dm, clipped=20, switch=5, dros=slope, sg-ips=0.05. May be given again.",
            metavar="NAME",
        ),
    ] = None,
    estimand: Annotated[
        str | None,
        typer.Option(
            help="loop: the arm, learning; snapshot@S: without learning from turn S on; step: in the log's states.",
            metavar="NAME",
        ),
    ] = None,
    reward_model: Annotated[
        str, typer.Option(help="Model that draws what is not logged: logistic, boosted or constant.", metavar="NAME")
    ] = "logistic",
    figure: Annotated[
        Path | None, typer.Option(help="Draw the values into this file: .svg; or .html, a page with all tables.")
    ] = None,
    by_row: Annotated[bool, typer.Option("--by-row", help="Also print intervals as if rows were independent.")] = False,
) -> None:
    """Estimate from a log what arms that were not run are worth.

    Policies decide in the states that the log reached, and the log states the probability of each decision. Targets are
    replayed on the messages of a run: logged answers are repeated, others come from models fitted on the log.
    """
    with plain_errors():
        from skg_bench.app.estimate_tables import show_estimates
        from skg_bench.app.estimating import estimate

        show_estimates(
            estimate, log, policy or [], targets=target or [], columns=columns, reward=reward, arm=arm, against=against,
            estimators=estimator or [], figure=figure, by_row=by_row, estimand=estimand, reward_model=reward_model,
            judged=judged,
        )  # fmt: skip
