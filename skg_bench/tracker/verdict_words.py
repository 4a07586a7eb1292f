"""Verdicts of a run in words, for names of runs and experiments in trackers."""

from collections.abc import Mapping
from typing import Any

from skg_bench.runfolder.cautions import trusted_verdict


def verdicts_in_words(summary: Mapping[str, Any]) -> dict[str, str]:
    """Verdicts by arm: its difference in utility to the reference, in words."""
    words = {}
    for arm, figures in summary["differences"].items():
        match figures.get("utility"):
            case {"mean": float(mean), "low_new": float(low), "high_new": float(high), "verdict": verdict}:
                size = f"{mean:+.3f} utility ({low:+.3f} to {high:+.3f})"
                words[arm] = f"{trusted_verdict(verdict, summary['users'])}: {size} against {summary['reference']}"
    return words


def arm_title(summary: Mapping[str, Any], arm: str) -> str:
    """An arm and its verdict, as short as the column of a table."""
    match summary["differences"].get(arm, {}).get("utility"):
        case {"mean": float(mean), "low_new": float(low), "high_new": float(high), "verdict": verdict}:
            return f"{arm} {trusted_verdict(verdict, summary['users'])} {mean:+.3f} ({low:+.3f} to {high:+.3f})"
    return arm
