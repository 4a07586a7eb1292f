"""Files that are edited between two runs of one process: the second run has them as they are then."""

import shutil
from pathlib import Path

import pytest

from skg_bench.core.package import DATA
from skg_bench.simulator.answers.clinc150_file import clinc150_corpus
from skg_bench.simulator.answers.corpus import load_corpus
from skg_bench.simulator.facts.table import fact_table
from skg_bench.skillbook.library.strategies import packaged, strategies
from skg_bench.skillbook.library.strategy_files import CONTENTS_FILE
from tests.simulator.logs.test_clinc150 import SAID, corpus


def test_a_corpus_is_that_of_its_folder_as_it_is_and_of_the_place_from_which_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for here in ("one", "two"):
        shutil.copytree(DATA / "corpus", tmp_path / here / "mine", ignore=shutil.ignore_patterns("minilm*"))
    (tmp_path / "two" / "mine" / "one_offs.txt").write_text("what is this\n", "utf-8")
    monkeypatch.chdir(tmp_path / "one")
    whole = load_corpus("mine")
    assert load_corpus("mine") is whole  # and is read once as long as it stays
    monkeypatch.chdir(tmp_path / "two")
    assert len(load_corpus("mine").one_offs) == 1
    monkeypatch.chdir(tmp_path / "one")
    next(iter(sorted((tmp_path / "one" / "mine" / "intents").iterdir()))).unlink()
    assert len(load_corpus("mine").intents) < len(whole.intents)


def test_a_file_in_clinc150s_format_is_read_again_when_it_was_edited(tmp_path: Path) -> None:
    corpus(tmp_path)
    file, table = str(tmp_path / "said.json"), str(tmp_path / "table.yaml")
    before = clinc150_corpus(file, table, "train", 2)
    corpus(tmp_path, {**SAID, "oos_train": []})
    after = clinc150_corpus(file, table, "train", 2)
    assert (len(before.one_offs), len(after.one_offs)) == (2, 0)


def test_a_table_of_facts_is_read_again_when_it_was_edited(tmp_path: Path) -> None:
    file = tmp_path / "facts.yaml"
    shutil.copy(DATA / "facts" / "facts.yaml", file)
    built_in = load_corpus(DATA / "corpus")
    before = fact_table(str(file), built_in.types, built_in.intents)
    file.write_text(file.read_text("utf-8").replace("one_offs: world", "one_offs: nobody"), "utf-8")
    after = fact_table(str(file), built_in.types, built_in.intents)
    assert before.one_offs != after.one_offs
    assert before.digest != after.digest


def test_strategies_are_read_again_when_they_were_edited(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(packaged(), folder)
    before = strategies(str(folder))
    file = folder / CONTENTS_FILE
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    assert strategies(str(folder)).digest != before.digest
