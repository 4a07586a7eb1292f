"""`skg-bench experiment`: finds the experiments of the checkout, lists them, and runs one.

An entry is a module of `experiments/` with `EXPERIMENT = Experiment(analyse)`: `experiments/NAME/analysis.py` is called
NAME, any other module NAME/MODULE; benches stand in `experiments/bench/` and are called the same way. They are no part
of the package, which imports them here only, by name.
"""

import ast
import inspect
import os
import sys
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from skg_bench.app import table_blocks
from skg_bench.app.examples import HELP
from skg_bench.app.experiment_report import Report, check_folder
from skg_bench.app.progress import console, working
from skg_bench.core.errors import UsageError, install_hint, nearest
from skg_bench.core.foreign import text_of
from skg_bench.core.package import EXPERIMENTS, experiment_module
from skg_bench.runfolder.run import Run

OneRun = Annotated[Run, typer.Argument(parser=Run, metavar="RUN", help="A run directory.")]
Runs = Annotated[list[Run], typer.Argument(parser=Run, metavar="RUN", help="Run directories.")]
Overrides = Annotated[  # these, of experiments that draw worlds from a prior: skg_bench/study
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Such as simulator.habit=0: a parameter that is given is not drawn."),
]
Profile = Annotated[str, typer.Option(help="How many draws: demo (a minute and a half) or paper (minutes).")]
Number = Annotated[int | None, typer.Option("--draws", help="How many draws, whatever the profile.", min=1)]
Folder = Annotated[Path | None, typer.Option("--out", help="Keeps the draws; what is there already is kept.")]
PriorFile = Annotated[Path, typer.Option("--prior", help="Another prior, in the format of the project's.")]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_RESTARTED = "SKG_BENCH_RESTARTED"  # set where this process has taken the place of one that said what it does
_WRITE = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", help="Also write the page, its tables and all else into this folder."),
]
_CODES = "Exit code 0: the figures are as expected, 1: they are not, 2: bad input."


@dataclass(frozen=True)
class Experiment:
    """An entry: the parameters of `analyse`, annotated for typer, are the command's arguments and options.

    Without a report (`-> None`) there is nothing to print and no `--write`. `analyse` raises UsageError for bad input.
    """

    analyse: Callable[..., Report | None]
    one_thread: bool = False  # numpy on one BLAS thread, as in the workers of a run


def needed(run: Run, arms: Sequence[str], experiment: str) -> None:
    """Raise UsageError if `run` lacks one of these arms, which it has if `experiment` made it."""
    if missing := [arm for arm in arms if arm not in run.arms]:
        raise UsageError(
            f"{run.path} has no arm {missing[0]!r}; it has {', '.join(run.arms)}; make a run with all arms: "
            f"skg-bench run experiment={experiment}"
        )


def questions() -> dict[str, str]:
    """Question of each entry, by its name, without importing it: title of its README, or first line of its docstring.

    Raises UsageError where there is no checkout.
    """
    if EXPERIMENTS.name != "experiments" or not EXPERIMENTS.is_dir():
        raise UsageError(
            "experiments are files of the project's repository, and this is an installed package without them; clone "
            "the repository, install it from there with `pip install --editable .`, and give the command again"
        )
    lines = {}
    entries = [*EXPERIMENTS.glob("*/*.py"), *EXPERIMENTS.glob("bench/*/*.py")]
    for file in sorted(entries, key=lambda path: (path.parent.name, path.stem != "analysis", path)):
        text = text_of(file)
        if "\nEXPERIMENT = " not in text:
            continue
        if file.stem == "analysis":
            readme = text_of(file.parent / "README.md")
            lines[file.parent.name] = readme.splitlines()[0].lstrip("# ")
        else:
            lines[f"{file.parent.name}/{file.stem}"] = _docstring(text).split("\n")[0]
    return lines


def _docstring(text: str) -> str:
    """Docstring that a module begins with, of whose code nothing is parsed; empty if it has none."""
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    first = next(token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL))
    return str(ast.literal_eval(first.string)) if first.type == tokenize.STRING else ""


def show_experiments() -> None:
    """Print the names of all experiments with their questions.

    Raises UsageError.
    """
    screen = console()
    table_blocks.show_table(screen, ["experiment", "question"], list(questions().items()))
    screen.print("what one needs and can be told: skg-bench experiment NAME --help")


def run_experiment(name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of an experiment, analyse, print and write; returns the exit code.

    Raises UsageError, OSError, and what typer raises for arguments that do not fit.
    """
    known = questions()
    if name not in known:
        raise UsageError(f"there is no experiment {name!r}; {nearest(name, known)}")
    if _RESTARTED not in os.environ and not {*HELP} & {*arguments}:  # before anything heavy is imported
        console(sys.stderr).print(f"{name}: {known[name]}")
    folder, _, module = name.partition("/")
    path = f"{experiment_module(folder)}.{module or 'analysis'}"
    try:
        entry: Experiment = import_module(path).EXPERIMENT
        code: int = _command(name, known[name], entry)(
            args=list(arguments), prog_name=f"skg-bench experiment {name}", standalone_mode=False
        )
    except ModuleNotFoundError as error:
        if f"{path}.".startswith(f"{error.name}."):
            raise UsageError(
                f"Python finds another package `experiments` before {EXPERIMENTS}; give the command in another folder"
            ) from error
        if error.name is None or error.name.split(".")[0] in ("experiments", "skg_bench"):
            raise
        raise UsageError(
            f"experiment {name} needs the package {error.name}, which is not installed; install all that experiments "
            f"need: {install_hint('all')}"
        ) from error
    return code


def _command(name: str, question: str, entry: Experiment) -> Callable[..., int]:
    """The command line of an entry; it returns the exit code."""
    signature = inspect.signature(entry.analyse)
    hints = get_type_hints(entry.analyse, include_extras=True)
    parameters = list(signature.parameters.values())
    if hints.pop("return") is not type(None):
        write = inspect.Parameter("write", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_WRITE)
        parameters.append(write)
        hints["write"] = _WRITE

    def command(**given: Any) -> int:
        return _carry_out(name, entry, given)

    command.__doc__ = "\n\n".join((question, inspect.getdoc(entry.analyse) or "", _CODES))
    command.__annotations__ = hints
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    commands = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    commands.command(context_settings={"help_option_names": HELP})(command)
    return typer.main.get_command(commands)


def _carry_out(name: str, entry: Experiment, given: Mapping[str, Any]) -> int:
    folder: Path | None = given.get("write")
    if folder is not None:
        check_folder(folder)
    if entry.one_thread and any(os.environ.get(variable) != value for variable, value in ONE_THREAD.items()):
        # numpy reads these once, when it is imported: so start again
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD, _RESTARTED: "1"})  # noqa: S606
    with working(name, console(sys.stderr)):
        report = entry.analyse(**{parameter: value for parameter, value in given.items() if parameter != "write"})
    if report is None:
        return 0
    screen = console()
    report.show(screen)
    if folder is not None:
        for file in report.write(folder, name.rpartition("/")[2]):
            screen.print(f"written: {file}", soft_wrap=True)
    return int(not report.holds)
