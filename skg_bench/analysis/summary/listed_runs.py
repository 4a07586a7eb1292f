"""Runs below a folder as their manifests and figures tell them: how large, when, and what became of the learner.

Nothing of their logs is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite, nan
from pathlib import Path

from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.summary.document import SUMMARY_VERSION
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import inner_members_of, members_of
from skg_bench.core.text import printable
from skg_bench.runfolder.cautions import trusted_verdict
from skg_bench.runfolder.manifest import accepted_text, manifest_of, users_left

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
    interval: tuple[float, float] = (nan, nan)  # 95 % of the difference, for new requests
    others: Mapping[str, str] = field(default_factory=dict)  # verdict on each other arm
    state: str = "whole"  # or unfinished, or why there are no figures
    question: str = ""

    @property
    def written(self) -> str:
        """Time of the last write as text, UTC."""
        return datetime.fromtimestamp(self.when, UTC).strftime("%Y-%m-%d %H:%M")

    def cells(self, root: Path) -> list[str]:
        """Folder, time, size, seed, number of arms, learner, difference, verdict and state as texts."""
        size = number(self.difference, "utility", signed=True) if isfinite(self.difference) else "-"
        name = str(self.folder.relative_to(root))
        cells = [name, self.written, self.size, self.seed, self.arms, self.learner, size, self.verdict, self.state]
        return [printable(cell) for cell in cells]


def listed_runs(root: Path) -> Iterator[ListedRun]:
    """Runs in a folder, each known by its manifest; what is no readable one is listed with the reason."""
    for folder in sorted(root.iterdir()):
        if (folder / "manifest.json").is_file():
            yield _listed(folder)


def _listed(folder: Path) -> ListedRun:
    when = (folder / "manifest.json").stat().st_mtime
    try:
        manifest = manifest_of(folder / "manifest.json")
        users, seed, arms = users_left(manifest), manifest["seed"], len(manifest["arms"])
        size = f"{users} x {manifest['weeks']}"
        if manifest.get("imported"):  # made elsewhere: it has no weeks and no seed
            size, seed = f"{users} x -", "-"
        unfinished, question = manifest.get("incomplete", False), manifest.get("question", "")
    except UsageError:
        return ListedRun(folder, when, "-", "-", "-", state="its manifest cannot be read: run it again")
    state = "unfinished" if unfinished else "whole"
    known = ListedRun(folder, when, size, str(seed), str(arms), state=state, question=str(question))
    if unfinished:
        return known
    try:
        text = accepted_text(folder, "summary.json", manifest.get("files", {}))
        if text is None:
            return replace(known, state="its figures were changed: skg-bench report")
        gaps = inner_members_of(text, "differences", "utility", folder)
        return _with_verdict(known, members_of(text, ("version", "learner", "users"), folder), gaps)
    except (UsageError, OSError):
        return replace(known, state=_NO_FIGURES)


def _with_verdict(known: ListedRun, summary: Mapping[str, object], differences: Mapping[str, object]) -> ListedRun:
    """A line with the verdict of the run's figures, as they stand in its file: differences in utility by arm."""
    if summary.get("version") != SUMMARY_VERSION:
        return replace(known, state=_NO_FIGURES)
    learner, users = (
        str(summary.get("learner")),
        int(str(summary.get("users"))),
    )  # instances, where users share a memory
    gaps = {arm: figures for arm, figures in differences.items() if isinstance(figures, dict)}
    verdicts = {arm: trusted_verdict(str(gap.get("verdict")), users) for arm, gap in gaps.items()}
    gap = gaps.get(learner, {})
    mean, low, high = (_figure(gap.get(part)) for part in ("mean", "low_new", "high_new"))
    return replace(
        known, learner=learner, difference=mean, interval=(low, high), verdict=verdicts.pop(learner, "-"),
        others=verdicts,
    )  # fmt: skip


def _figure(value: object) -> float:
    return float(value) if isinstance(value, int | float) else nan
