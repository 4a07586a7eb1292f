"""Runs below a folder, a line each: how large, when, and what became of the learner. Nothing of their logs is read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite, nan
from pathlib import Path

from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.summary.document import SUMMARY_VERSION
from skg_bench.app import table_blocks
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import json_of, text_of
from skg_bench.core.text import printable
from skg_bench.runfolder.manifest import accepted, manifest_of

_ORDERS = ("when", "name", "difference")
_HEADINGS = ("run", "when, UTC", "users x weeks", "seed", "arms", "learner", "utility", "verdict", "state")

_NO_FIGURES = "no figures of this version: skg-bench report"


@dataclass(frozen=True)
class ListedRun:
    """One run, as a line tells it."""

    folder: Path
    when: float  # last write of its manifest, seconds since 1970
    size: str  # users x weeks
    seed: str
    arms: str
    learner: str = "-"
    difference: float = nan  # utility of the learner less that of the reference, a turn; NaN: not known
    verdict: str = "-"
    state: str = "whole"  # or unfinished, or why there are no figures
    question: str = ""

    def cells(self, root: Path) -> list[str]:
        """Texts under _HEADINGS."""
        written = datetime.fromtimestamp(self.when, UTC).strftime("%Y-%m-%d %H:%M")
        size = number(self.difference, "utility", signed=True) if isfinite(self.difference) else "-"
        name = str(self.folder.relative_to(root))
        cells = [name, written, self.size, self.seed, self.arms, self.learner, size, self.verdict, self.state]
        return [printable(cell) for cell in cells]


def show_runs(root: Path, order: str, text: str) -> None:
    """Print the runs in `root`, newest first, or in another order; `text`: those whose line or question has it.

    Raises UsageError for a missing folder and an unknown order; OSError.
    """
    if order not in _ORDERS:
        raise UsageError(f"--sort {order}: {nearest(order, _ORDERS)}")
    if not root.is_dir():
        raise UsageError(f"there is no folder {root}; name one that holds run folders, such as runs")
    runs = [run for run in listed_runs(root) if text.lower() in " ".join([*run.cells(root), run.question]).lower()]
    keys = {
        "when": lambda run: (-run.when, run.folder),
        "name": lambda run: run.folder,
        "difference": lambda run: (not isfinite(run.difference), -run.difference, run.folder),
    }
    screen = console()
    table_blocks.show_table(screen, _HEADINGS, [run.cells(root) for run in sorted(runs, key=keys[order])])
    screen.print(f"{len(runs)} runs in {root}; utility: of the learner less that of its reference", soft_wrap=True)


def listed_runs(root: Path) -> Iterator[ListedRun]:
    """Runs in a folder, each known by its manifest; what is no readable one is listed with the reason."""
    for folder in sorted(root.iterdir()):
        if (folder / "manifest.json").is_file():
            yield _listed(folder)


def _listed(folder: Path) -> ListedRun:
    when = (folder / "manifest.json").stat().st_mtime
    try:
        manifest = manifest_of(folder / "manifest.json")
    except UsageError:
        return ListedRun(folder, when, "-", "-", "-", state="its manifest cannot be read: run it again")
    known = ListedRun(
        folder, when, f"{manifest['users']} x {manifest['weeks']}", str(manifest["seed"]), str(len(manifest["arms"])),
        question=str(manifest.get("question", "")), state="unfinished" if manifest["incomplete"] else "whole",
    )  # fmt: skip
    if manifest["incomplete"]:
        return known
    try:
        if not accepted(folder, "summary.json", manifest.get("files", {})):
            return replace(known, state="its figures were changed: skg-bench report")
        return _with_verdict(known, json_of(text_of(folder / "summary.json"), folder))
    except (UsageError, OSError):
        return replace(known, state=_NO_FIGURES)


def _with_verdict(known: ListedRun, summary: object) -> ListedRun:
    """A line with the verdict of the run's figures, as they stand in its file."""
    if not isinstance(summary, dict) or summary.get("version") != SUMMARY_VERSION:
        return replace(known, state=_NO_FIGURES)
    learner, differences = summary.get("learner"), summary.get("differences")
    gap: object = differences
    for key in (learner, "utility"):
        gap = gap.get(key) if isinstance(gap, dict) else None
    if not isinstance(gap, dict):
        return replace(known, learner=str(learner))
    mean, verdict = gap.get("mean"), gap.get("verdict")
    return replace(
        known, learner=str(learner), difference=float(mean) if isinstance(mean, int | float) else nan,
        verdict=str(verdict),
    )  # fmt: skip
