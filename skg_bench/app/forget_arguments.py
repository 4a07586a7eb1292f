"""The command `forget`, as Typer reads it."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors


def forget_command(
    run: Annotated[Path, typer.Argument(help="A finished run of a log, or of imported results.")],
    *,
    user: Annotated[str, typer.Option(help="A user, as the log names them.", metavar="ID")],
    recording: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of recorded asks outside of the run. May be given again.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Remove a user from a run, and from MLflow and Opik.

    Logs, recordings of models, labels, tables and page are written again without the user. The log itself is left as it
    is. Exit code 0: removed, 1: a copy is left, which is named.
    """
    with plain_errors(resumes=True):
        from skg_bench.app.forget import forget_user

        if not forget_user(run, user, recording or []):
            raise typer.Exit(1)
