"""What `conf/tracker` offers."""

import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from skg_bench.app.building import build
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.runfolder.tracking import Tracker

CONF = sorted((Path(__file__).resolve().parents[2] / "conf" / "tracker").glob("*.yaml"))


def node(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return read


@pytest.mark.parametrize("path", CONF, ids=lambda path: path.stem)
def test_a_tracker_is_a_frozen_value_in_the_module_of_its_name_that_travels_between_processes(path: Path) -> None:
    package, seam, module, name = node(path)["_target_"].split(".")
    assert (package, seam, module) == ("skg_bench", "tracker", path.stem)
    tracker: Tracker = build("tracker", node(path), COMMAND_LINE)
    assert type(tracker) is getattr(importlib.import_module(f"skg_bench.tracker.{module}"), name)
    assert pickle.loads(pickle.dumps(tracker)) == tracker  # noqa: S301
    expected = {"none": (), "both": ("mlflow", "opik")}.get(path.stem, (path.stem,))
    assert tuple(sink.name for sink in tracker.sinks) == expected  # what `skg-bench export NAME` takes
    for sink in tracker.sinks:  # a failed delivery names `skg-bench export NAME RUN tracker.PARAMETER=ADDRESS`
        assert node(path.with_stem(sink.name))[sink.parameter] is None


def test_both_is_each_with_the_same_defaults() -> None:
    nodes = {path.stem: node(path) for path in CONF}
    assert {key: value for key, value in nodes["both"].items() if key != "_target_"} == {
        "mlflow": nodes["mlflow"], "opik": nodes["opik"],
    }  # fmt: skip
