"""The option `--trust`, as Typer reads it."""

from typing import Annotated

import typer

Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Let components that the file names use network, environment, files and code. Read the file first.",
    ),
]
