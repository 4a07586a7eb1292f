"""The commands of `skg-bench skillbook`."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples
from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.trust_option import Trust

skillbook = typer.Typer(
    help="Show, compare, change and convert skillbooks.", no_args_is_help=True, rich_markup_mode=None
)

_RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
_Book = Annotated[
    Path,
    typer.Argument(help="A run directory, a skillbook of ACE (.json), a folder of Agent Skills or of agentropy."),
]
_Arm = Annotated[str | None, typer.Option(help="Of a run: name of the arm.")]
_User = Annotated[int | None, typer.Option(help="Of a run: number of the user.")]


@skillbook.command("show", epilog=examples.epilog("skillbook show"))
def show(
    book: _Book,
    arm: _Arm = None,
    user: _User = None,
    turn: Annotated[int | None, typer.Option(help="The book after this turn. Default: at the end.")] = None,
    skill: Annotated[int | None, typer.Option(help="Of a run: the history of the skill with this id.")] = None,
) -> None:
    """Show a skillbook, and its text in a prompt. The book of a run is rebuilt from the log, at any turn."""
    with plain_errors():
        from skg_bench.app.skillbook import shown as command

        if skill is None:
            command.show_skillbook(book, arm, user, turn)
        else:
            command.history(book, arm, user, turn, skill)


@skillbook.command("diff", epilog=examples.epilog("skillbook diff"))
def diff(
    book: _Book,
    other: Annotated[
        Path | None, typer.Argument(help="The other skillbook. Default: the same run at another turn.")
    ] = None,
    *,
    arm: _Arm = None,
    user: _User = None,
    since: Annotated[int | None, typer.Option(help="Of a run: show changes after this turn; -1: all changes.")] = None,
    turn: Annotated[int | None, typer.Option(help="Of a run: show changes up to this turn. Default: the end.")] = None,
) -> None:
    """Show changes between two versions of a skillbook."""
    with plain_errors():
        from skg_bench.app.skillbook import shown as command

        command.show_differences(book, other, arm, user, since=since, turn=turn)


@skillbook.command("apply", epilog=examples.epilog("skillbook apply"))
def apply(
    book: Annotated[Path, typer.Argument(help="A skillbook of ACE (.json).")],
    batch: Annotated[Path, typer.Argument(help="An update batch (.json): reasoning and operations.")],
    mode: Annotated[
        str, typer.Option(help="strict, or as the published packages do: compat-v1, compat-v09, compat-v2.")
    ] = "strict",
    out: Annotated[Path | None, typer.Option(help="Write the book here. Default: write nothing.")] = None,
    limit: Annotated[int, typer.Option(help="Most characters of a text (mode strict).", min=1)] = 20_000,
) -> None:
    """Apply a batch to a skillbook and show what changed. Exit code 1: the published package fails at this batch."""
    with plain_errors():
        from skg_bench.app.skillbook.batch_file import apply_file

        if not apply_file(book, batch, mode, out, limit):
            raise typer.Exit(1)


@skillbook.command("convert", epilog=examples.epilog("skillbook convert"))
def convert(
    book: _Book,
    *,
    to: Annotated[
        str | None, typer.Option(help="agentropy (default for runs), agent-skills, v1, v09 or v2 (default for files).")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="File or folder to write. Of a run: a folder, which gets user-0, user-1, ...")
    ],
    arm: _Arm = None,
    user: Annotated[list[int] | None, typer.Option(help="Of a run: only this user; may be given again.")] = None,
    trust: Trust = False,
) -> None:
    """Write skillbooks in another format, and print what is lost. Books of a run are converted as they end."""
    with plain_errors():
        from skg_bench.app.skillbook.converting import convert as command

        command(book, to, out, arm, user or [], trust=trust)


@skillbook.command("replay", epilog=examples.epilog("skillbook replay"))
def replay(
    run: _RunFolder,
    arm: Annotated[list[str] | None, typer.Option(help="Only this arm; may be given again.")] = None,
    users: Annotated[int, typer.Option(help="How many users of each arm, evenly spread.", min=1)] = 8,
) -> None:
    """Rebuild skillbooks from their log and check their hashes."""
    with plain_errors():
        from skg_bench.app.skillbook.rebuilt import verify as command

        command(run, arm or [], users)


_Address = Annotated[str, typer.Argument(metavar="STORE", help="A file of SQLite, or postgresql://HOST/DATABASE.")]


@skillbook.command("push", epilog=examples.epilog("skillbook push"))
def push(
    run: _RunFolder,
    store: _Address,
    *,
    arm: Annotated[str, typer.Option(help="Name of the arm.")],
    user: Annotated[list[int] | None, typer.Option(help="Only this user; may be given again.")] = None,
) -> None:
    """Store the skillbooks of a run as they stand at its end. A book that is stored already is left as it is."""
    with plain_errors():
        from skg_bench.app.skillbook.moving import push as command

        command(run, store, arm, user or [])


@skillbook.command("pull", epilog=examples.epilog("skillbook pull"))
def pull(
    folder: Annotated[Path, typer.Argument(help="A new folder, which gets a file for each user.")],
    store: _Address,
    user: Annotated[list[str] | None, typer.Option(help="Only this user; may be given again.")] = None,
) -> None:
    """Write the skillbooks of a store into files, in ACE's format."""
    with plain_errors():
        from skg_bench.app.skillbook.moving import pull as command

        command(folder, store, user or [])
