"""Runs that a gate is tried on."""

from pathlib import Path
from typing import Any

from skg_bench.runfolder import manifest
from skg_bench.runfolder.run import Run
from tests.runs import changed as rechanged

BASELINE = Path(__file__).resolve().parents[2] / "data" / "gate" / "baseline.json"
ANCHORS = (
    "never: [assistant=pipeline,policy=never,curator=none], "
    "oracle: [assistant=pipeline,router=oracle,policy=always,curator=oracle,serving=stored]"
)
# SKG's own loop, which is not ahead of `never`
LOOP = ("serving=stored", "router=maxsim", "curator=skg", f"arms={{skg: [], {ANCHORS}}}")
# What the project gates itself by, as it is, a bit stricter, and giving up: side by side, as the anchors take the time.
OWN_ARMS = f"arms={{before: [], gated: [policy.threshold=0.6], quitting: [policy=never,curator=none], {ANCHORS}}}"
OWN = (
    "profile=gate",
    "simulator.corpus=null",
    "users=100",
    "serving=prompted",
    "router=recipe",
    "curator=everything",
    "reference=never",
    OWN_ARMS,
)
EVEN = ("simulator.messages_per_day=5", "simulator.volume_spread=0.1")  # the busiest user takes the time
PANEL = ("experiment=gate", "users=40", "weeks=2", "simulator.corpus=builtin_120", *EVEN, *LOOP)  # of few intents: hits


def changed(run: Path, **values: Any) -> Path:
    """A run whose manifest says otherwise."""
    content = manifest.manifest_of(run / manifest.MANIFEST)
    if "schema" in values:  # of a version that this one does not read
        manifest.write_manifest(run, {**content, **values})
        return run
    return rechanged(Run(run), **values).path
