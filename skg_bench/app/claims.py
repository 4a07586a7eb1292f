"""What the sources claim, with what carries each claim and what was found."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from skg_bench.analysis.comparison.claims import Line, lines
from skg_bench.app import blocks
from skg_bench.app.progress import console
from skg_bench.app.suggestions import nearest
from skg_bench.core.errors import UsageError
from skg_bench.core.paths import DATA

FORMATS = ("table", "markdown", "json")
HEADINGS = ("id", "claimed", "measured", "verdict", "carried by")
_STATES = {"held": "held by tests", "outside": "outside the project", "open": "open"}


def show(ids: Sequence[str], form: str, *, only_open: bool) -> None:
    """Print the claims of these ids, default all. `only_open`: those of them that nothing carries.

    Raises UsageError for an id that no source has, and for an unknown format.
    """
    if form not in FORMATS:
        raise UsageError(f"--format {form}: valid are {', '.join(FORMATS)}")
    chosen = [line for line in _chosen(ids) if line.state == "open" or not only_open]
    screen = console()
    if form == "json":
        screen.out(json.dumps([asdict(line) | {"state": line.state} for line in chosen], indent=1, ensure_ascii=False))
        return
    rows = [row for line in chosen for row in cells(line)]
    if form == "markdown":
        for row in (HEADINGS, ("---",) * len(HEADINGS), *rows):
            screen.out(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |")
        return
    blocks.show(screen, HEADINGS, rows, wraps_from=13)  # as narrow as one block of 80 characters needs
    for line in chosen if ids else ():
        for text in told(line):
            screen.print(text, soft_wrap=True)
    if not (DATA.parent / "tests").is_dir():
        screen.print("What carries a claim is told in a checkout: an installed package has neither tests nor reports.")
    elif not ids:
        states = [line.state for line in chosen]
        counts = {"found by experiments": "found", "held by tests": "held", "outside": "outside", "open": "open"}
        screen.print(f"{len(chosen)} claims: " + ", ".join(f"{states.count(s)} {name}" for name, s in counts.items()))


def _chosen(ids: Sequence[str]) -> list[Line]:
    every = {line.claim.id: line for line in lines(DATA.parent)}
    for claim_id in ids:
        if claim_id not in every:
            close = nearest(claim_id.upper(), every)
            raise UsageError(f"no source has a claim {claim_id!r}; {close or 'ids are K01-K33, P01-P51, U01-U14'}")
    return [every[claim_id] for claim_id in ids] or list(every.values())


def cells(line: Line) -> Iterator[tuple[str, ...]]:
    """Cells under HEADINGS: a row for each finding, or one."""
    claim = line.claim
    by_tests = [f"{len(line.tests)} test{'s' * (len(line.tests) > 1)}"] if line.tests else []
    claimed = [finding.claimed for _, finding in line.findings]
    for i, (experiment, finding) in enumerate(line.findings):
        # what tells it from the others
        label = finding.claimed if claimed.count(finding.claimed) == 1 else finding.words
        yield "" if i else claim.id, label, str(finding.measured), finding.verdict, ", ".join([experiment, *by_tests])
    if not line.findings:
        yield claim.id, claim.statement, "", _STATES[line.state], ", ".join(by_tests) or claim.why or ""


def told(line: Line) -> Iterator[str]:
    """All that is known of one claim, in lines."""
    yield ""
    yield f"{line.claim.id} ({line.claim.source}): {line.claim.statement}"
    if line.claim.why:
        yield f"  outside the project: {line.claim.why}"
    for experiment, finding in line.findings:
        e = finding.evidence
        yield f"  {experiment}: {finding.verdict}. {finding.words}"
        yield f"    {e.command}    # {e.users:,} users, {e.weeks} weeks, seeds {', '.join(map(str, e.seeds))}"
        yield f"    measured at commit {e.commit}"
    yield from (f"  {name}" for name in line.tests)
