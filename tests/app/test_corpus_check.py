"""What is said of a labelled corpus before a run, and what a run on one says: from the published file to the page."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import skg_bench
from skg_bench.analysis import summary
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.app.corpus_check import corpus_sentences, is_labelled_corpus
from skg_bench.app.launch import prepare
from tests.simulator.logs.published import INTENTS, banking77, hwu64, pairs


def run(path: Path, *more: str) -> list[str]:
    return ["simulator=labelled", f"simulator.corpus.path={path}", "embedder=hashing", "users=6", "weeks=2",
            f"out={path.parent / 'run'}", *more]  # fmt: skip


@pytest.mark.parametrize("published", [banking77, lambda folder: hwu64(folder / "hwu")], ids=["BANKING77", "HWU64"])
def test_one_command_leads_from_a_published_corpus_to_the_page(published: object, tmp_path: Path) -> None:
    path = published(tmp_path)  # type: ignore[operator]
    done = CliRunner().invoke(app, ["run", *run(path, "arms={skg: [], never: [policy=never, curator=none]}")])
    assert done.exit_code == 0, done.output
    finished = skg_bench.Run(tmp_path / "run")
    assert set(finished.turns("skg")["intent"].to_pylist()) <= set(INTENTS)
    source = "test.csv" if path.is_file() else "hwu/test"
    assert finished.manifest["corpus"] == {"source": source, "left_out": {}}
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert f"{source}; left out: no row" in page


def test_rows_that_are_left_out_are_said_before_the_run_and_stand_on_its_page(tmp_path: Path) -> None:
    path = banking77(tmp_path, [*pairs(), pairs()[0], ("", "limits")])
    line = "test.csv: left out 1 with a text that an earlier row has (row 242); 1 with no text (row 243)"
    assert prepare(compose(run(path))).cautions() == [line]
    assert f"Left out: {line.partition('left out ')[2]}" in (corpus_sentences(str(path)))


def test_what_is_said_of_a_corpus_is_true_of_a_run_on_it(tmp_path: Path) -> None:
    path = banking77(tmp_path, pairs(12))
    lines = corpus_sentences(str(path))
    assert lines[0] == (
        "test.csv is a labelled corpus: 72 messages of 6 intents, 12 to 12 of an intent (median 12), and 0 one-offs"
    )
    assert any(line.startswith("It has no answers, slot values, times, users or ratings") for line in lines)
    assert not any("fewer than 4 intents" in line for line in lines)
    assert any(line.startswith("It has no messages that nobody asks twice") for line in lines)
    (line,) = [line for line in lines if line.startswith("In 4 weeks")]
    assert line.endswith("are not testable: take fewer weeks, or a larger split")
    given = run(path, "users=16", "weeks=4", "arms={never: [policy=never, curator=none]}")
    finished = skg_bench.run(given)
    share = float(line.partition("about ")[2].partition("%")[0]) / 100
    assert summary.read_summary(finished).saturation.types_used_up == pytest.approx(share, abs=0.006)
    assert lines[-1] == f"A first run: skg-bench run simulator=labelled simulator.corpus.path={path} profile=smoke"


def test_of_few_intents_it_is_said_that_no_verdict_is_drawn(tmp_path: Path) -> None:
    rows = [pair for pair in pairs() if pair[1] in ("limits", "top_up")]
    assert any("fewer than 4 intents" in line for line in corpus_sentences(str(banking77(tmp_path, rows))))


@pytest.mark.parametrize("text", ["user,time,message,intent\nann,2024-03-04,hi,greet\n", "a,b\n1,2\n"])
def test_a_log_and_a_table_of_something_else_are_no_corpora(text: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(text, "utf-8")
    assert not is_labelled_corpus(str(tmp_path / "table.csv"))
    assert not is_labelled_corpus(str(tmp_path / "absent.csv"))
    assert not is_labelled_corpus(str(tmp_path))


def test_data_check_says_so_of_a_corpus_and_treats_a_log_as_one(tmp_path: Path) -> None:
    path = banking77(tmp_path, pairs(6))
    done = CliRunner().invoke(app, ["data", "check", str(path)])
    assert done.exit_code == 0, done.output
    size, *lines = done.output.splitlines()
    assert size.startswith(f"{path}: about 36 rows in ")
    assert lines == corpus_sentences(str(path))
    (tmp_path / "log.csv").write_text("user,time,message,intent\nann,2024-03-04,hi,greet\n", "utf-8")
    done = CliRunner().invoke(app, ["data", "check", str(tmp_path / "log.csv")])
    assert done.exit_code == 0, done.output
    assert "skg-bench run simulator=recorded" in done.output
