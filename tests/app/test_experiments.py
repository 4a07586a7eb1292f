"""`skg-bench experiment`: one frame parses, prints, writes and ends for all experiments."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skg_bench.app import experiments
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.runfolder.run import Run
from tests.app.test_cli import ENVIRONMENT, ROOT, call, refused

NAMES = sorted(experiments.questions())
TOY = '''
"""A toy."""
import os
from typing import Annotated
import typer
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs
from skg_bench.core.errors import UsageError

def analyse(
    runs: Runs,
    times: Annotated[int, typer.Option(help="Say it so often.", min=1)] = 2,
    worse: Annotated[bool, typer.Option("--worse", help="Break the expectation.")] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help="Name a claim that no source has.")] = False,
    absent: Annotated[bool, typer.Option("--absent", help="Need a package that is not installed.")] = False,
) -> Report:
    """Counts users."""
    if absent:
        import a_package_of_nobody
    if times > 9:
        raise UsageError(f"--times {times}: at most 9")
    table = Table("users", ("run", "users | all"), [(run.path.name, f"{run.manifest['users']}") for run in runs])
    evidence = Evidence("toy", "abc", 1, 1, (0,))
    def findings():
        return [Finding("K99" if unknown else "K01", "a", "b", "robust", "c", evidence)]
    return Report([table, "once more " * times], page("Toy", "toy", table), not worse, {"toy.svg": "<svg/>"}, findings)

EXPERIMENT = Experiment(analyse)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with an experiment named `toy_question`."""
    folder = tmp_path / "checkout" / "experiments" / "toy_question"
    folder.mkdir(parents=True)
    (folder / "analysis.py").write_text(TOY, "utf-8")
    (folder / "README.md").write_text("# How many are there?\n", "utf-8")
    monkeypatch.setattr(experiments, "EXPERIMENTS", folder.parent)
    monkeypatch.syspath_prepend(folder.parent.parent)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("experiments.toy_question")]:
        del sys.modules[name]


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_without_a_name_every_experiment_is_listed_with_its_question() -> None:
    code, out, _ = call("experiment")
    assert code == 0
    assert "pairing_gain" in out
    assert "What is pairing worth?" in out
    folders = {path.parent.name for path in (ROOT / "experiments").rglob("README.md")}
    assert folders == {name for name in NAMES if "/" not in name}
    for question in experiments.questions().values():
        assert 0 < len(question) <= 120


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    assert "there is no experiment 'pairing_gian'; did you mean 'pairing_gain'?" in refused(
        "experiment", "pairing_gian"
    )


@pytest.mark.parametrize("name", NAMES)
def test_help_tells_question_options_and_exit_codes(name: str) -> None:
    code, out, err = call("experiment", name, "--help")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith(f"Usage: skg-bench experiment {name} ")
    assert experiments.questions()[name] in words
    assert "Exit code 0: the figures are as expected, 1: they are not, 2: bad input." in words


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_refused(name: str) -> None:
    assert "--nonsense" in refused("experiment", name, "--nonsense")


def test_the_parameters_of_the_analysis_are_arguments_and_options(toy: Path, tiny_run: Run) -> None:
    code, out, _ = call("experiment", "toy_question", str(tiny_run.path), str(tiny_run.path), "--times", "3")
    assert code == 0
    assert out.count("tiny ") == 2
    assert "once more once more once more" in out
    assert not re.search("written", out)


def test_the_exit_code_says_whether_figures_are_as_expected(toy: Path, tiny_run: Run) -> None:
    assert call("experiment", "toy_question", str(tiny_run.path))[0] == 0
    assert call("experiment", "toy_question", str(tiny_run.path), "--worse")[0] == 1
    assert "--times 10: at most 9" in refused("experiment", "toy_question", str(tiny_run.path), "--times", "10")
    assert "'--times'" in refused("experiment", "toy_question", str(tiny_run.path), "--times", "0")
    assert "is no run directory" in refused("experiment", "toy_question", str(toy / "nowhere"))
    assert "Missing argument 'RUN'" in refused("experiment", "toy_question")
    words = refused("experiment", "toy_question", str(tiny_run.path), "--absent")
    assert "needs the package a_package_of_nobody" in words


def test_write_makes_page_tables_figures_and_findings_and_prints_all_the_same(toy: Path, tiny_run: Run) -> None:
    folder = toy / "new" / "reports"
    code, out, _ = call("experiment", "toy_question", str(tiny_run.path), "--write", str(folder))
    assert code == 0
    assert "once more" in out
    assert files(folder) == ["claims/toy_question.json", "toy.svg", "toy_question.csv", "toy_question.md"]
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("written: ")]
    text = (folder / "toy_question.md").read_text("utf-8")
    assert text.endswith("## users\n\n| run | users \\| all |\n| --- | ---: |\n| tiny | 4 |\n")
    with (folder / "toy_question.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["run", "users | all"], ["tiny", "4"]]


def test_what_is_not_as_expected_is_written_too(toy: Path, tiny_run: Run) -> None:
    assert call("experiment", "toy_question", str(tiny_run.path), "--worse", "--write", str(toy / "out"))[0] == 1
    assert len(files(toy / "out")) == 4


@pytest.mark.parametrize("obstacle", ["--unknown", "toy_question.md/", "claims"])
def test_write_writes_all_or_nothing(toy: Path, tiny_run: Run, obstacle: str) -> None:
    folder = toy / "reports"
    folder.mkdir()
    (folder / "toy.svg").write_text("as it was")
    words = ["experiment", "toy_question", str(tiny_run.path), "--write", str(folder)]
    if obstacle.startswith("--"):
        words.append(obstacle)
    elif obstacle.endswith("/"):
        (folder / obstacle).mkdir()
    else:
        (folder / obstacle).write_text("a file")
    before = sorted(folder.rglob("*"))
    assert "error:" in refused(*words)
    assert sorted(folder.rglob("*")) == before
    assert (folder / "toy.svg").read_text() == "as it was"


def test_a_file_in_place_of_the_folder_is_refused_before_anything_is_analysed(toy: Path, tiny_run: Run) -> None:
    file = toy / "report.md"
    file.write_text("as it was")
    words = refused("experiment", "toy_question", str(tiny_run.path), "--times", "10", "--write", str(file))
    assert f"{file} is a file; give a folder, such as {toy}" in words
    assert file.read_text() == "as it was"


def test_an_installed_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (ROOT / "_experiments", ROOT / "nowhere" / "experiments"):
        monkeypatch.setattr(experiments, "EXPERIMENTS", folder)
        assert "clone the repository, install it from there" in refused("experiment")
        assert "clone the repository, install it from there" in refused("experiment", "grid")


def test_a_package_of_the_same_name_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "skg_bench", "experiment", "pairing_gain", "--help"],
        cwd=tmp_path, env={**ENVIRONMENT, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"another package `experiments` before {ROOT / 'experiments'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_columns_of_figures_are_aligned_to_the_right() -> None:
    table = Table("", ("arm", "a", "b", "c"), [("1", "-0.2 (-1 to 2)", "", "x 1"), ("2", "**+3**", "-", "2")])
    assert table.markdown().splitlines()[1] == "| --- | ---: | --- | --- |"
    assert page("T", "make it", "Words.", table.markdown()).startswith("# T\n\n`make it`\n\nWords.\n\n| arm |")


def test_several_tables_are_files_by_their_titles(tmp_path: Path) -> None:
    report = Report([Table(title, ("a",), []) for title in ("Live - frozen", "swaps", "Swaps")], "page\n")
    names = [file.name for file in report.write(tmp_path, "x")]
    assert names == ["x.md", "x_live_frozen.csv", "x_swaps.csv", "x_swaps_2.csv"]


def test_what_is_timed_on_one_thread_starts_again_with_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []

    def execve(program: str, words: list[str], environment: dict[str, str]) -> None:
        started.append((words, environment))
        raise KeyboardInterrupt  # as it does, this never returns

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert call("experiment", "speed", "--quick")[0] == 130
    ((words, environment),) = started
    assert words == sys.orig_argv
    assert (environment["OPENBLAS_NUM_THREADS"], environment["OMP_NUM_THREADS"]) == ("1", "1")


def test_commands_that_documents_name_exist() -> None:
    texts = [*ROOT.glob("experiments/**/*"), ROOT / "README.md", ROOT / "Makefile", *ROOT.glob("skg_bench/app/*.py")]
    named = set()
    for file in texts:
        if file.is_file() and file.suffix != ".pyc":
            text = file.read_text("utf-8")
            assert "python -m experiments." not in text, file
            named |= set(re.findall(r"skg-bench experiment ([a-z][a-z0-9_/]*)", text))
    assert named == set(NAMES)


def test_the_first_line_says_what_is_asked_before_the_experiment_is_imported(toy: Path, tiny_run: Run) -> None:
    (toy / "checkout" / "experiments" / "toy_question" / "analysis.py").write_text(
        f"import sys\nprint('imported', file=sys.stderr)\n{TOY.lstrip()}", "utf-8"
    )
    code, out, err = call("experiment", "toy_question", str(tiny_run.path))
    assert code == 0
    assert err.splitlines() == ["toy_question: How many are there?", "imported"]
    assert "How many are there?" not in out
    assert call("experiment", "toy_question", "--help")[2] == ""
