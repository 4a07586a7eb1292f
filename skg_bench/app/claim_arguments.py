"""The command `claims`, as Typer reads it."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app.plain_errors import plain_errors
from skg_bench.core.errors import UsageError


def claims_command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids such as K24; with --make or --check, experiments such as skg_parameters. Default: counts of "
            "claims by verdict.",
            metavar="[ID]...",
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All claims, with what carries each.")] = False,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only claims that no test and no experiment carries yet.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="table, markdown or json.")] = "table",
    make: Annotated[
        bool, typer.Option("--make", help="Make files of findings again; prints first what that costs.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print whether each file of findings still counts, by a small run of each. Notes rewritten analyses.",
        ),
    ] = False,
    runs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With --make: folder for runs. Default: runs/claims.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --make: print commands and CPU minutes, and make nothing.")
    ] = False,
) -> None:
    """List claims of the sources, and what was found. Exit code 2: a file of findings is refused."""
    with plain_errors(resumes=make):
        if every and (ids or make or check):
            raise UsageError("--all shows all claims; leave out ids, --make and --check, or --all")
        if make or check:
            from skg_bench.app import claim_files

            if make and check:
                raise UsageError("--make and --check: give one of them")
            claim_files.check_findings(ids or []) if check else claim_files.make(ids or [], runs, dry=dry_run)
            return
        from skg_bench.app.claim_tables import show_claims

        show_claims(ids or [], form, only_open=only_open, every=every)
