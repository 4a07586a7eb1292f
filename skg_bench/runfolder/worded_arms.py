"""Arms whose assistants have no skillbook, and those that answer in words of their own."""

from collections.abc import Mapping
from typing import Any

from skg_bench.runfolder.run import Run

_OF_WORDS = ("skg_bench.assistant.python.", "skg_bench.assistant.endpoint.")


def arms_in_words(run: Run) -> list[str]:
    """Arms whose assistants have no skillbook; of results that were made elsewhere nothing is known of these."""
    return [] if run.telling.imported else [arm for arm in run.arms if not _pipeline(run, arm)]


def arms_of_own_words(run: Run) -> list[str]:
    """Arms of classes and endpoints, which answer in words of their own."""
    return [arm for arm in arms_in_words(run) if _target(run, arm).startswith(_OF_WORDS)]


def assistant_node(run: Run, arm: str) -> Mapping[str, Any]:
    """Composition of an arm's assistant; empty: it has none."""
    node = run.manifest["compositions"].get(arm, {}).get("assistant")
    return node if isinstance(node, Mapping) else {}


def _pipeline(run: Run, arm: str) -> bool:
    return _target(run, arm).startswith("skg_bench.assistant.pipeline.")


def _target(run: Run, arm: str) -> str:
    return str(assistant_node(run, arm).get("_target_", ""))
