"""Runs of the experiment `facts`, on each corpus and with several seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import skg_bench
from skg_bench.analysis.comparison.seeds import SeedRuns, by_configuration
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.errors import UsageError

CORPORA = {"built-in": "facts", "clinc150": "facts_clinc150"}  # by name, its options of `simulator` and of `curator`
TURNS = 150_000  # that a CPU minute steps; measured on the arms of this experiment
TO_BEGIN = 0.2  # CPU minutes that a run takes beside its turns


def overrides_of(corpus: str, arms: Sequence[str], given: Sequence[str]) -> list[str]:
    """Overrides of a run on a corpus with these arms of the experiment; none: with all of them."""
    if corpus not in CORPORA:
        raise UsageError(f"--corpus {corpus}: valid are {', '.join(CORPORA)}")
    option = CORPORA[corpus]
    table: Mapping[str, Sequence[str]] = compose(["experiment=facts"]).root["arms"]
    if unknown := {*arms} - {*table, "never"}:
        raise UsageError(f"--arm {min(unknown)}: valid are {', '.join(table)}")
    chosen = {
        name: [f"{text}{option.removeprefix('facts')}" if text.endswith("curator=facts") else text for text in texts]
        for name, texts in table.items()
        if not arms or name in (*arms, "never")
    }
    words = ", ".join(f"{name}: [{', '.join(texts)}]" for name, texts in chosen.items())
    learner = [] if "keeps" in chosen else ["learner=null"]
    return ["experiment=facts", f"simulator={option}", f"arms={{{words}}}", *learner, *given]


def cpu_minutes(overrides: Sequence[str], runs: int) -> float:
    """CPU minutes that so many runs of this size take, about."""
    return runs * (TO_BEGIN + prepare(compose(overrides)).turns() / TURNS)


def played(overrides: Sequence[str], seeds: Sequence[int], folder: Path) -> SeedRuns:
    """Runs of all seeds; those that are in the folder already are kept."""
    runs = [skg_bench.run([*overrides, f"seed={seed}", f"out={folder / f'seed_{seed}'}"]) for seed in seeds]
    (group,) = by_configuration(runs)
    return group
