"""`skillbook show, diff, apply, convert` on skillbooks in files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.skillbook import files
from skg_bench.skillbook.ace.book import to_dict
from tests.app.test_cli import call

GOLDEN = Path(__file__).parents[2] / "golden"
ROOKIE, PRO = GOLDEN / "rookie.json", GOLDEN / "pro.json"
ADD = {
    "type": "ADD", "section": "context", "keywords": ["logging"], "issue": "Shapes do not match.",
    "insight": "Log the payload.",
}  # fmt: skip


def saved(folder: Path, name: str, value: Any) -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(path)


def batch(folder: Path, *operations: Mapping[str, Any]) -> str:
    return saved(folder, "batch.json", {"reasoning": "", "operations": list(operations)})


@pytest.mark.req("P11", "P13")
def test_show_prints_a_book_and_what_it_says_in_a_prompt() -> None:
    code, out, _ = call("skillbook", "show", str(PRO))
    assert code == 0
    assert "[context-00002] context (electronics, owned)" in out
    assert out.index("[context-00002]") < out.index("[context-00001]")  # 5 of 5 helped, 15 of 18
    assert "in a prompt: 2 skills" in out
    assert "2 active skills" in out


def test_diff_shows_what_differs_skill_by_skill(tmp_path: Path) -> None:
    after = str(tmp_path / "after.json")
    tag = {"type": "TAG", "section": "context", "skill_id": "context-00001", "metadata": {"delta": 1}}
    assert call("skillbook", "apply", str(PRO), batch(tmp_path, ADD, tag), "--out", after)[0] == 0
    code, out, _ = call("skillbook", "diff", str(PRO), after)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["context-00001", "helpful_count", "15", "->", "16"] in rows
    assert any(row[:3] == ["context-00004", "issue", "+"] for row in rows)
    assert "2 skills differ; 2 active skills before, 3 after" in out
    assert "0 skills differ" in call("skillbook", "diff", str(PRO), str(PRO))[1]


@pytest.mark.req("U07", "U08")
def test_a_strict_batch_is_applied_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "after.json"
    wrong = {"type": "REMOVE", "section": "context", "skill_id": "context-00099"}
    code, _, error = call("skillbook", "apply", str(PRO), batch(tmp_path, ADD, wrong), "--out", str(out))
    assert code == 2
    assert "context-00099" in error
    assert not out.exists()


@pytest.mark.req("U08")
def test_a_published_engine_keeps_what_came_before_the_operation_that_fails(tmp_path: Path) -> None:
    out = tmp_path / "after.json"
    empty = {"type": "ADD", "section": "context", "keywords": ["x"], "issue": " "}
    code, said, _ = call(
        "skillbook", "apply", str(PRO), batch(tmp_path, ADD, empty), "--mode", "compat-v2", "--out", str(out)
    )
    assert code == 1
    assert "compat-v2 fails with" in said
    assert list(files.read_ace_book(out).skills)[-1] == "context-00004"


@pytest.mark.req("P28", "P24")
def test_the_tag_of_the_articles_example_cannot_say_which_way(tmp_path: Path) -> None:
    """P28: an override tags the generic strategy as harmful and adds a better one. The operations of P24 have no field
    that says harmful, and the engine of the counter era changes nothing.
    """
    tag = {"type": "TAG", "section": "impulse-check-generic", "skill_id": "impulse-check-generic-00001"}
    add = {"type": "ADD", "section": "time-cost-framing", "content": "That's 4 hours of your hourly rate."}
    out = tmp_path / "after.json"
    code, *_ = call(
        "skillbook", "apply", str(ROOKIE), batch(tmp_path, tag, add), "--mode", "compat-v1", "--out", str(out)
    )
    assert code == 0
    before, after = (to_dict(files.read_ace_book(path))["skills"] for path in (ROOKIE, out))
    first = "impulse-check-generic-00001"
    counters = ("helpful", "harmful", "neutral")
    assert [after[first][name] for name in counters] == [before[first][name] for name in counters]
    assert after["time-cost-framing-00005"]["content"] == "That's 4 hours of your hourly rate."


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("torn.json", '{"skills": {', "the skillbook"),
        ("list.json", "[]", "the skillbook"),
        ("old.json", json.dumps({**json.loads(PRO.read_text()), "schema_version": "1"}), "schema_version"),
        ("mixed.json", json.dumps({k: v for k, v in json.loads(PRO.read_text()).items() if k != "schema_version"}), ""),
    ],
)  # fmt: skip
def test_files_that_hold_no_skillbook_are_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    code, out, error = call("skillbook", "show", saved(tmp_path, name, text))
    assert (code, out) == (2, "")
    assert error.startswith("error: ")
    assert says in error


def test_a_text_beyond_the_limit_is_refused_with_its_size(tmp_path: Path) -> None:
    long = {**ADD, "insight": "x" * 2_000_000}
    code, _, error = call("skillbook", "apply", str(PRO), batch(tmp_path, long))
    assert code == 2
    assert "2,000,000" in error
    assert "20,000" in error
    assert call("skillbook", "apply", str(PRO), batch(tmp_path, long), "--limit", "2000000")[0] == 0


@pytest.mark.parametrize(("path", "operation", "era", "other"), [
    (PRO, {"type": "ADD", "section": "context", "content": "Split."}, "v2", "v1"),
    (PRO, {"type": "TAG", "skill_id": "context-00001", "metadata": {"harmful": 1}}, "v2", "v1"),
    (ROOKIE, ADD, "v1", "v2"),
])  # fmt: skip
def test_a_batch_of_another_format_is_refused_with_the_cause(
    tmp_path: Path, path: Path, operation: Mapping[str, Any], era: str, other: str
) -> None:
    code, _, error = call("skillbook", "apply", str(path), batch(tmp_path, operation))
    error = " ".join(error.split())
    assert code == 2
    assert f"The batch looks like one of {other}, but the book is of {era}" in error
    assert f"skg-bench skillbook convert BOOK --to {other}" in error
    converted, out = tmp_path / "converted.json", tmp_path / "after.json"
    assert call("skillbook", "convert", str(path), "--to", other, "--out", str(converted))[0] == 0
    assert call("skillbook", "apply", str(converted), batch(tmp_path, operation), "--out", str(out))[0] == 0


def test_a_wrong_batch_of_the_same_format_names_no_other(tmp_path: Path) -> None:
    wrongs: list[Any] = [{**ADD, "keywords": []}, {**ADD, "content": "both"}, "garbage", {"type": "TAG", "metadata": 3}]
    for wrong in wrongs:
        code, _, error = call("skillbook", "apply", str(PRO), batch(tmp_path, wrong))
        assert code == 2
        assert "looks like" not in error


def test_hidden_characters_of_a_skill_are_shown_as_escapes(tmp_path: Path) -> None:
    """A right-to-left override would show the text backwards; zero-width characters would not show at all."""
    evil = {**ADD, "issue": "Pay \u202eeve\u202c now\u200b\U000e0041.", "insight": "👩\u200d💻 नम\u200dस्ते"}
    after = tmp_path / "after.json"
    assert call("skillbook", "apply", str(PRO), batch(tmp_path, evil), "--out", str(after))[0] == 0
    shown = [
        call("skillbook", "show", str(after))[1], call("skillbook", "diff", str(PRO), str(after))[1],
        call("skillbook", "apply", str(PRO), batch(tmp_path, evil))[1],
    ]  # fmt: skip
    for text in shown:
        assert r"Pay \u202eeve\u202c now\u200b\U000e0041." in text
        assert "👩\u200d💻 नम\u200dस्ते" in text
        assert not set(text) & set("\u202e\u202c\u200b\U000e0041")


def test_no_file_is_written_over(tmp_path: Path) -> None:
    there = saved(tmp_path, "there.json", "precious")
    for command in (("apply", str(PRO), batch(tmp_path, ADD)), ("convert", str(PRO), "--to", "v1")):
        code, _, error = call("skillbook", *command, "--out", there)
        assert code == 2
        assert "is there already" in error
    assert Path(there).read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", str(PRO), "--arm", "skg"), "--arm skg"),
        (("show", str(PRO), "--skill", "1"), "is no run"),
        (("show", "nowhere.json"), "does not exist"),
        (("diff", str(PRO)), "name another one"),
        (("apply", str(PRO), str(PRO), "--mode", "loose"), "valid are strict, compat-v1, compat-v09, compat-v2"),
        (("apply", str(ROOKIE), str(PRO), "--mode", "compat-v2"), "books of v2; this book is of v1"),
        (("convert", str(PRO), "--to", "v3", "--out", "x"), "valid are agentropy, agent-skills, v1, v09, v2"),
        (("convert", str(PRO), "--to", "agentropy", "--out", "x"), "which only runs have"),
        (("convert", str(PRO), "--to", "v1", "--user", "3", "--out", "x"), "--user 3"),
        (("convert", str(PRO), "--to", "v1", "--arm", "skg", "--out", "x"), "--arm skg"),
        (("diff", str(PRO), str(ROOKIE), "--turn", "3"), "--turn 3"),
        (("diff", str(PRO), str(ROOKIE), "--since", "3"), "--since 3"),
    ],
)  # fmt: skip
def test_what_goes_together_is_said(arguments: tuple[str, ...], says: str) -> None:
    code, out, error = call("skillbook", *arguments)
    assert (code, out) == (2, "")
    assert says in error


# ------------------------------------------------------------------------------------------- what is told apart


def test_skills_of_files_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """The counter era erases a removed skill, so that all later ones move up."""
    out = tmp_path / "after.json"
    remove = {"type": "REMOVE", "section": "wait-a-day", "skill_id": "wait-00002"}
    code, text, _ = call(
        "skillbook", "apply", str(ROOKIE), batch(tmp_path, remove), "--mode", "compat-v1", "--out", str(out)
    )
    assert code == 0
    assert "1 skill differs; 3 active skills before, 2 after" in text
    assert "1 skill differs" in call("skillbook", "diff", str(ROOKIE), str(out))[1]
    assert "[owned-00004]" not in call("skillbook", "show", str(out))[1]  # it was removed before
    assert "[budget-00003] budget-check" in call("skillbook", "show", str(out))[1]


def test_every_field_of_a_document_counts_as_a_difference(tmp_path: Path) -> None:
    book = {"skills": {"a-00001": {"id": "a-00001", "section": "a", "content": "x", "sources": []}}, "next_id": 1}
    other = json.loads(json.dumps(book))
    other["skills"]["a-00001"]["justification"] = "it worked"
    _, out, _ = call("skillbook", "diff", saved(tmp_path, "a.json", book), saved(tmp_path, "b.json", other))
    assert "justification" in out
    assert "1 skill differs" in out


def test_one_counter_tells_the_counter_era(tmp_path: Path) -> None:
    book = json.loads(ROOKIE.read_text("utf-8"))
    del book["skills"]["wait-00002"]["helpful"]
    assert files.read_ace_book(Path(saved(tmp_path, "a.json", book))).era == "v1"


def test_a_field_that_stands_twice_in_a_batch_is_refused(tmp_path: Path) -> None:
    twice = '{"operations": [{"type": "TAG", "type": "REMOVE", "skill_id": "context-00001"}]}'
    code, _, error = call("skillbook", "apply", str(PRO), saved(tmp_path, "batch.json", twice))
    assert code == 2
    assert "'type' twice" in error
    assert "batch.json" in error


def test_a_batch_that_cannot_be_parsed_leaves_nothing(tmp_path: Path) -> None:
    unknown = {"type": "MERGE", "skill_id": "context-00001"}
    code, out, _ = call("skillbook", "apply", str(PRO), batch(tmp_path, ADD, unknown), "--mode", "compat-v2")
    assert code == 1
    assert "nothing was applied" in out
    assert "0 skills differ" in out


@pytest.mark.parametrize("count", [2**31, 10**30])
def test_a_counter_that_no_run_could_hold_is_refused(tmp_path: Path, count: int) -> None:
    book = json.loads(PRO.read_text("utf-8"))
    book["skills"]["context-00001"]["helpful_count"] = count
    code, out, error = call("skillbook", "show", saved(tmp_path, "large.json", book))
    assert (code, out) == (2, "")
    assert "to 2147483647" in error
    assert "large.json" in error


def test_neither_links_nor_files_beside_it_are_written_over(tmp_path: Path) -> None:
    beside = saved(tmp_path, "out.json.tmp", "precious")
    assert call("skillbook", "convert", str(PRO), "--to", "v1", "--out", str(tmp_path / "out.json"))[0] == 0
    assert Path(beside).read_text() == "precious"
    (tmp_path / "dangling").symlink_to("nowhere")
    code, _, error = call("skillbook", "convert", str(PRO), "--to", "v1", "--out", str(tmp_path / "dangling"))
    assert code == 2
    assert "is there already" in error
    code, _, error = call("skillbook", "convert", str(PRO), "--to", "v1", "--out", str(tmp_path / "out.json" / "x"))
    assert code == 2
    assert "is no folder" in error


def test_an_empty_folder_holds_no_skills(tmp_path: Path) -> None:
    assert "holds no skills" in call("skillbook", "show", str(tmp_path))[2]


def test_a_byte_order_mark_is_no_part_of_a_skillbook_or_a_batch(tmp_path: Path) -> None:
    marked = saved(tmp_path, "marked.json", "\ufeff" + PRO.read_text("utf-8"))
    shown = [call("skillbook", "show", path)[1].splitlines()[:-1] for path in (marked, str(PRO))]
    assert shown[0] == shown[1] != []
    assert "0 skills differ" in call("skillbook", "diff", str(PRO), marked)[1]
    operations = saved(tmp_path, "marked_batch.json", "\ufeff" + Path(batch(tmp_path, ADD)).read_text("utf-8"))
    assert call("skillbook", "apply", marked, operations)[0] == 0
