"""`report.html`: one page that needs nothing else, not even a network, to be read."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from skg_bench.core.temporary import replace_whole
from skg_bench.runfolder import manifest
from skg_bench.runfolder.run import Run


def write_page(run: Run, users: Sequence[int] | None = None, beside: Sequence[Run] = ()) -> Path:
    """Write the page of a run that has its `summary.json` and `curves.csv`, and return where it is.

    Without `users`: `report.html`, with twelve users to look into. With them: a page of its own beside it, with all
    turns of these users. `beside`: runs of the same world, with arms that say more about this one.

    Raises UsageError when the run has no summary yet, lacks these users, or went on meanwhile, or when a run beside is
    of another world.
    """
    from skg_bench.analysis.report.page import html

    name = "report.html" if users is None else f"report-users-{'-'.join(str(u) for u in dict.fromkeys(users))}.html"
    page = html(run, users, beside).encode()
    with manifest.accepting(run.path, run.manifest, name):
        replace_whole(run.path / name, page)
    return run.path / name


def write_side_by_side(runs: Sequence[Run]) -> Path:
    """Write a page of several runs, each with its figures, beside the first run's folder, and return where it is.

    Raises UsageError for a run given twice, and for one without figures of this version; OSError.
    """
    from skg_bench.analysis.report.several_runs import runs_html

    name = sha256("\n".join(str(run.path.resolve()) for run in runs).encode()).hexdigest()[:8]
    file = runs[0].path.resolve().parent / f"side-by-side-{name}.html"
    replace_whole(file, runs_html(runs).encode())
    return file
