"""Experiments do not know one another: what several need stands in `skg_bench/study`, or beside the benches."""

import ast
from pathlib import Path

from tests.imports import ROOT, named, parsed

BENCH = "bench"
PEERS = "experiments.bench.speed.peers"  # plays the questions of other experiments with other people's packages


def place(file: Path) -> tuple[str, ...]:
    """The experiment or bench that a file is part of; benches share what stands beside them."""
    parts = file.relative_to(ROOT / "experiments").parts[:-1]
    return parts[:2] if parts[0] == BENCH else parts[:1]


def modules() -> dict[str, Path]:
    files = sorted((ROOT / "experiments").rglob("*.py"))
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}


def foreign(files: dict[str, Path]) -> list[str]:
    """Imports of another experiment."""
    return [
        f"{files[name].relative_to(ROOT)}:{line} imports {other}"
        for name in files
        for line, other in named(parsed(files[name]), files)
        if place(files[other]) not in (place(files[name]), (BENCH,)) and name != PEERS
    ]


def test_no_experiment_imports_another_one() -> None:
    files = modules()
    assert len(files) > 70
    assert foreign(files) == []


def test_an_import_of_another_experiment_is_found(tmp_path: Path) -> None:
    file = tmp_path / "analysis.py"
    file.write_text("from experiments.bench.speed import stores\nfrom experiments.bench import server\n", "utf-8")
    files = modules()
    lines = list(named(ast.parse(file.read_text("utf-8")), files))
    assert [place(files[other]) for _, other in lines] == [(BENCH, "speed"), (BENCH,)]


def test_nothing_stands_in_experiments_beside_folders_but_how_claims_and_sentences_are_made() -> None:
    files = {file.name for file in (ROOT / "experiments").iterdir() if file.is_file()}
    assert files == {"claims.yaml", "sentences.yaml"}
