"""The command `plan`, as Typer reads it."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors


def plan_command(
    run: Annotated[Path, typer.Argument(help="A run directory: the pilot.")],
    *,
    arm: Annotated[str | None, typer.Option(help="Name of the arm.")] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Instead: the reference with these overrides, replayed on its log.", metavar="NAME=[KEY=VALUE]"
        ),
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Arm to compare with. Default: the run's reference.")] = None,
    reward: Annotated[str, typer.Option(help="utility or answer_correct.")] = "utility",
    effect: Annotated[
        float | None, typer.Option(help="Smallest difference that matters. Default: the pilot's.", metavar="SIZE")
    ] = None,
) -> None:
    """Show how many users decide between two arms.

    Designs are a simulation, an A/B test, and logs in which chance decides some turns. Each is shown with its cost, and
    each number of users with a 95 % interval.
    """
    with plain_errors():
        from skg_bench.app.plan_tables import show_plan
        from skg_bench.app.planning import plan_contrast

        show_plan(plan_contrast, run, arm, target, reference=reference, reward=reward, effect=effect)
