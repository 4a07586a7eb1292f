"""Docstrings begin with a noun or a verb; the files that still have others are listed, and the list only shrinks."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_BEGINNING = {"What", "Of", "Those", "Nothing", "Whether"}
LEFT = {
    "experiments/assistant_growth/analysis.py": 1,
    "experiments/assumptions/analysis.py": 1,
    "experiments/counterfactual_proof/analysis.py": 2,
    "experiments/counterfactual_proof/measure.py": 1,
    "experiments/faults/command.py": 2,
    "experiments/faults/damage.py": 1,
    "experiments/faults/lab.py": 7,
    "experiments/faults/outcomes.py": 4,
    "experiments/faults/reader.py": 1,
    "experiments/gate_power/builds.py": 2,
    "experiments/generic/measure.py": 1,
    "experiments/grid/analysis.py": 1,
    "experiments/grid/effects.py": 1,
    "experiments/guardian/draws.py": 2,
    "experiments/guardian/lives.py": 1,
    "experiments/guardian/study.py": 4,
    "experiments/guardian/verdicts.py": 2,
    "experiments/guardian_arc/measure.py": 1,
    "experiments/learning_over_time/analysis.py": 1,
    "experiments/llm_or_rule/analysis.py": 1,
    "experiments/llm_or_rule/measure.py": 2,
    "experiments/llm_or_rule/reading.py": 1,
    "experiments/locking/analysis.py": 2,
    "experiments/locking/bursts.py": 1,
    "experiments/locking/event_time.py": 6,
    "experiments/locking/held.py": 1,
    "experiments/locking/processes.py": 4,
    "experiments/locking/writers.py": 2,
    "experiments/masses.py": 3,
    "experiments/pairing_gain/analysis.py": 1,
    "experiments/personal_or_shared/analysis.py": 2,
    "experiments/personal_or_shared/batch.py": 1,
    "experiments/personal_or_shared/measure.py": 3,
    "experiments/routing_quality/analysis.py": 1,
    "experiments/routing_quality/baselines.py": 2,
    "experiments/routing_quality/corpora.py": 1,
    "experiments/seeds/analysis.py": 2,
    "experiments/seeds/measure.py": 1,
    "experiments/skg_section5/analysis.py": 2,
    "experiments/skg_section5/crowd.py": 1,
    "experiments/skg_section5/draws.py": 1,
    "experiments/skg_section5/latency.py": 1,
    "experiments/skg_section5/prior.py": 1,
    "experiments/skg_section5/readings.py": 3,
    "experiments/speed/asking.py": 1,
    "experiments/speed/counted.py": 4,
    "experiments/speed/embedding.py": 1,
    "experiments/speed/footprint.py": 2,
    "experiments/speed/peer_routers.py": 4,
    "experiments/speed/peers.py": 3,
    "experiments/speed/population.py": 2,
    "experiments/speed/replaying.py": 1,
    "experiments/speed/stores.py": 1,
    "experiments/two_loops/analysis.py": 1,
    "experiments/two_loops/counters.py": 1,
    "experiments/two_loops/measure.py": 2,
    "experiments/two_loops/tables.py": 1,
    "experiments/what_makes_the_difference/analysis.py": 2,
    "experiments/what_makes_the_difference/break_even_map.py": 2,
    "experiments/what_makes_the_difference/composites.py": 1,
    "skg_bench/analysis/comparison/compare.py": 2,
    "skg_bench/core/advice.py": 2,
    "skg_bench/core/assistant.py": 6,
    "skg_bench/core/feedback.py": 2,
    "skg_bench/core/world.py": 11,
    "skg_bench/engine/logbook.py": 2,
    "skg_bench/engine/reading.py": 2,
    "skg_bench/engine/step.py": 8,
}
"""How many docstrings of a file may still begin so."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of all docstrings of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and text.strip():
                yield node.body[0].lineno, text


def begins_badly(text: str) -> bool:
    return text.split()[0].rstrip(",.:;?") in NO_BEGINNING


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    lines = [
        (path.relative_to(ROOT).as_posix(), line, text)
        for folder in ("skg_bench", "experiments")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text("utf-8")))
    ]
    assert len(lines) > 3000
    bad = [(file, line, text) for file, line, text in lines if begins_badly(text)]
    counts = Counter(file for file, _, _ in bad)
    assert [
        f"{file}:{line}: {text.splitlines()[0]}" for file, line, text in bad if counts[file] > LEFT.get(file, 0)
    ] == []


def test_a_docstring_that_begins_otherwise_is_found() -> None:
    source = '"""What it is."""\n\n\nclass A:\n    """Values."""\n\n    def f(self):\n        """Nothing."""\n'
    assert [line for line, text in docstrings(ast.parse(source)) if begins_badly(text)] == [1, 8]


def test_files_that_are_left_are_there() -> None:
    assert [file for file in LEFT if not (ROOT / file).is_file()] == []
