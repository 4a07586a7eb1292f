"""skills-ref, the reference library of Agent Skills, as a live oracle. It runs where `make peers-skills` was."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import AceBook
from skg_bench.skillbook.agent_skills import write_agent_skills
from skg_bench.skillbook.skill_files import SKILL_FILE, read_skill_file
from tests.skillbook.test_agent_skills import documents
from tests.skillbook.test_skill_files import found

PYTHON = Path(__file__).parents[2] / "runs" / "peers" / "skills" / "bin" / "python"
CODE = """
import json, pathlib, sys
from skills_ref import validate
print(json.dumps([validate(pathlib.Path(line)) for line in json.load(sys.stdin)]))
"""


def faults(folders: Sequence[Path]) -> list[list[str]]:
    """What the library says of skills; skips without its environment."""
    if not PYTHON.exists():
        pytest.skip("skills-ref 0.1.1 has no environment here: make peers-skills")
    lines = json.dumps([str(folder) for folder in folders])
    done = subprocess.run([PYTHON, "-c", CODE], input=lines, capture_output=True, text=True, check=True)
    read: list[list[str]] = json.loads(done.stdout)
    return read


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(documents(), min_size=20, max_size=20))
def test_the_reference_library_finds_no_fault_in_any_folder_we_write(
    tmp_path_factory: pytest.TempPathFactory, books: list[AceBook]
) -> None:
    root = tmp_path_factory.mktemp("books")
    for number, book in enumerate(books):
        write_agent_skills(book, root / str(number))
    folders = sorted(path.parent for path in root.rglob(SKILL_FILE))
    assert [fault for fault in faults(folders) if fault] == []


def test_we_refuse_what_it_refuses_but_for_what_agents_read_all_the_same(tmp_path: Path) -> None:
    found(tmp_path)
    folders = sorted(folder for folder in tmp_path.iterdir() if folder.name != "latin")  # at which it fails
    theirs = {folder.name: fault for folder, fault in zip(folders, faults(folders), strict=True)}
    ours = set()
    for folder in folders:
        try:
            read_skill_file(folder / SKILL_FILE)
        except UsageError:
            ours.add(folder.name)
    assert ours - {name for name, fault in theirs.items() if fault} == {"large", "meta"}  # which it does not look at
    more = {name: " ".join(fault) for name, fault in theirs.items() if fault and name not in ours and name != "bell"}
    bom = [name for name, fault in more.items() if "must start with YAML frontmatter" in fault]
    others = [fault for name, fault in more.items() if name not in bom]
    assert len(bom) == 8  # a byte order mark
    assert all("disable-model-invocation" in fault or "Invalid YAML" in fault for fault in others)  # [Read, Grep]
