"""Arms with pipelines, made and changed in tests."""

from dataclasses import fields, replace
from typing import Any

from skg_bench.assistant.pipeline import Pipeline
from skg_bench.assistant.pipeline.components import Components, with_components
from skg_bench.core.arms import Arm


def pipeline_arm(name: str, llm: Any, hit_latency_ms: float, *parts: Any) -> Arm:
    """An arm with a pipeline of these components, in the order of `Components`."""
    return Arm(name, Pipeline(Components(*parts)), llm, hit_latency_ms)


def changed(arm: Arm, **changes: Any) -> Arm:
    """The arm with other components, and other values of its own."""
    parts = {f.name: changes.pop(f.name) for f in fields(Components) if f.name in changes}
    return replace(with_components(arm, **parts), **changes)
