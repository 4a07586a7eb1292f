"""Skillbooks as folders of Agent Skills, there and back; and folders of other people."""

import json
import os
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


@settings(max_examples=300, deadline=None)
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


# ----------------------------------------------------------------------------------------- files of other people


@pytest.mark.parametrize(
    "content",
    [
        Content("Math Strategies!", "issue: with a colon\nand a second line", "- a list\n- of two", ("a", "b:c")),
        Content("---", "--- dashes ---", "---\nmore", ()),
        Content("ö", "x" * 3000, None, ("ü",)),
        Content("context", "'quotes' \"both\" # no comment", None, ("null", "1")),
    ],
)
def test_any_content_comes_back_from_its_file(tmp_path: Path, content: Content) -> None:
    book = apply(Skillbook(), [Operation("ADD", 0, 0, name="n", content=content)])
    write_agent_skills(to_document(book, files.MONDAY).book, tmp_path / "skills")
    read = from_ace(read_agent_skills(tmp_path / "skills", NOW).book, files.MONDAY).book
    assert [skill.content for skill in read.skills] == [content]


def test_many_similar_sections_get_names_of_their_own(tmp_path: Path) -> None:
    book = Skillbook()
    for i, section in enumerate(["A b", "a-b", "ä", "x" * 200]):
        book = apply(book, [Operation("ADD", i, 0, name="n", content=Content(section, "i"))])
    write_agent_skills(to_document(book, files.MONDAY).book, tmp_path / "skills")
    names = sorted(path.name for path in (tmp_path / "skills").iterdir() if path.is_dir())
    assert len(names) == 4
    assert max(map(len, names)) <= 64
    assert len(read_agent_skills(tmp_path / "skills", NOW).book.skills) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no front matter", "has no front matter"),
        ("---\n- a\n---\n", "has no fields"),
        ("---\nname: [\n---\n", "is no YAML"),
        ("---\nname: a\n---\n", "its description is None"),
        ("---\nname: A b\ndescription: x\n---\n", "valid are small letters"),
        ("---\nname: a\ndescription: x\nmetadata: 3\n---\n", "metadata is 3"),
        ("---\nname: a\ndescription: " + "x" * 1025 + "\n---\n", "1 to 1,024 characters"),
        ("---\nname: a\ndescription: !!python/object/apply:os.system [ls]\n---\n", "YAML with anchors"),
        ("---\nname: a\ndescription: x\nmetadata: {keywords: 3}\n---\n", "metadata.keywords is 3"),
        ("---\nname: a\ndescription: x\nmetadata: {section: [b]}\n---\n", "metadata.section is ['b']"),
        ("---\nname: b\ndescription: x\n---\n", "but its folder is 'a'"),
        ("---\nname: a\ndescription: 2026-13-45\n---\n", "is no YAML of a skill"),
        ("---\nname: a\ndescription: " + "[" * 2000 + "\n---\n", "is no YAML of a skill"),
        ("---\nname: a\ndescription: x\n---\n\x07", r"U+0007"),
        ("---\n<<: {name: a, description: x}\n---\n", "YAML that merges fields"),
        ("---\n? [a, b]\n: c\n---\n", "is no YAML of a skill"),
        ("---\n1: x\n---\n", "has no fields"),
        ("---\nname: a\ndescription: x\nmetadata: {a: 1, a: 2}\n---\n", "the field 'metadata.a' stands twice"),
    ],
)
def test_skills_that_break_the_specification_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "skills" / "a").mkdir(parents=True)
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text(text, "utf-8")
    code, out, error = call("skillbook", "show", str(tmp_path / "skills"))
    assert (code, out) == (2, "")
    assert says in error
    assert SKILL_FILE in error


def test_skills_as_people_write_them_are_read_and_what_we_have_no_place_for_is_counted(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "pdf-forms"
    (skill / "scripts").mkdir(parents=True)
    front = "name: pdf-forms\ndescription: Fills forms.\nlicense: MIT\nversion: 2\nmetadata: {keywords: 'PDF, Fill in'}"
    (skill / SKILL_FILE).write_bytes(f"\ufeff---\r\n{front}\r\n---\r\n\r\nRead the form.\r\nFill it.\r\n".encode())
    read = read_agent_skills(tmp_path / "skills", NOW)
    assert read.losses == {"license": 1, "version": 1, "other files": 1}
    (only,) = from_ace(read.book, files.MONDAY).book.skills
    assert only.content == Content("context", "Fills forms.", "Read the form.\r\nFill it.", ("pdf", "fill", "in"))
    again = str(tmp_path / "again.json")
    assert call("skillbook", "convert", str(tmp_path / "skills"), "--to", "v2", "--out", again)[0] == 0
    assert call("skillbook", "show", again)[0] == 0


def test_a_skill_without_a_body_becomes_a_book_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "skills" / "a").mkdir(parents=True)
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text("---\nname: a\ndescription: When asked.\n---\n", "utf-8")
    out = tmp_path / "a.json"
    assert call("skillbook", "convert", str(tmp_path / "skills"), "--out", str(out))[0] == 0
    (skill,) = to_dict(files.read_ace_book(out))["skills"].values()
    assert (skill["issue"], skill["insight"], skill["keywords"]) == ("When asked.", "When asked.", ["context"])


def test_a_book_that_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "skills" / "a").mkdir(parents=True)
    text = "---\nname: a\ndescription: x\n---\n" + "y" * 30_000
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text(text, "utf-8")
    code, _, error = call("skillbook", "convert", str(tmp_path / "skills"), "--out", str(tmp_path / "a.json"))
    assert code == 2
    assert "so nothing is written" in error
    assert "30,000" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["skills"]


def found(root: Path) -> dict[str, str]:
    """100 skills as one finds them, of which 20 are malformed: the part of the refusal that names each of those."""
    fronts = [
        "license: Apache-2.0", "allowed-tools: Bash(git:*) Read", "compatibility: Needs Python 3.11",
        "metadata:\n  author: somebody\n  version: '1.0'", "metadata: {keywords: 'pdf, forms'}", "",
        "allowed-tools: [Read, Grep]", "license: |\n  Two lines\n  of it", "# a comment",
        "disable-model-invocation: true",
    ]  # fmt: skip
    bodies = [
        "# Title\n\nRead it.",
        "",
        "---\nA rule above.\n---",
        "Zeile mit Umlauten: äöü 漢字 🙂",
        "```sh\nrm -rf /\n```",
    ]
    for i in range(80):
        name = f"skill-{i:02d}" if i % 9 else f"größe-{i:02d}"
        place = root / name
        place.mkdir(parents=True)
        description = ["Plain.", '"Quoted: with a colon"', ">\n  Folded\n  text", "Für alle 漢字"][i % 4]
        extra = f"{fronts[i % 10]}\n" if fronts[i % 10] else ""
        text = f"---\nname: {name}\ndescription: {description}\n{extra}---\n\n{bodies[i % 5]}\n"
        raw = text.replace("\n", "\r\n").encode() if i % 7 == 0 else text.encode()
        (place / SKILL_FILE).write_bytes(b"\xef\xbb\xbf" + raw if i % 11 == 0 else raw)
        if i % 3 == 0:
            (place / "scripts").mkdir()
            script = place / "scripts" / "run.sh"
            script.write_text(f"#!/bin/sh\ntouch {root.parent / 'it-ran'}\n")
            script.chmod(0o755)
            (place / "LICENSE.txt").write_bytes(bytes(range(256)))
    wrong: list[tuple[str, str | bytes, str]] = [
        ("no-front", "Just text.\n", ":1: it has no front matter"),
        ("open-front", "---\nname: open-front\ndescription: x\n", ":1: it has no front matter"),
        ("climbs", "---\nname: ../../x\ndescription: x\n---\n", ":2: name='../../x'; valid are"),
        ("upper", "---\nname: Upper\ndescription: x\n---\n", ":2: name='Upper'; valid are"),
        ("other-name", "---\ndescription: x\nname: another\n---\n", ":3: name='another', but its folder"),
        ("no-name", "---\ndescription: x\n---\n", ":1: its name is None"),
        ("number", "---\nname: 7\ndescription: x\n---\n", ":2: its name is 7"),
        ("no-description", "---\nname: no-description\n---\n", ":1: its description is None"),
        ("blank", "---\nname: blank\ndescription: '  '\n---\n", ":3: its description has 2 characters"),
        ("long", "---\nname: long\ndescription: " + "x" * 1025 + "\n---\n", ":3: its description has 1,025"),
        ("anchor", "---\nname: &n anchor\ndescription: *n\n---\n", ":2: YAML with anchors"),
        ("tag", "---\nname: tag\ndescription: !!python/object/apply:os.system [ls]\n---\n", ":3: YAML with anchors"),
        ("twice", "---\nname: twice\ndescription: x\nname: twice\n---\n", ":4: the field 'name' stands twice"),
        ("list", "---\n- name\n---\n", ":2: its front matter has no fields"),
        ("torn", "---\nname: torn\ndescription: [\n---\n", "is no YAML of a skill"),
        ("meta", "---\nname: meta\ndescription: x\nmetadata: 3\n---\n", ":4: metadata is 3"),
        ("latin", "---\nname: latin\ndescription: für\n---\n".encode("latin-1"), "is no text in UTF-8"),
        ("large", b"---\nname: large\ndescription: x\n---\n" + b"x" * 10_000_000, "it has 10,000,"),
        ("bell", "---\nname: bell\ndescription: x\n---\n\nOne.\n\x07\n", ":5: its body has the character U+0007"),
    ]  # fmt: skip
    for name, content, _ in wrong:
        (root / name).mkdir()
        (root / name / SKILL_FILE).write_bytes(content if isinstance(content, bytes) else content.encode())
    (root / "linked").symlink_to(root / "skill-01")
    return {name: says for name, _, says in wrong} | {"linked": ":1: it is a link"}


def _contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode) for path in paths}


def test_a_hundred_skills_as_one_finds_them_come_back_or_are_refused_by_name(tmp_path: Path) -> None:
    root, out = tmp_path / "found", tmp_path / "out"
    refused = found(root)
    assert len(refused) == 20
    assert len(list(root.iterdir())) == 100
    for to in ("agent-skills", "v2", "v1"):
        code, printed, error = call("skillbook", "convert", str(root), "--to", to, "--out", str(out))
        assert (code, printed) == (2, "")
        assert "refused are 20 of 100 skills" in error
        for name, says in refused.items():
            (line,) = [line for line in error.splitlines() if f"/{name}/{SKILL_FILE}" in line]
            assert says in line
    assert [path.name for path in tmp_path.iterdir()] == ["found"]  # nothing is half-written
    for name in refused:
        path = root / name
        if path.is_symlink():
            path.unlink()
        else:
            (path / SKILL_FILE).unlink()
            path.rmdir()
    code, printed, _ = call("skillbook", "convert", str(root), "--to", "agent-skills", "--out", str(out))
    assert (code, "80 skills, byte for byte" in printed) == (0, True)
    assert _contents(out) == _contents(root)
    book, again, folder = tmp_path / "book.json", tmp_path / "again.json", tmp_path / "folder"
    code, printed, _ = call("skillbook", "convert", str(root), "--to", "v2", "--out", str(book))
    assert code == 0
    assert "license (16)" in " ".join(printed.split())
    assert "other files (27)" in " ".join(printed.split())
    assert call("skillbook", "convert", str(book), "--to", "agent-skills", "--out", str(folder))[0] == 0
    assert call("skillbook", "convert", str(folder), "--to", "v2", "--out", str(again))[0] == 0
    assert again.read_bytes() == book.read_bytes()
    assert len(json.loads(book.read_text())["skills"]) == 80
    assert not (tmp_path / "it-ran").exists()  # scripts are files like others


def test_a_link_among_the_files_of_a_skill_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "skills" / "a").mkdir(parents=True)
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text("---\nname: a\ndescription: x\n---\n")
    (tmp_path / "skills" / "a" / "secret").symlink_to("/etc/hostname")
    arguments = (
        "skillbook",
        "convert",
        str(tmp_path / "skills"),
        "--to",
        "agent-skills",
        "--out",
        str(tmp_path / "out"),
    )
    code, _, error = call(*arguments)
    assert (code, "is a link" in error) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["skills"]


def test_neither_a_link_to_removed_skills_nor_a_pipe_is_read(tmp_path: Path) -> None:
    skills, out = tmp_path / "skills", str(tmp_path / "out")
    write_agent_skills(files.read_ace_book(PRO), skills)
    os.mkfifo(skills / "context-00001" / "pipe")
    code, _, error = call("skillbook", "convert", str(skills), "--to", "agent-skills", "--out", out)
    assert (code, "is no file; take it out" in " ".join(error.split())) == (2, True)
    (skills / "context-00001" / "pipe").unlink()
    (skills / REMOVED).rename(tmp_path / "elsewhere")
    (skills / REMOVED).symlink_to(tmp_path / "elsewhere")
    code, _, error = call("skillbook", "show", str(skills))
    assert (code, "is a link" in error) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "skills"]


def test_folders_without_a_skill_are_named_and_one_skill_alone_is_read(tmp_path: Path) -> None:
    for name in ("docs", "a"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text("---\nname: a\ndescription: x\n---\n")
    for to in ("v2", "agent-skills"):
        arguments = ("skillbook", "convert", str(tmp_path / "skills"), "--to", to, "--out", str(tmp_path / to))
        code, printed, _ = call(*arguments)
        assert (code, "folders without a SKILL.md: docs" in " ".join(printed.split())) == (0, True)
    assert call("skillbook", "show", str(tmp_path / "skills" / "a"))[0] == 0


def test_two_skills_of_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        front = f"name: {name}\ndescription: x\nmetadata:\n  skg-bench: v2\n  id: same-00001"
        (tmp_path / name / SKILL_FILE).write_text(f"---\n{front}\n---\n")
    code, _, error = call("skillbook", "show", str(tmp_path))
    assert (code, "2 skills have the id 'same-00001'" in " ".join(error.split())) == (2, True)
