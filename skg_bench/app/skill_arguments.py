"""The command `skills`, as Typer reads it."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.trust_option import Trust


def skills_command(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    arm: Annotated[str | None, typer.Option(help="Default: the arm that learns.")] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file for all skills.")] = None,
    exact: Annotated[
        str | None,
        typer.Option(
            help="Also by playing users again without the N worst, best and most served skills, and 4 N others; "
            "or without each.",
            metavar="N|all",
        ),
    ] = None,
    trust: Trust = False,
) -> None:
    """Show what each skill was worth to its user, worst first."""
    with plain_errors():
        from skg_bench.app.left_out import exact_lifts
        from skg_bench.app.skill_lift import show_skills

        show_skills(run, arm, out, exact, partial(exact_lifts, trust=trust))
