"""Which edits of the checkout make the code of a run uncommitted: of all that a run reads, and of nothing else."""

import subprocess
from pathlib import Path

import pytest

from skg_bench.app import run_identity
from skg_bench.app.packages import Package

READ = (
    "skg_bench/asking/prompt.md",
    "skg_bench/a.py",
    "conf/a.yaml",
    "data/a.yaml",
    "experiments/a.py",
    "constraints.txt",
)
UNREAD = ("README.md", "docs/a.md", "tests/a.py", "reports/a.csv", "experiments/a/README.md")


@pytest.mark.parametrize(("file", "counts"), [*((file, True) for file in READ), *((file, False) for file in UNREAD)])
def test_an_edit_counts_only_if_runs_read_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, counts: bool
) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    for name in ("skg_bench/__init__.py", *READ, *UNREAD):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before\n", "utf-8")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    package = Package("skg_bench", tmp_path / "skg_bench", tmp_path / "conf")
    monkeypatch.setattr(run_identity, "packages", lambda: (package,))
    assert run_identity.provenance()["dirty"] is None
    (tmp_path / file).write_text("after\n", "utf-8")
    assert (run_identity.provenance()["dirty"] is not None) is counts
