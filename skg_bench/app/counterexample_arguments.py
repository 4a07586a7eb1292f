"""The commands `counterexample`, as Typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples
from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.trust_option import Trust

counterexample = typer.Typer(
    help="Find and replay the smallest session in which arms differ.", no_args_is_help=True, rich_markup_mode=None
)


@counterexample.command("find", epilog=examples.epilog("counterexample find"))
def find_session(
    runs: Annotated[list[Path], typer.Argument(help="One run with both arms; or two, the arm's and the reference's.")],
    *,
    arm: Annotated[str, typer.Option(help="Name of the arm.")],
    reference: Annotated[
        str | None, typer.Option(help="The arm that it differs from. Default: the run's reference.")
    ] = None,
    user: Annotated[
        int | None, typer.Option(help="Number of the user. Default: the first who shows a difference.")
    ] = None,
    turn: Annotated[int | None, typer.Option(help="A turn that only one of the two arms answers rightly.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="Instead of a turn: keep the sign of this metric's difference over the session.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the session here, as a regression test (.json).")] = None,
    trust: Trust = False,
) -> None:
    """Find the fewest events at which two arms still differ. Leaving events out changes no draw of the others."""
    with plain_errors():
        from skg_bench.app.counterexample.commands import find as command

        command(runs, arm, reference, user=user, turn=turn, metric=metric, out=out, trust=trust)


@counterexample.command("replay", epilog=examples.epilog("counterexample replay"))
def replay_cases(
    files: Annotated[list[Path], typer.Argument(help="Files that `counterexample find` wrote.")],
    trust: Trust = False,
) -> None:
    """Replay sessions and compare what the arms do. Exit code 0: as when written, 1: not."""
    with plain_errors():
        from skg_bench.app.counterexample.commands import replay as command

        if not command(files, trust=trust):
            raise typer.Exit(1)
