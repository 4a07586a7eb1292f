"""A corpus that cannot carry the run that was asked for: said before anything is computed."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import skg_bench
from skg_bench.analysis import summary
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.errors import UsageError
from tests.simulator.users import small_corpus

TABLE = {"stable": ["joke"], "slot": ["translate"], "stale": {"rain": 3}, "also_slot": []}
ONE_ARM = ("arms={skg: []}", "reference=skg", "contrasts=[]")
PAIRS = [[f"{intent} {i}", intent] for intent in ("joke", "translate", "rain") for i in range(4)]


def run(corpus: Path, *more: str) -> list[str]:
    return [f"simulator.corpus={corpus}", "embedder=hashing", "users=4", "weeks=1", f"out={corpus / 'run'}",
            *ONE_ARM, *more]  # fmt: skip


def clinc(folder: Path, *more: str, **splits: Any) -> list[str]:
    """A run on a file in CLINC150's format."""
    (folder / "table.yaml").write_text(yaml.safe_dump(TABLE), "utf-8")
    (folder / "data.json").write_text(json.dumps({"test": PAIRS, **splits}), "utf-8")
    return ["simulator=clinc150", f"simulator.corpus.file={folder / 'data.json'}", "embedder=hashing",
            f"simulator.corpus.table={folder / 'table.yaml'}", "users=4", "weeks=1", f"out={folder / 'run'}",
            *ONE_ARM, *more]  # fmt: skip


def _empty(folder: Path) -> None:
    (folder / "one_offs.txt").write_text(" \n\n", "utf-8")


def _missing(folder: Path) -> None:
    (folder / "one_offs.txt").unlink()


@pytest.mark.parametrize("lose", [_empty, _missing])
def test_a_corpus_without_one_offs_is_refused_before_anything_is_embedded(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    small_corpus(tmp_path)
    lose(tmp_path)
    done = CliRunner().invoke(app, ["run", *run(tmp_path)])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"simulator.corpus={tmp_path} has no one-offs" in said
    assert "simulator.one_off_share=0.35 of messages are such: set simulator.one_off_share=0, or add one-offs" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("lose", [_empty, _missing])
def test_a_corpus_without_one_offs_carries_a_run_in_which_nobody_sends_any(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    small_corpus(tmp_path)
    lose(tmp_path)
    finished = skg_bench.run(run(tmp_path, "simulator.one_off_share=0", "simulator.accept=1"))
    assert finished.turns("skg")["request_type"].null_count == 0
    assert finished.updates("skg").num_rows > 0
    assert summary.read_summary(finished).saturation.one_offs_again is None


@pytest.mark.parametrize("splits", [{}, {"oos_test": []}])
def test_so_does_a_corpus_of_another_format(tmp_path: Path, splits: Any) -> None:
    with pytest.raises(UsageError, match=r"Clinc150\(.*\) has no one-offs.* simulator\.one_off_share=0\.35"):
        prepare(compose(clinc(tmp_path, **splits)))
    finished = skg_bench.run(clinc(tmp_path, "simulator.one_off_share=0", **splits))
    assert finished.turns("skg").num_rows > 0


def test_too_few_one_offs_are_said_before_the_run_with_the_share_that_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small_corpus(tmp_path)
    given = run(tmp_path, "simulator.one_off_share=0.5", "simulator.volume_spread=0.1")
    done = CliRunner().invoke(app, ["run", *given, "--dry-run"])
    assert done.exit_code == 0
    (line,) = [line for line in done.output.splitlines() if "too few one-offs" in line]
    assert f"{tmp_path} has too few one-offs for this run: about" in line
    with caplog.at_level(logging.WARNING, "skg_bench"):
        finished = skg_bench.run(given)
    assert [record.getMessage() for record in caplog.records if "one-offs" in record.getMessage()] == [line]
    share = float(line.partition("about ")[2].partition("%")[0]) / 100
    again = summary.read_summary(finished).saturation.one_offs_again
    assert again == pytest.approx(share, abs=0.05)
    assert again is not None
    assert again > 0.5


def test_nothing_is_said_of_a_corpus_that_is_large_enough() -> None:
    assert prepare(compose(["profile=smoke"])).cautions() == []
    assert prepare(compose(["profile=demo"])).cautions() == []
    (line,) = prepare(compose(["weeks=52"])).cautions()
    assert line.startswith("the built-in corpus has too few one-offs for this run: about ")
