"""Somebody else's folder of skills as the book that all users start with, against none and against a sham of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.app.skillbook.seed_books import seed_book
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.agent_skills import read_agent_skills, write_agent_skills
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.skillbook.skill_files import SKILL_FILE, skill_text
from tests.app.test_cli import call

NAMES = ("time-cost-framing", "cooling-off", "already-owned", "impulse-check-generic")
REPEATED = 60  # times that a body says its words, so that it is longer than a prompt may be


def folder_of(root: Path, bodies: tuple[int, ...]) -> Path:
    """Skills of four kinds of strategy, each with the body of the one that `bodies` names; in one lies a script."""
    table = strategies()
    texts = [table.contents[int(np.flatnonzero(table.kind == table.kinds.index(name))[0])] for name in NAMES]
    for name, text, body in zip(NAMES, texts, bodies, strict=True):
        (root / name).mkdir(parents=True)
        said = f"{texts[body].insight} {' '.join(texts[body].keywords)}\n" * REPEATED
        (root / name / SKILL_FILE).write_text(skill_text(name, text.issue, {"author": "somebody"}, said))
    (root / NAMES[0] / "run.sh").write_text(f"#!/bin/sh\ntouch {root.parent / 'it-ran'}\n")
    return root


def test_with_without_and_a_sham_in_one_run(tmp_path: Path) -> None:
    own, sham = folder_of(tmp_path / "own", (0, 1, 2, 3)), folder_of(tmp_path / "sham", (1, 2, 3, 0))
    arms = f"arms={{own: [], without: [seeds=null], sham: ['seeds={sham}'], twin: [], never: [policy=never]}}"
    shared = ["simulator=guardian", f"seeds={own}", "router=described", "curator=none"]
    more = ["policy=chooser", "embedder=guardian_minilm", "serving=prompted", "reranker=identity", "signs=pause"]
    run = skg_bench.run(
        [
            *shared,
            *more,
            arms,
            "reference=without",
            "contrasts=[]",
            "users=40",
            "weeks=8",
            "workers=1",
            f"out={tmp_path / 'run'}",
        ]
    )
    worth = {arm: run.turns(arm, ["worth_expected"])["worth_expected"].to_numpy() for arm in run.arms}
    skill = {arm: run.turns(arm, ["skill"])["skill"].to_numpy() for arm in run.arms}
    assert (skill["own"] >= 0).any()  # bodies are longer than the prompt, and are read all the same
    assert (skill["without"] < 0).all()
    assert np.array_equal(worth["without"], worth["never"])
    assert np.array_equal(worth["own"], worth["twin"])
    assert not np.array_equal(worth["own"], worth["sham"])
    assert not (tmp_path / "it-ran").exists()
    assert seed_book(str(own)).hash != seed_book(str(sham)).hash


def test_where_what_a_skill_says_changes_nothing_a_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    own = folder_of(tmp_path / "own", (0, 1, 2, 3))
    code, _, error = call("run", f"seeds={own}", "users=2", "weeks=1", f"out={tmp_path / 'run'}")
    assert code == 2
    assert "what a skill says changes nothing" in " ".join(error.split())
    assert "take a world that reads what skills say, one that judges words, or seeds=null" in " ".join(error.split())
    assert not (tmp_path / "run").exists()


def test_descriptions_are_listed_or_the_folder_is_refused(tmp_path: Path) -> None:
    own = folder_of(tmp_path / "own", (0, 1, 2, 3))
    with pytest.raises(UsageError, match=r"take router=described"):
        prepare(compose(["experiment=guardian", f"seeds={own}"]))


def test_a_folder_that_breaks_the_specification_starts_no_book(tmp_path: Path) -> None:
    own = folder_of(tmp_path / "own", (0, 1, 2, 3))
    (own / NAMES[1] / SKILL_FILE).write_text("no front matter")
    with pytest.raises(UsageError, match=rf"{NAMES[1]}/{SKILL_FILE}:1: it has no front matter"):
        seed_book(str(own))


def test_a_book_of_ace_as_a_folder_is_the_same_book_to_start_with(tmp_path: Path) -> None:
    book = seed_book("pro")
    code, _, _ = call("skillbook", "convert", _packaged("pro"), "--to", "agent-skills", "--out", str(tmp_path / "pro"))
    assert code == 0
    assert replace(seed_book(str(tmp_path / "pro")), described=False).hash == book.hash
    document = read_agent_skills(tmp_path / "pro", "now").book
    write_agent_skills(document, tmp_path / "again")
    assert seed_book(str(tmp_path / "again")).hash == book.hash


def _packaged(name: str) -> str:
    from skg_bench.core.package import named_books

    return str(named_books()[name])
