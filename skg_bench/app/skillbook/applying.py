"""What `skillbook apply` does: a batch on a document, strictly or as a published package does."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

from skg_bench.app.progress import console
from skg_bench.app.skillbook import files
from skg_bench.app.skillbook.shown import changes
from skg_bench.core.ace.book import Mode
from skg_bench.core.ace.engine import apply as apply_as_published
from skg_bench.core.ace.strict import strict
from skg_bench.core.conversion import from_ace
from skg_bench.core.errors import UsageError


def apply(path: Path, batch: Path, mode: str, out: Path | None, limit: int) -> bool:
    """Apply a batch, show what changed, and write the book to `out`. Did the whole batch succeed?

    Raises UsageError for an unknown mode, files that hold no book or batch, and for what `strict` refuses.
    """
    modes: dict[str, Mode] = {name: name for name in get_args(Mode)}
    if mode != "strict" and mode not in modes:
        raise UsageError(f"--mode {mode}; valid are strict, {', '.join(modes)}")
    limits, screen = replace(files.LIMITS, text=limit), console()
    before, payload, failure = files.document(path, limits), files.parsed(batch), None
    if mode == "strict":
        after = strict(before, payload, files.now(), limits=limits)
    else:
        outcome = apply_as_published(before, payload, modes[mode], files.now())
        after, failure = outcome.book, outcome.failure
    changes(screen, from_ace(before, files.MONDAY).book, from_ace(after, files.MONDAY).book)
    if failure is not None:
        screen.print(
            f"{mode} fails with {failure.type} ({failure.stage}); what came before the failing operation stays",
            highlight=False,
        )
    if out is not None:
        files.write(after, out)
        screen.print(f"written: {out}", highlight=False, soft_wrap=True)
    return failure is None
