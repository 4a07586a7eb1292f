"""What counts as the source of a class: helper modules and files of packages, and nothing that lies there by chance."""

import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from tests.app.lab import write

MINE = "class Mine:\n    def answer(self, user, time, message, model):\n        return reuse(message)\n"
SCRIPT = """
import sys
{before}
from skg_bench.assistant.python.source import ClassSource
where = sys.argv[1]
print(ClassSource.of(*((None, where) if ":" in where and "__main__" not in where else (where, None)), {{}}).digest())
"""
RUN = ["simulator.volume_spread=0.2", "users=2", "weeks=1", "reference=never"]


def python(folder: Path, *words: str) -> str:
    """What Python prints, in a folder that is on its search path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, *words]
    made = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def digest(folder: Path, where: str, files: Mapping[str, str], before: str = "") -> str:
    """Digest of a class as a new process has it."""
    for name, text in files.items():
        write(folder / name, text)
    return python(folder, "-c", SCRIPT.format(before=before), where)


@pytest.mark.parametrize(
    ("where", "files", "changed"),
    [
        ("my.py:Mine", {"my.py": f"from rules import reuse\n{MINE}", "rules.py": "reuse = str\n"}, "rules.py"),
        ("my.py:Mine", {"my.py": MINE.replace("ret", "import rules\n        ret"), "rules.py": ""}, "rules.py"),
        (
            "my.py:Mine",
            {"my.py": "import rules\nclass Mine: ...\n", "rules.py": "import deep.words\n", "deep/words.py": "",
             "deep/words.txt": "a"},
            "deep/words.txt",
        ),
        (
            "sub/my.py:Mine",
            {"sub/my.py": "import sys\nsys.path.insert(0, 'sub')\nimport rules\nclass Mine: ...\n", "sub/rules.py": ""},
            "sub/rules.py",
        ),
        ("mine.Mine", {"mine.py": f"from rules import reuse\n{MINE}", "rules.py": "reuse = str\n"}, "rules.py"),
        ("mine.Mine", {"mine/__init__.py": f"import rules\n{MINE}", "rules.py": ""}, "rules.py"),
        ("mine.Mine", {"mine/__init__.py": MINE, "mine/prompt.md": "Be brief.\n"}, "mine/prompt.md"),
        ("mine.cache.Mine", {"mine/cache.py": MINE, "mine/prompt.md": "Be brief.\n"}, "mine/prompt.md"),
    ],
)  # fmt: skip
def test_a_changed_helper_or_file_of_a_package_is_another_source(
    where: str, files: Mapping[str, str], changed: str, tmp_path: Path
) -> None:
    first = digest(tmp_path, where, files)
    assert digest(tmp_path, where, {}) == first
    assert digest(tmp_path, where, {changed: f"{files[changed]}# changed\n"}) != first


def test_helpers_of_a_class_of_a_script_are_in_its_source(tmp_path: Path) -> None:
    before = f"from rules import reuse\n{MINE}"
    write(tmp_path / "rules.py", "def reuse(message): return message\n")
    write(tmp_path / "script.py", SCRIPT.format(before=before))
    first = python(tmp_path, "script.py", "__main__:Mine")
    write(tmp_path / "rules.py", "def reuse(message): return 'x'\n")
    assert python(tmp_path, "script.py", "__main__:Mine") != first


def test_what_lies_there_by_chance_and_what_else_is_imported_do_not_count(tmp_path: Path) -> None:
    files = {"my.py": f"import numpy, json\n{MINE}", "pack/__init__.py": MINE}
    alone, pack = (digest(tmp_path, where, files) for where in ("my.py:Mine", "pack.Mine"))
    assert alone == sha256(sha256(files["my.py"].encode()).digest()).hexdigest()  # as it was before helpers counted
    others = [
        "prompt.md", "other.py", "runs/first/manifest.json", "pack/__pycache__/a.txt", "pack/.git/index", "pack/.a.swp",
        "pack/out/manifest.json", "pack/out/turns/a.parquet", "pack/runs/mlflow.db", "pack/env/pyvenv.cfg",
        "pack/env/lib/a.py",
    ]  # fmt: skip
    more = dict.fromkeys(others, "x = 1\n")
    assert digest(tmp_path, "my.py:Mine", more, "import other, pack") == alone
    assert digest(tmp_path, "pack.Mine", {}, "import other") == pack


def test_another_helper_is_another_run(tmp_path: Path) -> None:
    write(tmp_path / "my.py", f"from rules import reuse\n{MINE}")
    arms = "arms={mine: [assistant=python, assistant.file=my.py:Mine], never: [policy=never]}"
    folders = []
    for rule in ("return message", "return 'x'"):
        write(tmp_path / "rules.py", f"def reuse(message): {rule}\n")
        said = python(tmp_path, "-m", "skg_bench", "run", "--dry-run", *RUN, arms)
        folders += [word for word in said.split() if word.startswith("runs/first-")]
    assert len(folders) == len(set(folders)) == 2
