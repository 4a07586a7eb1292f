"""What a release needs: workflows that may do little, actions pinned by commit, a citation of the released version."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import hashes

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in FILES}
RELEASE: dict[str, Any] = WORKFLOWS["release"]["jobs"]
_COMPILED = ("markupsafe", "numpy", "pandas", "pyarrow", "pydantic-core", "pyyaml", "scipy")


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_pinned_by_commit_and_says_its_version(file: Path) -> None:
    used = re.findall(r"uses: (.+)", file.read_text("utf-8"))
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+)*", line)] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_workflow_says_what_it_may_do_and_none_writes_the_repository(name: str) -> None:
    workflow = WORKFLOWS[name]
    rights = [workflow["permissions"], *(job.get("permissions", {}) for job in workflow["jobs"].values())]
    assert all(right.get("contents", "read") == "read" for right in rights)


def test_what_signs_or_publishes_runs_no_command_and_what_runs_commands_may_only_read() -> None:
    assert WORKFLOWS["release"]["permissions"] == {}
    assert RELEASE["build"]["permissions"] == {"contents": "read"}
    for name in ("attest", "publish"):
        assert commands(RELEASE[name]).strip() == "", name
        assert not any("checkout" in step["uses"] for step in RELEASE[name]["steps"]), name


def test_only_version_tags_are_released_and_nothing_is_published_unless_switched_on() -> None:
    assert WORKFLOWS["release"][True] == {"push": {"tags": ["v*"]}}  # yaml takes the key `on` for a truth value
    publish = RELEASE["publish"]
    assert (publish["if"], publish["environment"], publish["needs"]) == ("vars.PUBLISH == 'true'", "pypi", "attest")
    assert RELEASE["attest"]["needs"] == "build"
    assert [
        name for name, job in RELEASE.items() if any("publish" in step.get("uses", "") for step in job["steps"])
    ] == ["publish"]


def test_workflows_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    jobs = [RELEASE["build"], WORKFLOWS["audit"]["jobs"]["audit"]]
    targets = [name for job in jobs for name in re.findall(r"\bmake ([a-z-]+)", commands(job))]
    assert targets == ["package", "audit"]
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in targets)


def test_environments_of_peers_that_run_our_tests_have_what_these_begin_with() -> None:
    tree = ast.parse((ROOT / "tests/conftest.py").read_text("utf-8"))
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    beginning = {str(module).partition(".")[0] for module in modules} - sys.stdlib_module_names
    assert beginning == {"hypothesis", "pytest"}
    recipe = (ROOT / "Makefile").read_text("utf-8").split("\npeers-assistants:", 1)[1].split("\n\n", 1)[0]
    listed = {"peers": (ROOT / "experiments/bench/speed/peers.txt").read_text("utf-8"), "peers-assistants": recipe}
    assert [name for name, text in listed.items() if not beginning <= set(text.split())] == []


def test_the_wheel_is_tried_with_files_of_known_hashes_alone() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = makefile.split("\npackage:", 1)[1].split("\n\n", 1)[0]
    installs = [line for line in recipe.splitlines() if "--python $(PACKAGED) install" in line]
    assert ["--require-hashes --requirement hashes.txt" in line for line in installs] == [True, False]
    assert installs[1].endswith("--no-deps dist/*.whl")


def test_each_package_that_the_wheel_needs_has_its_pin_and_hashes_for_each_python() -> None:
    known, pinned = hashes.hashed(hashes.FILE.read_text("utf-8")), hashes.pins()
    assert set(known) == hashes.needed()
    assert {name: version for name, (version, _) in known.items()} == {name: pinned[name] for name in known}
    least = len(hashes.PYTHONS) * len(hashes.PLATFORMS)
    assert {name: len(some) for name, (_, some) in known.items() if len(some) != 1} == dict.fromkeys(_COMPILED, least)


def test_the_citation_is_of_the_released_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    released = re.search(r"^## ([\d.]+), (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released
    assert (citation["version"], str(citation["date-released"])) == released.groups()
    assert (citation["license"], citation["keywords"]) == (project["license"], project["keywords"])
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
