"""The command line. Whatever takes time to import is imported by the command that needs it: --help within 0.3 s."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from skg_bench.app import examples, interrupts, memory_limit
from skg_bench.app.claim_arguments import claims_command
from skg_bench.app.data_arguments import data
from skg_bench.app.estimate_arguments import estimate_command
from skg_bench.app.forget_arguments import forget_command
from skg_bench.app.plain_errors import plain_errors
from skg_bench.app.plan_arguments import plan_command
from skg_bench.app.probe_arguments import probe_command
from skg_bench.app.skill_arguments import skills_command
from skg_bench.app.skillbook.cli import skillbook
from skg_bench.app.trust_option import Trust
from skg_bench.core import processes
from skg_bench.core.errors import UsageError
from skg_bench.core.package import VERSION

app = typer.Typer(
    help="Does an assistant get better because it learns? Simulate users, compare arms, read the page.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": examples.HELP},
)
app.add_typer(skillbook, name="skillbook")

counterexample = typer.Typer(
    help="Find and replay the smallest session in which arms differ.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(counterexample, name="counterexample")
app.add_typer(data, name="data")

RunFolders = Annotated[list[Path], typer.Argument(help="Run directories, such as runs/first-1a2b3c4d.")]
RunFolder = Annotated[Path, typer.Argument(help="A run directory.")]


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


@app.command(epilog=examples.epilog("run"))
def run(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="A log, or experiment=NAME profile=demo key=value ...", metavar="[LOG] [KEY=VALUE]..."),
    ] = None,
    multirun: Annotated[bool, typer.Option("--multirun", "-m", help="Run every combination of key=a,b,c.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its turns; run nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Verify every file of finished runs; run nothing.")] = False,
) -> None:
    """Simulate users under every arm; write tables and a page. Exit code of --check: 0 as written, 1 changed."""
    begins = not (check or dry_run)
    with plain_errors(resumes=begins, elsewhere="out=FOLDER" if begins else ""):
        if check:
            from skg_bench.app.run_check import check_runs

            if multirun or dry_run:
                raise UsageError("--check runs nothing; leave out --multirun and --dry-run")
            raise typer.Exit(0 if check_runs(overrides or []) else 1)
        from skg_bench.app.commands import run as command

        command(overrides or [], multirun=multirun, dry_run=dry_run)


app.command("estimate", epilog=examples.epilog("estimate"))(estimate_command)

app.command("plan", epilog=examples.epilog("plan"))(plan_command)

app.command("probe", epilog=examples.epilog("probe"))(probe_command)


@app.command(epilog=examples.epilog("compare"))
def compare(
    runs: RunFolders,
    *,
    reference: Annotated[str | None, typer.Option(help="Arm to compare with. Default: the run's reference.")] = None,
    correction: Annotated[
        str, typer.Option(help="How p-values are corrected for the number of arms: holm, bh or by.")
    ] = "holm",
    margin: Annotated[
        list[str] | None,
        typer.Option(
            help="Differences up to SIZE are too small to matter; tests equivalence. May be given again.",
            metavar="METRIC=SIZE",
        ),
    ] = None,
    flips: Annotated[
        int,
        typer.Option(help="Show N turns per arm that it got wrong and the reference got right, with the cause.", min=0),
    ] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the differences into this file, .svg.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric to print, or `all`. Default: utility. May be given again.", metavar="NAME"),
    ] = None,
) -> None:
    """Compare arms with a reference arm, user by user. Runs of several seeds are combined."""
    with plain_errors():
        from skg_bench.app.commands import compare as command

        command(
            runs, reference=reference, correction=correction, margins=margin or [], flips=flips, figure=figure,
            metrics=metric or [],
        )  # fmt: skip


@app.command(epilog=examples.epilog("gate"))
def gate(
    run: RunFolder,
    *,
    baseline: Annotated[Path, typer.Option(help="The committed baseline file.")],
    release: Annotated[
        Path | None,
        typer.Option(help="Baseline file of the last release. From it, too, no more than the budget may be lost."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Write the baseline file from RUN instead.")] = False,
    move_anchor: Annotated[
        bool,
        typer.Option(
            "--move-anchor", help="With --update: measure slow drift from RUN on, not from the first baseline."
        ),
    ] = False,
    arm: Annotated[
        str | None, typer.Option(help="With the first --update: the arm to gate. Default: the learner.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a test report here (JUnit XML).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a summary for a pull request here.")] = None,
    counterexample: Annotated[
        Path | None, typer.Option(help="Save the smallest session that shows what became worse, as a regression test.")
    ] = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print the verdict as annotations of GitHub Actions.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Exit code 0 only if no bit of the logs changed; 3 if bits changed and the gate passed."
        ),
    ] = False,
    builds: Annotated[
        int, typer.Option(help="Builds a year that change decisions; gives the number of false alarms a year.", min=1)
    ] = 250,
    unproven: Annotated[
        bool,
        typer.Option(
            "--unproven", help="Judge although the gated arm is not shown to beat `never`; a pass then proves little."
        ),
    ] = False,
    trust: Trust = False,
) -> None:
    """Compare a run with a committed baseline file. Exit code 0: passed, 1: failed, 2: bad input, 3: inconclusive."""
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


@app.command(epilog=examples.epilog("report"))
def report(
    runs: RunFolders,
    user: Annotated[
        list[str] | None,
        typer.Option(help="A user to look into, by number or by name in the log. May be given again."),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            help="A run of the same users with other arms; the page then shows its proof too. May be given again."
        ),
    ] = None,
) -> None:
    """Write the page of a run again, or of runs side by side."""
    with plain_errors():
        from skg_bench.app.commands import report as command

        command(runs, user or [], beside or [])


@app.command(epilog=examples.epilog("runs"))
def runs(
    folder: Annotated[Path, typer.Argument(help="A folder that holds run folders.")] = Path("runs"),
    order: Annotated[str, typer.Option("--sort", help="when, name or difference.")] = "when",
    text: Annotated[str, typer.Option("--only", help="Runs whose line or question has this text.")] = "",
    page: Annotated[Path | None, typer.Option(help="Write the list as a page into this file, .html.")] = None,
) -> None:
    """List runs: when, how large, and whether learning helped."""
    with plain_errors():
        from skg_bench.app.run_list import show_runs

        show_runs(folder, order, text, page)


app.command("forget", epilog=examples.epilog("forget"))(forget_command)

app.command("skills", epilog=examples.epilog("skills"))(skills_command)


@app.command(epilog=examples.epilog("init"))
def init(
    kind: Annotated[str, typer.Argument(help="ablation, assistant, log or gate.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
) -> None:
    """Make a folder to begin with. It works as it stands: an ablation, an assistant, a log, a gate."""
    with plain_errors():
        from skg_bench.app.templates import init_folder

        init_folder(kind, folder)


@app.command("list", epilog=examples.epilog("list"))
def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SEAM[.OPTION]]",
            help="A group such as router, policy or experiment: its options. policy.threshold: its parameters. config: "
            "keys of no group. Default: names of all options.",
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All options, with what each is.")] = False,
) -> None:
    """List options of each seam, and what parameters mean."""
    with plain_errors():
        if every and name:
            raise UsageError(f"--all shows all options; leave out {name}, or --all")
        if name is not None and ("." in name or name == "config"):
            from skg_bench.app.parameters import show_parameters

            show_parameters(name)
        else:
            from skg_bench.app.catalogue import show_options

            show_options(name, every=every)


app.command("claims", epilog=examples.epilog("claims"))(claims_command)


@app.command(
    epilog=examples.epilog("experiment"),
    context_settings={"allow_interspersed_args": False},  # what follows NAME is parsed by the experiment
)
def experiment(
    name: Annotated[
        str | None, typer.Argument(help="An experiment such as grid or speed. Default: list all with their questions.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Its arguments: see `skg-bench experiment NAME --help`. --write FOLDER writes its results.",
            metavar="RUN",
        ),
    ] = None,
) -> None:
    """Compute results of an experiment from its runs. Exit code 0: as expected, 1: not, 2: bad input."""
    with plain_errors():
        from skg_bench.app import experiments as command

        if name is None:
            command.show_experiments()
        else:
            raise typer.Exit(command.run_experiment(name, arguments or []))


@app.command(epilog=examples.epilog("export"))
def export(
    tracker: Annotated[str, typer.Argument(help="mlflow or opik.")],
    run: RunFolder,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="tracker.url=... tracker.users=5 ...", metavar="[KEY=VALUE]...")
    ] = None,
    deadline: Annotated[int, typer.Option(help="Seconds after which delivery is given up.", min=1, max=604_800)] = 600,
) -> None:
    """Deliver a finished run to MLflow or Opik, once. Exit code 0: all has arrived, 1: not all."""
    with plain_errors(resumes=True):
        from skg_bench.app.commands import export as command

        if not command(tracker, run, overrides or [], deadline):
            raise typer.Exit(1)


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


def main() -> None:
    """Run the command line in this process."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # no child takes modules from the current folder: see core.processes
    processes.collect_seldom()
    processes.load_pandas_late()
    interrupts.install_handlers()
    _open_streams()
    _spell_out()
    try:
        with plain_errors():  # of what typer prints itself, such as --help onto a full disk
            app()
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _open_streams() -> None:
    """Opens what the caller closed (`>&-`), so that nothing is printed there: it would be an error, with the exit code
    of a gate that says no. The lowest descriptors are taken, which a file of the run would else get.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  for the whole process
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _spell_out() -> None:
    r"""Lets names and texts of logs be printed where the terminal's encoding lacks a character, as \xf6: an error of
    encoding would end a command that has done its work, and with the exit code of a gate that says no.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
