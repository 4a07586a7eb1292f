"""The commands `data`, as Typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples
from skg_bench.app.plain_errors import plain_errors

data = typer.Typer(
    help="Read logs and corpora of your own, and public datasets.", no_args_is_help=True, rich_markup_mode=None
)


@data.command("check", epilog=examples.epilog("data check"))
def check_data(
    file: Annotated[
        Path, typer.Argument(help="A log, or a labelled corpus: CSV, TSV, JSON lines, Parquet, a folder, hf:NAME.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Corrections of a guess: simulator.day_first=true ...", metavar="[KEY=VALUE]..."),
    ] = None,
) -> None:
    """Guess the format of a log, and print the command that replays it. Also prints what a run can show, and which rows
    are left out.
    """
    with plain_errors():
        from skg_bench.app.log_check import check_log

        check_log(file, overrides or [])


@data.command("list", epilog=examples.epilog("data list"))
def list_data() -> None:
    """List datasets, their licences, and which are here."""
    with plain_errors():
        from skg_bench.app.dataset_commands import show_datasets

        show_datasets()


@data.command("get", epilog=examples.epilog("data get"))
def get_data(
    name: Annotated[str, typer.Argument(help="A name that `skg-bench data list` prints.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder with a copy. Default: the publisher's address.")
    ] = None,
) -> None:
    """Fetch a dataset from its publisher, or from a copy, and check it."""
    with plain_errors():
        from skg_bench.app.dataset_commands import get

        get(name, source)
