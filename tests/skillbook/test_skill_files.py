"""Folders of Agent Skills that other people wrote: read, copied byte for byte, or refused with file and line."""

import json
import os
from pathlib import Path

import pytest

from skg_bench.app.skillbook import files
from skg_bench.core.content import Content
from skg_bench.skillbook.ace.book import to_dict
from skg_bench.skillbook.agent_skills import REMOVED, read_agent_skills, write_agent_skills
from skg_bench.skillbook.conversion import from_ace, to_document
from skg_bench.skillbook.skill_files import SKILL_FILE
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply
from tests.app.test_cli import call
from tests.skillbook.test_agent_skills import NOW, PRO


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


def test_files_beside_the_skills_are_named_as_lost(tmp_path: Path) -> None:
    (tmp_path / "skills" / "a").mkdir(parents=True)
    (tmp_path / "skills" / "a" / SKILL_FILE).write_text("---\nname: a\ndescription: x\n---\n")
    for name in ("LICENSE", "README.md", ".gitignore"):
        (tmp_path / "skills" / name).write_text("of all skills")
    for to in ("v2", "agent-skills"):
        arguments = ("skillbook", "convert", str(tmp_path / "skills"), "--to", to, "--out", str(tmp_path / to))
        code, printed, _ = call(*arguments)
        assert (code, "files in no folder: LICENSE, README.md (2)" in " ".join(printed.split())) == (0, True)


def test_two_skills_of_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        front = f"name: {name}\ndescription: x\nmetadata:\n  skg-bench: v2\n  id: same-00001"
        (tmp_path / name / SKILL_FILE).write_text(f"---\n{front}\n---\n")
    code, _, error = call("skillbook", "show", str(tmp_path))
    assert (code, "2 skills have the id 'same-00001'" in " ".join(error.split())) == (2, True)
