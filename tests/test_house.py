"""The house: what stands at the top, what a wheel carries, what is pinned."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import skg_bench
from skg_bench.analysis.comparison.claims import claims
from tests.imports import syntax_nodes, trees

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = {".ci", ".github", "conf", "data", "docs", "experiments", "reports", "skg_bench", "tests"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no git checkout")
    return [Path(name) for name in listed.stdout.split("\0") if name]


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def test_no_other_folder_stands_at_the_top() -> None:
    assert {path.parts[0] for path in tracked() if len(path.parts) > 1} <= FOLDERS


def test_files_have_names_that_say_what_they_hold_and_fit_in_a_head() -> None:
    for path in tracked():
        if path.suffix == ".py" and (ROOT / path).is_file():
            assert not re.search(r"(^|_)(utils?|helpers?|managers?|base|common|misc)$", path.stem), path
            assert len((ROOT / path).read_text("utf-8").splitlines()) <= 400, path


def test_no_random_number_is_drawn_without_a_key() -> None:
    unkeyed = re.compile(r"default_rng|RandomState|random\.seed|^(import|from) random\b", re.MULTILINE)
    for path in tracked():
        if path.suffix == ".py" and path.parts[0] in ("skg_bench", "experiments") and (ROOT / path).is_file():
            assert not unkeyed.search((ROOT / path).read_text("utf-8")), path


def test_every_dependency_is_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pinned = {name_of(name) for name in pins}
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(requirement for extra in project["optional-dependencies"].values() for requirement in extra),
    ]
    assert {name_of(requirement) for requirement in wanted} - {"skg-bench"} <= pinned
    assert pins["torch"] == "2.13.0"
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())


def test_every_pin_installs_on_every_python_that_the_readme_names() -> None:
    """Debian 12 has Python 3.11.2, and pins that asked for 3.11.5 could not be installed there."""
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=").partition(",")[0] + ".0"
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    asked = {
        canonicalize_name(package.metadata["Name"]): package.metadata["Requires-Python"] for package in distributions()
    }
    refused = {
        name: python
        for name, python in asked.items()
        if name in pins
        and python
        and not all(version in SpecifierSet(python) for version in (oldest, "3.12.0", "3.13.0"))
    }
    assert len(pins & asked.keys()) > 100
    assert not refused


def test_the_base_install_stays_light() -> None:
    base = {name_of(requirement) for requirement in PROJECT["project"]["dependencies"]}
    assert base == {
        "hydra-core", "jinja2", "numpy", "pandas", "pyarrow", "pyyaml", "rich", "scipy", "typer",
    }  # fmt: skip


def test_the_package_imports_nothing_that_only_its_developers_have() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needs = {*PROJECT["project"]["dependencies"], *(r for extra in extras if extra != "dev" for r in extras[extra])}
    only_developers = {name_of(r) for r in extras["dev"]} - {name_of(r) for r in needs}
    providers = packages_distributions()
    imported = {
        (module, name.partition(".")[0])
        for module, tree in trees().items()
        for node in syntax_nodes(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert {"skg_bench.analysis.statistics.inference", "scipy"} in [set(pair) for pair in imported]
    assert [pair for pair in imported if {name_of(d) for d in providers.get(pair[1], [])} & only_developers] == []


def test_version_and_changelog_agree() -> None:
    assert PROJECT["project"]["version"] == skg_bench.__version__
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(skg_bench.__version__)}, \d{{4}}-\d\d-\d\d", releases[0])
    assert "Unreleased" not in headings[1:]


@pytest.mark.parametrize("failing", ["", ".venv/.dev", "gate", "test", "gate test"])
def test_ci_is_a_strict_executable_script_that_fails_where_the_gate_or_a_test_does(
    failing: str, tmp_path: Path
) -> None:
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "run", script)
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text("utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    fails = f'case " {failing} " in *" $1 "*) exit 2 ;; esac'
    for name, body in (("make", f'echo "make $1"; {fails}'), ("chromium", "")):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    words = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run([script], env=words, cwd="/", capture_output=True, text=True, check=False)
    made = ["make .venv/.dev"] if failing == ".venv/.dev" else ["make .venv/.dev", "make test", "make gate"]
    assert done.stdout.splitlines() == made
    assert done.returncode == (2 if failing else 0)


@pytest.mark.parametrize(
    "target",
    ["demo", "test", "test-fast", "test-times", "gate", "bench", "soak", "wheel", "package", "audit", "clean"],
)
def test_make_help_lists_every_target(target: str) -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.search(rf"^make {target} +\S", done.stdout, re.MULTILINE)


def test_the_fast_tests_are_some_of_each_room() -> None:
    listed = re.search(r"^FAST := ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert listed
    names = [name for name in listed[1].split() if name != "\\"]
    assert [name for name in names if not (ROOT / name).exists()] == []
    package = ROOT / "skg_bench"
    rooms = {
        file.parent.relative_to(package) for pattern in ("*", "analysis/*") for file in package.glob(f"{pattern}/*.py")
    }
    homes = {"analysis": "tests/analysis/"}
    wanted = [homes.get(room.as_posix(), f"tests/{room.as_posix()}") for room in sorted(rooms)]
    assert [room for room in wanted if not any(name.startswith(room) for name in names)] == []


def test_a_wheel_carries_configuration_data_and_experiments_and_runs_without_the_checkout(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    data = ("corpus/one_offs.txt", "corpus/minilm.npy", "guardian/strategies.toml", "guardian/minilm.npy")
    for name in ("_conf/config.yaml", *(f"_data/{name}" for name in data), "py.typed"):
        assert f"skg_bench/{name}" in names
    assert any(name.startswith("skg_bench/_experiments/") for name in names)
    assert "skg_bench/app/cli.py" in names
    assert not [name for name in names if name.startswith(("tests/", "conf/", "data/"))]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-m", "skg_bench", "run", "--dry-run", "profile=smoke"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "first: 12 users" in done.stdout
    assert "runs/first-" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "skg_bench", "experiment", "grid"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: experiments are files of the project's repository")


def carried() -> set[str]:
    """Requirement ids that tests say they prove."""
    marks = re.compile(r"mark\.req\(([^)]*)\)")
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return {name for text in texts for mark in marks.findall(text) for name in re.findall(r'"([^"]+)"', mark)}


def test_requirement_marks_name_ids_that_exist() -> None:
    assert carried()
    assert carried() <= set(claims())
