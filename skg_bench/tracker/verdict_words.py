"""Verdicts of a run in words, for names of runs and experiments in trackers."""

from collections.abc import Mapping
from typing import Any

from skg_bench.runfolder.cautions import FEW_USERS


def verdicts_in_words(summary: Mapping[str, Any]) -> dict[str, str]:
    """Verdicts by arm: its difference in utility to the reference, in words."""
    words = {}
    for arm, figures in summary["differences"].items():
        match figures.get("utility"):
            case {"mean": float(mean), "low_new": float(low), "high_new": float(high), "verdict": verdict}:
                size = f"{mean:+.3f} utility ({low:+.3f} to {high:+.3f})"
                words[arm] = f"{_trusted(verdict, summary)}: {size} against {summary['reference']}"
    return words


def arm_title(summary: Mapping[str, Any], arm: str) -> str:
    """An arm and its verdict, as short as the column of a table."""
    match summary["differences"].get(arm, {}).get("utility"):
        case {"mean": float(mean), "low_new": float(low), "high_new": float(high), "verdict": verdict}:
            return f"{arm} {_trusted(verdict, summary)} {mean:+.3f} ({low:+.3f} to {high:+.3f})"
    return arm


def _trusted(verdict: str, summary: Mapping[str, Any]) -> str:
    """The verdict; of few users, that they decide nothing."""
    users: int = summary["users"]
    return verdict if users >= FEW_USERS else f"undecided by {users} users"
