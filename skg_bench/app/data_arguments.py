"""The commands `data`, as Typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples
from skg_bench.app.plain_errors import plain_errors
from skg_bench.core.errors import UsageError

data = typer.Typer(
    help="Read logs, corpora, results, and public datasets.", no_args_is_help=True, rich_markup_mode=None
)


@data.command("check", epilog=examples.epilog("data check"))
def check_data(
    file: Annotated[
        str, typer.Argument(help="A log, or a labelled corpus: CSV, TSV, JSON lines, Parquet, a folder, hf:NAME.")
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


@data.command("import", epilog=examples.epilog("data import"))
def import_data(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, JSON lines or Parquet. Columns: user, event, arm, right or score. Optional: cost (US "
            "dollars), wait (seconds), text, intent.",
            metavar="TABLE",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="A new folder for the run.")],
    reference: Annotated[str | None, typer.Option(help="Arm to compare with. Default: the first in the table.")] = None,
    question: Annotated[str, typer.Option(help="Question of the experiment, for the page.")] = "",
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="Price in utility: wrong (an answer), usd (a US dollar), second (of waiting). May be given again.",
            metavar="NAME=SIZE",
        ),
    ] = None,
) -> None:
    """Make a run folder of results of another experiment.

    The commands compare, report, runs and gate take it. A row is the answer of one arm to one event of a user; each arm
    has the same events.
    """
    with plain_errors():
        from skg_bench.app.imported_run import import_table

        import_table(table, out, reference=reference, question=question, prices=price or [])


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


@data.command("label", epilog=examples.epilog("data label"))
def label_data(
    run: Annotated[
        Path,
        typer.Argument(
            help="The folder of a run that replays a log, or is on tasks; or a table of decisions: CSV, TSV, Parquet.",
            metavar="RUN",
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="The model of --judge model: curator.llm=recorded ...", metavar="[KEY=VALUE]..."),
    ] = None,
    *,
    n: Annotated[int, typer.Option("--n", help="Turns to draw, for the shares of all arms.", min=1)] = 60,
    following: Annotated[
        int | None,
        typer.Option("--next", help="Of a log: turns to draw, those that narrow the decision on one arm most.", min=1),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option(
            help="Of a table: a column of true and false. Half of the rows are drawn where it is true. Of a run: hit."
        ),
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option(
            "--read",
            help="A sheet with labels; its file name is the rater's. Repeat it for more raters. Read a file again to "
            "correct labels.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="exact, model, FILE.py:FUNCTION, MODULE:FUNCTION, or a sheet that a program filled. Labels of people "
            "correct its errors."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Most seconds that a function may take for an answer.", min=0.001)
    ] = 60.0,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Order in which turns are judged. Take another one for an arm that was tuned on labels.", min=0
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new CSV file for the turns to be judged.")] = None,
    page: Annotated[Path | None, typer.Option(help="A new HTML file: the same as a page that works offline.")] = None,
    arm: Annotated[str | None, typer.Option(help="Of a log: an arm that answers from memory. Default: all.")] = None,
    price: Annotated[
        float | None,
        typer.Option(
            help="Of a log: price of a wrong answer, in its money. Without prices there: in calls of the model.", min=0
        ),
    ] = None,
) -> None:
    """Draw turns for people to judge, or read their labels.

    On a log, labels say what share of answers from memory is wrong, and whether these pay. On tasks, they say which arm
    is right more often. Labels are kept beside the run. A table of decisions is written again with the rows to judge,
    for `estimate`.
    """
    with plain_errors(resumes=bool(judge)):
        if run.is_file() or first is not None:
            from skg_bench.app.audit_draw import draw_audit, draw_turns
            from skg_bench.simulator.logs.decision_table import decision_table

            given = {
                "KEY=VALUE": overrides,
                "--next": following,
                "--read": read,
                "--judge": judge,
                "--page": page,
                "--price": price,
                "--arm": arm if run.is_file() else None,
            }
            if wrong := next((option for option, value in given.items() if value not in (None, [])), None):
                kind = "is a table; it takes" if run.is_file() else "is a run; with --first it takes --arm,"
                raise UsageError(f"{wrong}: {run} {kind} --n, --first, --seed and --out")
            if not run.is_file():
                draw_turns(run, arm, n, str(first), out, seed=seed or 0)
                return
            then = "skg-bench estimate {} --policy NAME=COLUMN"
            draw_audit(decision_table(run), n, first, out, seed=seed or 0, then=then)
            return
        from skg_bench.app.labelling import draw_decisive, draw_sheets, take_labels

        if read or judge is not None:
            take_labels(
                run, read or [], arm=arm, price=price, judge=judge, seed=seed, overrides=overrides or [],
                seconds=seconds,
            )  # fmt: skip
        elif following is not None:
            draw_decisive(run, following, arm=arm, price=price, seed=seed, out=out, page=page)
        else:
            draw_sheets(run, n, seed, out, page)
