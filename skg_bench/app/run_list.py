"""`skg-bench runs`: the runs in a folder as a table, or as a page."""

import shlex
from math import isfinite
from pathlib import Path

from skg_bench.analysis.summary.listed_runs import listed_runs
from skg_bench.app import table_blocks
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.text import plural

_ORDERS = ("when", "name", "difference")
_HEADINGS = ("run", "when, UTC", "users x weeks", "seed", "arms", "learner", "utility", "verdict", "state")


def show_runs(root: Path, order: str, text: str, page: Path | None) -> None:
    """Print the runs in `root`, newest first, or in another order, or write them as a page.

    `text`: those whose line or question has it. Raises UsageError for a missing folder, an unknown order, and a page
    that is no .html file or in no folder; OSError.
    """
    if order not in _ORDERS:
        raise UsageError(f"--sort {order}: {nearest(order, _ORDERS)}")
    if not root.is_dir():
        raise UsageError(f"there is no folder {root}; name one that holds run folders, such as runs")
    if (root / "manifest.json").is_file():
        raise UsageError(
            f"{root} is a run; name the folder that holds it: skg-bench runs {shlex.quote(str(root.parent))}"
        )
    if page and page.suffix != ".html":
        raise UsageError(f"--page {page}: a page is HTML; give a name that ends in .html")
    if page and not page.parent.is_dir():
        raise UsageError(f"--page {page}: there is no folder {page.parent}; make it, or name a file elsewhere")
    every = list(listed_runs(root))
    lines = {run.folder: run.cells(root) for run in every}
    runs = [run for run in every if text.lower() in " ".join([*lines[run.folder], run.question]).lower()]
    keys = {
        "when": lambda run: (-run.when, run.folder),
        "name": lambda run: run.folder,
        "difference": lambda run: (not isfinite(run.difference), -run.difference, run.folder),
    }
    screen, ordered = console(), sorted(runs, key=keys[order])
    if page:
        from skg_bench.analysis.report.list_page import write_list

        screen.print(f"{plural(len(runs), 'run')} in {root}", soft_wrap=True)
        screen.print(f"page: {write_list(ordered, root, page)}", soft_wrap=True)
        return
    table_blocks.show_table(screen, _HEADINGS, [lines[run.folder] for run in ordered])
    screen.print(
        f"{plural(len(runs), 'run')} in {root}; utility: of the learner less that of its reference", soft_wrap=True
    )
