"""Skillbooks as folders of Agent Skills, there and back; and folders of other people."""

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.app.skillbook import files
from skg_bench.core.content import Content
from skg_bench.skillbook.ace.book import ERAS, AceBook, Era, dumps, to_dict
from skg_bench.skillbook.ace.codec import from_dict, loads
from skg_bench.skillbook.agent_skills import BOOK, REMOVED, read_agent_skills, write_agent_skills
from skg_bench.skillbook.conversion import from_ace, to_document
from skg_bench.skillbook.skill_files import SKILL_FILE
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply
from tests.app.test_cli import call

GOLDEN = Path(__file__).parents[1] / "golden"
PRO = GOLDEN / "pro.json"
NOW = "2026-01-05T00:00:00+00:00"

# ------------------------------------------------------------------------------------------------ books of ACE

TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=("Cs", "Cc")), st.sampled_from("\n\r\t-: #'\"\\")),
    min_size=1,
    max_size=30,
).filter(str.strip)
LONG = st.builds(lambda text, times: text * times, TEXTS, st.sampled_from([1, 1, 1, 40, 400]))
COUNTS = st.integers(0, 2**31 - 1)
TIMES = st.sampled_from([NOW, "yesterday", "2026-03-01T10:00:00.5+02:00"])
IDS = st.one_of(st.from_regex(r"[a-z]{1,8}-[0-9]{5}", fullmatch=True), TEXTS)
SOURCES = st.lists(
    st.fixed_dictionaries({"source_system": TEXTS, "trace_id": TEXTS}, optional={"epoch": st.integers(0, 9)}),
    max_size=2,
)


def _skill(era: Era) -> st.SearchStrategy[dict[str, Any]]:
    common = {"created_at": TIMES, "updated_at": TIMES}
    if era == "v1":
        vector = st.none() | st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3)
        return st.fixed_dictionaries({
            "section": TEXTS, "content": LONG, "helpful": COUNTS, "harmful": COUNTS, "neutral": COUNTS,
            "embedding": vector, "status": st.sampled_from(["active", "active", "invalid"]), **common,
        })  # fmt: skip
    if era == "v09":
        return st.fixed_dictionaries({
            "section": TEXTS, "content": LONG, "justification": st.none() | TEXTS, "evidence": st.none() | TEXTS,
            "sources": SOURCES, "status": st.sampled_from(["active", "invalid"]), **common,
        })  # fmt: skip
    counters = {f"{name}_count": COUNTS for name in ("used", "helpful", "harmful", "neutral")}
    entries = st.fixed_dictionaries({
        "section": st.sampled_from(["context", "harness"]), "keywords": st.lists(TEXTS, min_size=1, max_size=3),
        "issue": LONG, "insight": st.none() | LONG, "occurrences": SOURCES, "active": st.booleans(), **counters,
        **common,
    })  # fmt: skip
    return entries.map(lambda entry: entry | ({} if entry["section"] == "harness" or entry["insight"] else
                                              {"insight": entry["issue"]}))  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> AceBook:
    """Any strict book: ids, order, order in prompts and kept pairs are its own."""
    era = draw(st.sampled_from(ERAS))
    ids = draw(st.lists(IDS, max_size=4, unique=True))
    skills = {key: {"id": key, **draw(_skill(era))} for key in ids}
    sections: dict[str, list[str]] = {}
    for key in draw(st.permutations(ids)):
        sections.setdefault(skills[key]["section"], []).append(key)
    decision = {"decision": "KEEP", "reasoning": "", "decided_at": NOW, "similarity_at_decision": 0.5}
    decisions = {",".join(ids[:2]): decision} if len(ids) > 1 and not any("," in key for key in ids[:2]) else {}
    book = {
        "skills": skills, "sections": sections, "next_id": 10**14, "similarity_decisions": decisions,
        "batches": draw(st.lists(TEXTS, max_size=2)),
    }  # fmt: skip
    return from_dict(book | ({"schema_version": "2"} if era == "v2" else {}), era, NOW)


@settings(max_examples=150, deadline=None)
@given(documents())
def test_any_book_of_ace_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, book: AceBook) -> None:
    folder = tmp_path_factory.mktemp("book") / "skills"
    write_agent_skills(book, folder)
    read = read_agent_skills(folder, "another time")
    assert dumps(read.book) == dumps(book)
    assert read.book == book
    assert read.losses == {}


@pytest.mark.parametrize("name", ["rookie.json", "pro.json"])
def test_a_book_becomes_folders_of_agent_skills_and_comes_back(tmp_path: Path, name: str) -> None:
    folder, back = tmp_path / "skills", tmp_path / "back.json"
    book = files.read_ace_book(GOLDEN / name)
    code, out, _ = call("skillbook", "convert", str(GOLDEN / name), "--to", "agent-skills", "--out", str(folder))
    assert (code, out.endswith("nothing is lost\n")) == (0, True)
    assert call("skillbook", "convert", str(folder), "--to", book.era, "--out", str(back))[0] == 0
    assert files.read_ace_book(back) == book
    assert "0 skills differ" in call("skillbook", "diff", str(folder), str(GOLDEN / name))[1]


def test_removed_skills_stand_where_no_agent_looks(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    assert call("skillbook", "convert", str(PRO), "--to", "agent-skills", "--out", str(folder))[0] == 0
    assert sorted(path.parent.name for path in folder.glob(f"*/{SKILL_FILE}") if path.parent.name[0] != ".") == [
        "context-00001", "context-00002",
    ]  # fmt: skip
    assert [path.name for path in (folder / REMOVED).iterdir()] == ["harness-00003"]
    text = (folder / "context-00001" / SKILL_FILE).read_text("utf-8")
    assert text.startswith("---\nname: context-00001\ndescription: A price alone moves nobody who earns well.\n")
    assert text.endswith("\n---\n\nSay how many hours of work the price is.\n")
    assert stat.S_IMODE((folder / "context-00001" / SKILL_FILE).stat().st_mode) == 0o600


def test_what_a_person_writes_anew_counts_and_what_is_hidden_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    book = loads(PRO.read_text(), "v2", NOW)
    changed = to_dict(book)
    changed["skills"]["context-00001"]["issue"] = "long " * 500
    write_agent_skills(from_dict(changed, "v2", NOW), folder)
    file = folder / "context-00001" / SKILL_FILE
    text = file.read_text("utf-8")
    first = text.index("description: ")
    short = text[:first] + "description: Short now." + text[text.index("\n", first) :]
    file.write_text(short.replace("Say how many hours of work the price is.\n", "Say less.\n"), "utf-8")
    (folder / "mine").mkdir()
    (folder / "mine" / SKILL_FILE).write_text("---\nname: mine\ndescription: New.\n---\nDo it.\n")
    read = read_agent_skills(folder, NOW).book
    skill = to_dict(read)["skills"]["context-00001"]
    assert (skill["issue"], skill["insight"]) == ("Short now.", "Say less.")
    assert skill["helpful_count"] == to_dict(book)["skills"]["context-00001"]["helpful_count"]
    assert list(read.skills) == [*book.skills, "mine"]
    assert read.sections["context"][-1] == "mine"


def test_books_of_a_run_keep_counters_times_and_sources(tmp_path: Path) -> None:
    content = Content("Math Strategies!", "Round numbers.", "Say them.", ("a",))
    book = apply(Skillbook(), [Operation("ADD", 0, 90, content=content, about=7)])
    book = apply(book, [Operation("TAG", 0, 100, rating="ok", uses=1)])
    document = to_document(book, files.MONDAY, user=3).book
    write_agent_skills(document, tmp_path / "skills")
    read = read_agent_skills(tmp_path / "skills", NOW).book
    assert read.sections == document.sections
    (record,) = to_dict(read)["skills"]["math-00001"].pop("occurrences")
    assert record["trace_uid"] == "skg-bench:u3-t7"
    (skill,) = from_ace(read, files.MONDAY).book.skills
    assert (skill.uses, skill.ok, skill.born, skill.content) == (1, 1, 90, content)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("helpful_count", "-3", "a text is needed"),
        ("helpful_count", "'-3'", "a whole number from 0"),
        ("helpful_count", "many", "is no whole JSON"),
        ("used_count", "'1e3'", "a whole number from 0"),
        ("occurrences", '"[1]"', "an object is needed"),
        ("occurrences", '"' + "[" * 50_000 + '"', "nested too deeply"),
    ],
)
def test_fields_of_ours_that_are_none_are_refused_with_their_line(
    tmp_path: Path, field: str, value: str, says: str
) -> None:
    text = f"---\nname: a\ndescription: x\nmetadata:\n  skg-bench: v2\n  {field}: {value}\n---\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / SKILL_FILE).write_text(text)
    code, out, error = call("skillbook", "show", str(tmp_path))
    assert (code, out) == (2, "")
    assert says in " ".join(error.split())
    assert f"{SKILL_FILE}:6" in error.replace("\n", "")


@pytest.mark.parametrize(
    "content", ["[]", '{"order": 3}', '{"sections": {"a": "b"}}', '{"next_id": -1}', "{", '{"x": 1}']
)
def test_a_file_beside_the_folders_that_is_not_ours_is_refused(tmp_path: Path, content: str) -> None:
    write_agent_skills(files.read_ace_book(PRO), tmp_path / "skills")
    (tmp_path / "skills" / BOOK).write_text(content)
    code, out, error = call("skillbook", "show", str(tmp_path / "skills"))
    assert (code, out) == (2, "")
    assert BOOK in error.replace("\n", "")
