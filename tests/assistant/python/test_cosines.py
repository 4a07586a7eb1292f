"""Cosines of hits of assistants in words: logged, on the page, and on one scale with everybody's thresholds."""

from pathlib import Path

import pytest

from skg_bench.analysis.report.hit_cosines import cosine_sentences, hit_cosines
from skg_bench.embedder.hashing import Hashing
from skg_bench.runfolder.run import Run
from tests.assistant.plugin import run
from tests.assistant.python.test_objects import NEVER, arms, rows, unchecked

TABLE = {
    "never": NEVER,
    "near": unchecked("NearCache", "assistant.parameters={threshold: 0.8}"),
    "dict": unchecked("ExactCache"),
    "recalls": unchecked("Recalling"),
    "guess": unchecked("Guessing"),
}
COLUMNS = ["user", "turn", "message", "serving", "source_turn", "skill_score"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "base"
    return run(out, arms(**TABLE), "reference=never", "embedder=hashing", "users=3", "seed=1")


def test_hits_have_the_cosine_to_the_message_whose_answer_came_back(base: Run) -> None:
    embed, said = Hashing(384, 0).embed, {}
    for row in rows(base, "near", *COLUMNS):
        said[row["user"], row["turn"]] = row["message"]
        assert (row["skill_score"] is None) == (row["serving"] == "llm")
        if row["serving"] == "stored":
            one, other = embed([row["message"], said[row["user"], row["source_turn"]]]) / 4000
            assert row["skill_score"] == pytest.approx(min(1.0, one @ other), abs=2e-5)
            assert row["skill_score"] >= 0.7999
    same = [row["skill_score"] for row in rows(base, "dict", *COLUMNS) if row["serving"] == "stored"]
    assert min(same) > 0.998  # but for the grid of vectors


def test_an_answer_in_the_prompt_has_one_and_a_leak_has_none(base: Run) -> None:
    prompted = [row["skill_score"] for row in rows(base, "recalls", *COLUMNS) if row["serving"] == "prompted"]
    assert prompted
    assert all(0 <= cosine <= 1 for cosine in prompted)
    assert {row["skill_score"] for row in rows(base, "guess", *COLUMNS)} == {None}


def test_cosines_stand_on_the_page_and_after_the_verdict(base: Run) -> None:
    table = {(each.arm, each.kind): each for each in hit_cosines(base)}
    assert set(table) == {(arm, kind) for arm in ("near", "dict", "recalls") for kind in ("right", "wrong")}
    near = [table["near", "right"], table["near", "wrong"]]
    least = min(each.cosines.min() for each in near)
    assert 0.7999 <= least < 0.85
    hits = sum(row["serving"] == "stored" for row in rows(base, "near", *COLUMNS))
    assert sum(len(each.cosines) for each in near) == hits > 20
    page = (base.path / "report.html").read_text("utf-8")
    assert "".join(f"<td>{cell}</td>" for cell in near[0].cells) in page
    assert f"message that near answered from memory has a cosine of {least:.3f} to an earlier one" in " ".join(
        each.text for each in cosine_sentences(base)
    )


def test_of_a_cache_of_equal_texts_no_sentence_says_that_they_are_near(base: Run) -> None:
    """`dict` gives an answer again to the very same message alone."""
    assert {each.arm for each in hit_cosines(base)} == {"near", "dict", "recalls"}
    said = {
        next(arm for arm in ("near", "dict", "recalls") if f" {arm} " in each.text) for each in cosine_sentences(base)
    }
    assert said == {"near", "recalls"}


def test_a_run_without_words_has_no_such_table(base: Run, tmp_path: Path) -> None:
    alone = run(tmp_path / "run", arms(never=NEVER), "reference=never", "users=2", "weeks=1")
    assert hit_cosines(alone) == []
    assert "How near hits are" in (base.path / "report.html").read_text("utf-8")
    assert "How near hits are" not in (alone.path / "report.html").read_text("utf-8")
