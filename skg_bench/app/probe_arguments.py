"""The command `probe`, as Typer reads it."""

from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors


def probe_command(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="assistant=python assistant.file=my.py:ExactCache key=value ...", metavar="[KEY=VALUE]..."),
    ] = None,
    memory: Annotated[
        int, typer.Option(help="Messages whose answers it is asked for again, to see how many it remembers.", min=1)
    ] = 16,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """See what an assistant of your own does. It gets some 130 requests. Exit code 0: it was seen, 2: bad input."""
    with plain_errors():
        from skg_bench.app.probing_outside import show_probe

        show_probe(overrides or [], memory, plain=json)
