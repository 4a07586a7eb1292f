"""`skg-bench runs`: what was run, and what became of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import pytest

import skg_bench
from skg_bench.analysis.summary.listed_runs import ListedRun, listed_runs
from skg_bench.core import foreign
from tests.app.test_cli import call
from tests.runs import changed, save


@pytest.fixture
def folder(tiny_run: skg_bench.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs, of which one is not finished, a folder that is none, and a file."""
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("first", "second", "third"):
        shutil.copytree(tiny_run.path, tmp_path / name)
    changed(skg_bench.Run(tmp_path / "third"), incomplete=True)
    (tmp_path / "none").mkdir()
    (tmp_path / "file").write_text("", "utf-8")
    return tmp_path


def by_name(folder: Path) -> dict[str, ListedRun]:
    return {run.folder.name: run for run in listed_runs(folder)}


def test_a_run_is_listed_with_the_verdict_on_its_learner(folder: Path, tiny_run: skg_bench.Run) -> None:
    (row,) = [row for row in skg_bench.compare(tiny_run).rows if (row.arm, row.metric.name) == ("skg", "utility")]
    runs = by_name(folder)
    assert list(runs) == ["first", "second", "third"]
    first = runs["first"]
    assert (first.learner, first.verdict, first.state) == ("skg", row.difference.verdict, "whole")
    assert first.difference == pytest.approx(row.difference.estimate.mean)
    assert (runs["third"].state, runs["third"].verdict) == ("unfinished", "-")
    code, out, _ = call("runs", str(folder))
    assert code == 0
    assert f"{row.difference.verdict} " in out
    assert out.splitlines()[-1].startswith(f"3 runs in {folder}")


def test_three_users_have_no_verdict_in_a_list(elsewhere: Path) -> None:
    rows = [
        f"u{user},{event},{arm},{right}"
        for user in range(3)
        for event in range(9)
        for arm, right in (("a", 0), ("b", 1))
    ]
    Path("few.csv").write_text("\n".join(["user,event,arm,right", *rows]), "utf-8")
    assert call("data", "import", "few.csv", "--out", "runs/few")[0] == 0
    (listed,) = listed_runs(Path("runs"))
    assert (listed.learner, listed.verdict) == ("b", "undecided by 3 users")
    assert "undecided by 3 users" in call("runs")[1]


def test_each_file_is_opened_once_and_of_the_figures_only_those_of_a_line_are_parsed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, parsed = list[Path](), list[object]()
    open_file, whole = foreign.open_file, foreign.json_of

    def opening(path: Path, *most: int) -> BinaryIO:
        opened.append(path)
        return open_file(path, *most)

    def parsing(text: str, where: object) -> Any:
        parsed.append(where)
        return whole(text, where)

    monkeypatch.setattr(foreign, "open_file", opening)
    monkeypatch.setattr(foreign, "json_of", parsing)
    assert by_name(folder)["first"].verdict != "-"
    manifests = [folder / name / "manifest.json" for name in ("first", "second", "third")]
    assert sorted(opened) == sorted([*manifests, folder / "first" / "summary.json", folder / "second" / "summary.json"])
    assert sorted(map(str, parsed)) == sorted(map(str, manifests))


def test_runs_are_sorted_and_chosen(folder: Path) -> None:
    def names(*words: str) -> list[str]:
        return [line.split()[0] for line in call("runs", str(folder), *words)[1].splitlines()[1:-1]]

    assert names("--sort", "name") == ["first", "second", "third"]
    assert names("--sort", "difference")[-1] == "third"
    assert names("--only", "SECOND") == ["second"]
    assert names("--only", "unfinished") == ["third"]
    assert names("--only", "model alone", "--sort", "name") == ["first", "second", "third"]
    assert names("--only", "nowhere") == []


def test_the_list_is_a_page_of_the_same_runs(folder: Path) -> None:
    page = folder / "pages" / "all.html"
    page.parent.mkdir()
    code, out, err = call("runs", str(folder), "--page", str(page), "--only", "unfinished")
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"1 run in {folder}", f"page: {page}"]
    text = page.read_text("utf-8")
    assert 'href="../third/report.html"' in text
    assert "second" not in text
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize("name", ["all.txt", "nowhere/all.html"])
def test_a_page_that_cannot_be_written_is_refused(folder: Path, name: str) -> None:
    code, _, err = call("runs", str(folder), "--page", str(folder / name))
    assert code == 2
    assert name in err
    assert "Traceback" not in err
    assert not (folder / name).exists()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / "manifest.json").write_text("{", "utf-8"), "its manifest cannot be read"),
        (lambda run: save(run, {"schema": 12, "arms": []}), "its manifest cannot be read"),
        (lambda run: (run / "summary.json").unlink(), "no figures of this version: skg-bench report"),
        (lambda run: better(run / "summary.json"), "its figures were changed: skg-bench report"),
    ],
)
def test_a_run_without_figures_of_its_own_has_no_verdict(
    folder: Path, damage: Callable[[Path], object], says: str
) -> None:
    damage(folder / "first")
    first = by_name(folder)["first"]
    assert first.state.startswith(says)
    assert first.verdict == "-"


def better(file: Path) -> None:
    """Changes a verdict by hand."""
    content = json.loads(file.read_text("utf-8"))
    content["differences"]["skg"]["utility"]["verdict"] = "better"
    file.write_text(json.dumps(content), "utf-8")


def test_no_log_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pq, "ParquetFile", None)
    monkeypatch.setattr(pq, "read_table", None)
    assert len(by_name(folder)) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [(("nowhere",), "there is no folder nowhere"), ((".", "--sort", "worth"), "--sort worth: ")],
)
def test_a_wrong_folder_or_order_is_refused(words: tuple[str, ...], says: str, elsewhere: Path) -> None:
    code, _, err = call("runs", *words)
    assert code == 2
    assert says in err


def test_a_run_is_no_folder_of_runs(tiny_run: skg_bench.Run) -> None:
    """It was listed as `0 runs`, exit code 0."""
    code, _, err = call("runs", str(tiny_run.path))
    assert code == 2
    text = f"{tiny_run.path} is a run; name the folder that holds it: skg-bench runs {tiny_run.path.parent}"
    assert text in " ".join(err.split())
