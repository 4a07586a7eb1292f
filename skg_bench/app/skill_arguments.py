"""The command `skills`, as Typer reads it."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.trust_option import Trust
from skg_bench.core.errors import UsageError


def skills_command(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    *,
    arm: Annotated[str | None, typer.Option(help="Default: the arm that learns.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A CSV file for all skills; with --remove, a new folder for skillbooks.")
    ] = None,
    exact: Annotated[
        str | None,
        typer.Option(
            help="Also by playing users again without the N worst, best and most served skills, and 4 N others; "
            "or without each.",
            metavar="N|all",
        ),
    ] = None,
    remove: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Write skillbooks without the N worst skills that hurt, and batches that say why.",
        ),
    ] = None,
    trust: Trust = False,
) -> None:
    """Show what each skill was worth to its user, worst first."""
    with plain_errors():
        from skg_bench.app.left_out import exact_lifts
        from skg_bench.app.skill_lift import show_worths, skill_worths
        from skg_bench.app.skill_removal import write_without
        from skg_bench.app.skillbook.files import check_free

        play = partial(exact_lifts, trust=trust)
        if remove is None:
            show_worths(skill_worths(run, arm, exact, play), out)
            return
        if out is None:
            raise UsageError(f"--remove {remove} writes skillbooks; name a new folder with --out")
        check_free(out)
        worths = skill_worths(run, arm, exact, play)
        show_worths(worths, None)
        write_without(worths, remove, out, trust=trust)
