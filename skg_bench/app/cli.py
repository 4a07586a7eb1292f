"""The command line. Whatever takes time to import is imported by the command that needs it: --help within 0.3 s."""

import os
from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples, interrupts, memory_limit
from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.skillbook.cli import Trust, skillbook
from skg_bench.core.errors import UsageError
from skg_bench.core.version import VERSION

app = typer.Typer(
    help="Does an assistant get better because it learns? Simulate users, compare arms, read the page.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(skillbook, name="skillbook")

counterexample = typer.Typer(help="The smallest session that shows it.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(counterexample, name="counterexample")

data = typer.Typer(help="Data of one's own, and datasets of others.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(data, name="data")

RunFolders = Annotated[list[Path], typer.Argument(help="Run directories, such as runs/assistant_growth-1a2b3c4d.")]
One = Annotated[Path, typer.Argument(help="A run directory.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skg-bench {VERSION}")
        raise typer.Exit


@app.callback()
def skg_bench_(
    version: Annotated[  # noqa: ARG001  its callback prints it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before all commands."""
    with plain_errors():
        memory_limit.check_limit()


@app.command(epilog=examples.of("run"))
def run(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="experiment=NAME profile=smoke|demo|paper key=value ...", metavar="[KEY=VALUE]..."),
    ] = None,
    multirun: Annotated[bool, typer.Option("--multirun", "-m", help="Run every combination of key=a,b,c.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its cost; run nothing.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify every file of the run instead; folders may stand for overrides.")
    ] = False,
) -> None:
    """Simulate users under every arm; write tables and a page. --check: exit code 0 if all is as it was, 1 if not."""
    with plain_errors():
        if check:
            from skg_bench.app.run_check import check_runs

            if multirun or dry_run:
                raise UsageError("--check runs nothing; leave out --multirun and --dry-run")
            raise typer.Exit(0 if check_runs(overrides or []) else 1)
        from skg_bench.app.commands import run as command

        command(overrides or [], multirun=multirun, dry_run=dry_run)


@app.command(epilog=examples.of("compare"))
def compare(
    runs: RunFolders,
    *,
    reference: Annotated[str | None, typer.Option(help="Arm to compare with; default: the run's own.")] = None,
    correction: Annotated[str, typer.Option(help="For the number of arms: holm, bh or by.")] = "holm",
    margin: Annotated[
        list[str] | None,
        typer.Option(
            help="What is too small to matter, to show equivalence; may be given again.", metavar="METRIC=SIZE"
        ),
    ] = None,
    flips: Annotated[
        int,
        typer.Option(help="Show N turns per arm that it got wrong and the reference got right, with the cause.", min=0),
    ] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the differences into this file, .svg.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="The metric to print, or all; default: utility; may be given again.", metavar="NAME"),
    ] = None,
) -> None:
    """Paired differences from the reference arm, with intervals. Several seeds are combined."""
    with plain_errors():
        from skg_bench.app.commands import compare as command

        command(
            runs, reference=reference, correction=correction, margins=margin or [], flips=flips, figure=figure,
            metrics=metric or [],
        )  # fmt: skip


@app.command(epilog=examples.of("gate"))
def gate(
    run: One,
    *,
    baseline: Annotated[Path, typer.Option(help="The committed baseline file.")],
    release: Annotated[Path | None, typer.Option(help="That of the last release, held to the budget.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Write the baseline file from RUN instead.")] = False,
    move_anchor: Annotated[
        bool, typer.Option("--move-anchor", help="With --update: measure drift from RUN on; else the anchor stays.")
    ] = False,
    arm: Annotated[str | None, typer.Option(help="With the first --update: arm to gate; default: the learner.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a test report here (JUnit XML).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a summary for a pull request here.")] = None,
    counterexample: Annotated[
        Path | None, typer.Option(help="Save the smallest session that shows what became worse, as a regression test.")
    ] = None,
    annotations: Annotated[bool, typer.Option("--annotations", help="Print workflow commands of GitHub.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Exit code 0 for the same bits only, 3 where others passed.")
    ] = False,
    builds: Annotated[int, typer.Option(help="Changing builds a year, to count false alarms.", min=1)] = 250,
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Go on though the gated arm is not ahead of never: it proves nothing.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Hold a run against a committed baseline file. Exit code 0: passed, 1: failed, 2: bad input, 3: inconclusive."""
    with plain_errors():
        from skg_bench.app import gate as command

        if update:
            if release or junit or markdown or counterexample or annotations or exact:
                raise UsageError("--update writes the baseline and gives no verdict; leave out the other outputs")
            command.update_command(run, baseline, arm, move_anchor=move_anchor, unproven=unproven)
        elif move_anchor:
            raise UsageError("--move-anchor writes the anchor from RUN; it goes with --update")
        elif arm is not None:
            raise UsageError(f"--arm {arm}: the baseline says which arm it is of; --arm goes with the first --update")
        else:
            files = command.Files(junit, markdown, counterexample, annotations)
            code = command.command(run, baseline, release, builds, files, trust=trust, exact=exact, unproven=unproven)
            raise typer.Exit(code)


@app.command(epilog=examples.of("report"))
def report(
    runs: RunFolders,
    user: Annotated[
        list[str] | None,
        typer.Option(help="A user to look into, by number or by the name in a log; may be given again."),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(help="A run of the same users with other arms, whose proof joins the page; may be given again."),
    ] = None,
) -> None:
    """Write the page again. It may show other users, and the proof of runs beside it."""
    with plain_errors():
        from skg_bench.app.commands import report as command

        command(runs, user or [], beside or [])


@app.command("list", epilog=examples.of("list"))
def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SEAM[.OPTION]]",
            help="router, policy, experiment, ...: its options; policy.threshold: its parameters; config: the keys of "
            "no seam; default: all options.",
        ),
    ] = None,
) -> None:
    """Options of each seam, and the meaning of their parameters."""
    with plain_errors():
        if name is not None and ("." in name or name == "config"):
            from skg_bench.app.parameters import show_parameters

            show_parameters(name)
        else:
            from skg_bench.app.catalogue import show_options

            show_options(name)


@app.command(epilog=examples.of("claims"))
def claims(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="K24 P31 ..., of --make and --check skg_parameters ...; default: all.", metavar="[ID]..."),
    ] = None,
    *,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that nothing carries yet.")] = False,
    form: Annotated[str, typer.Option("--format", help="table, markdown or json.")] = "table",
    make: Annotated[
        bool, typer.Option("--make", help="Make the files of findings of experiments anew; says first what it costs.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Do the files of experiments still count? A small run of each tells.")
    ] = False,
    runs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Of --make: where runs are kept; default: runs/claims.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Of --make: print commands and CPU minutes only.")] = False,
) -> None:
    """Claims of the sources, and what was found. Which tests and experiments carry each claim. Exit code 2 where a
    file of findings is refused.
    """
    with plain_errors():
        if make or check:
            from skg_bench.app import claim_files

            if make and check:
                raise UsageError("--make and --check: give one of them")
            claim_files.check_findings(ids or []) if check else claim_files.make(ids or [], runs, dry=dry_run)
            return
        from skg_bench.app.claim_tables import show_claims

        show_claims(ids or [], form, only_open=only_open)


@app.command(
    epilog=examples.of("experiment"),
    context_settings={"allow_interspersed_args": False},  # what follows NAME is parsed by the experiment
)
def experiment(
    name: Annotated[
        str | None, typer.Argument(help="grid, speed, ...; default: list all with their questions.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="As `skg-bench experiment NAME --help` says; --write FOLDER writes all that is made.",
            metavar="RUN",
        ),
    ] = None,
) -> None:
    """Results that an experiment's README states, from runs. Exit code 0: as expected, 1: not, 2: bad input."""
    with plain_errors():
        from skg_bench.app import experiments as command

        if name is None:
            command.show_experiments()
        else:
            raise typer.Exit(command.run_experiment(name, arguments or []))


@data.command("check", epilog=examples.of("data check"))
def check_data(
    file: Annotated[
        Path, typer.Argument(help="A log, or a labelled corpus: CSV, TSV, JSON lines, Parquet, a folder, hf:NAME.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="What is known better: simulator.day_first=true ...", metavar="[KEY=VALUE]..."),
    ] = None,
) -> None:
    """Guess how a log is written, and print the command that replays it. What a run can show, and what was left out."""
    with plain_errors():
        from skg_bench.app.log_check import check_log

        check_log(file, overrides or [])


@data.command("list", epilog=examples.of("data list"))
def list_data() -> None:
    """Datasets, with licence, and whether they are here."""
    with plain_errors():
        from skg_bench.app.dataset_commands import show_datasets

        show_datasets()


@data.command("get", epilog=examples.of("data get"))
def get_data(
    name: Annotated[str, typer.Argument(help="As `skg-bench data list` shows it.")],
    source: Annotated[Path | None, typer.Option("--from", help="A folder with a copy; default: the publisher.")] = None,
) -> None:
    """Fetch one from its publisher, or from a copy, and check it."""
    with plain_errors():
        from skg_bench.app.dataset_commands import get

        get(name, source)


@app.command(epilog=examples.of("export"))
def export(
    tracker: Annotated[str, typer.Argument(help="mlflow or opik.")],
    run: One,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="tracker.url=... tracker.users=5 ...", metavar="[KEY=VALUE]...")
    ] = None,
    deadline: Annotated[int, typer.Option(help="Seconds after which it gives up.", min=1, max=604_800)] = 600,
) -> None:
    """Deliver a finished run to MLflow or Opik, once. Exit code 0: all is there, 1: not all."""
    with plain_errors():
        from skg_bench.app.commands import export as command

        if not command(tracker, run, overrides or [], deadline):
            raise typer.Exit(1)


@counterexample.command("find", epilog=examples.of("counterexample find"))
def find(
    runs: Annotated[list[Path], typer.Argument(help="The run; or that of the arm and that of the reference.")],
    *,
    arm: Annotated[str, typer.Option(help="Name of the arm.")],
    reference: Annotated[str | None, typer.Option(help="The arm that it differs from; default: the run's own.")] = None,
    user: Annotated[int | None, typer.Option(help="Number of the user; default: who comes first.")] = None,
    turn: Annotated[int | None, typer.Option(help="A turn that one arm answers rightly and the other not.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="Instead: the sign of a difference over the whole session.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it here, as a regression test (.json).")] = None,
    trust: Trust = False,
) -> None:
    """Find the fewest events at which two arms still differ. Events are left out, the draws of others unchanged."""
    with plain_errors():
        from skg_bench.app.counterexample.commands import find as command

        command(runs, arm, reference, user=user, turn=turn, metric=metric, out=out, trust=trust)


@counterexample.command("replay", epilog=examples.of("counterexample replay"))
def replay_cases(
    files: Annotated[list[Path], typer.Argument(help="Files that `counterexample find` wrote.")],
    trust: Trust = False,
) -> None:
    """Do the arms still do what they did? Exit code 0: yes, 1: no."""
    with plain_errors():
        from skg_bench.app.counterexample.commands import replay as command

        if not command(files, trust=trust):
            raise typer.Exit(1)


def main() -> None:
    """Entry point of `skg-bench`."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # no child takes modules from the current folder: see core.children
    interrupts.install_handlers()
    app()
