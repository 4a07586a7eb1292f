"""A page of the runs in a folder: verdicts, sizes, states, and links to their own pages; it needs no network."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from urllib.parse import quote

from skg_bench.analysis.report.assets import page_asset, page_template
from skg_bench.analysis.report.tables import VERDICT_TONES
from skg_bench.analysis.report.typeset import DASH, typeset_interval, typeset_value
from skg_bench.analysis.summary.listed_runs import ListedRun
from skg_bench.core.temporary import PUBLIC_MODE, replace_whole
from skg_bench.core.text import printable

NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True)
class ListRow:
    """A run's row."""

    name: str
    link: str  # to its page, from the page of the list; empty: it has none
    question: str
    written: str
    when: float  # orders rows by time
    order: str  # the difference as digits, which orders rows by verdict; empty: not known
    gap: str  # of the learner
    interval: str
    verdict: str
    tone: str
    others: Mapping[str, Sequence[str]]  # verdict -> other arms
    size: str
    seed: str
    arms: str
    learner: str
    state: str

    @property
    def group(self) -> str:
        """Verdict, or that it has none: a button above the table shows the runs of a group."""
        return NO_VERDICT if self.verdict == DASH else self.verdict


def write_list(runs: Sequence[ListedRun], root: Path, file: Path) -> Path:
    """Write the page of these runs of the folder `root`, and return where it is; raises OSError."""
    rows = [_row(run, root, file.resolve().parent) for run in runs]
    words = {NO_VERDICT: "without a verdict"}
    groups = Counter(row.group for row in rows)
    text = page_template("list_page.html.j2").render(
        css=page_asset("page.css"), scripts=[page_asset("tables.js"), page_asset("list.js")], root=printable(str(root)),
        rows=rows, groups=groups,
        counts=", ".join(f"{count} {words.get(group, group)}" for group, count in groups.most_common()),
    )  # fmt: skip
    replace_whole(file, text.encode(), mode=PUBLIC_MODE)
    return file


def _row(run: ListedRun, root: Path, beside: Path) -> ListRow:
    name, _, size, seed, arms, learner, _, verdict, state = (DASH if cell == "-" else cell for cell in run.cells(root))
    known = isfinite(run.difference)
    others: dict[str, list[str]] = {}
    for arm, word in sorted(run.others.items(), key=lambda each: each[1] not in VERDICT_TONES):
        others.setdefault(printable(word), []).append(printable(arm))
    page = run.folder / "report.html"
    return ListRow(
        name=name, link=quote(os.path.relpath(page.resolve(), beside)) if page.is_file() else "",
        question=printable(run.question), written=run.written, when=run.when,
        order=f"{run.difference:.9f}" if known else "",
        gap=typeset_value(run.difference, "utility", signed=True) if known else "",
        interval=typeset_interval(*run.interval, "utility", signed=True) if all(map(isfinite, run.interval)) else "",
        verdict=verdict, tone=VERDICT_TONES.get(verdict, "open"), others=others, size=size, seed=seed, arms=arms,
        learner=learner, state=state,
    )  # fmt: skip
