"""Steps of `skillbook apply`: a batch on a document, strictly or as a published package does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

from skg_bench.app.progress import console
from skg_bench.app.skillbook import differences, files
from skg_bench.app.skillbook.shown import show_changes
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_of, plain
from skg_bench.skillbook.ace.book import AceBook, CompatMode, Era
from skg_bench.skillbook.ace.checks import AceLimits
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.engine_failures import AceFailure
from skg_bench.skillbook.ace.strict import strict

_TELLS: dict[Era, set[str]] = {  # fields that no other format has
    "v1": {"content", "helpful", "harmful", "neutral"},
    "v09": {"content", "justification", "evidence"},
    "v2": {"issue", "insight", "keywords", "delta"},
}


def apply_file(path: Path, batch: Path, mode: str, out: Path | None, limit: int) -> bool:
    """Apply a batch, show what changed, and write the book to `out`. Did the whole batch succeed?

    Raises UsageError for an unknown mode, files that hold no book or batch, and for what `strict` refuses.
    """
    if mode != "strict" and mode not in get_args(CompatMode):
        raise UsageError(f"--mode {mode}; valid are strict, {', '.join(get_args(CompatMode))}")
    if out is not None:
        files.check_free(out)
    screen, limits = console(), replace(files.LIMITS, text=limit)
    before, content = files.read_ace_book(path, limits), files.document_text(batch)
    after, failure = _applied(before, content, batch, mode, limits)
    show_changes(screen, differences.of_documents(before, after), len(before.active), len(after.active))
    if failure is not None:
        rest = "nothing was applied" if failure.stage == "parse" else "what came before the failing operation stays"
        screen.print(f"{mode} fails with {failure.type} ({failure.stage}); {rest}", highlight=False)
    if out is not None:
        files.write_ace_book(after, out, strictly=mode == "strict" and limit <= files.LIMITS.text)
        screen.print(f"written: {out}", highlight=False, markup=False, soft_wrap=True)
    return failure is None


def _applied(
    before: AceBook, content: str, batch: Path, mode: str, limits: AceLimits
) -> tuple[AceBook, AceFailure | None]:
    if mode == "strict":
        try:
            return strict(before, content, files.now(), limits=limits), None
        except UsageError as error:
            raise UsageError(f"{batch}: {error}{_other_format(content, before.era)}") from error
    outcome = apply_as_published(before, plain(json_of(content, batch), batch), _mode(mode), files.now())
    return outcome.book, outcome.failure


def _other_format(content: str, era: Era) -> str:
    """Hint where a batch is refused because it is of another format than the book; empty: it is not."""
    try:
        operations = json.loads(content)["operations"]
        names = {name for item in operations for name in (*item, *(item.get("metadata") or {}))}
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return ""
    other: Era = "v1" if era == "v2" else "v2"
    if not names & _TELLS[other] or names & _TELLS[era]:
        return ""
    return (
        f". The batch looks like one of {other}, but the book is of {era}: write its operations as {era} has them, or "
        f"convert the book first: skg-bench skillbook convert BOOK --to {other} --out FILE"
    )


def _mode(mode: str) -> CompatMode:
    modes: dict[str, CompatMode] = {name: name for name in get_args(CompatMode)}
    return modes[mode]
