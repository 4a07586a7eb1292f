"""Claims of the sources, what carries each, and what was found."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from skg_bench.analysis.comparison.claims import HELD, Line, claim_lines, claims
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app import table_blocks
from skg_bench.app.claim_inputs import by_id, refusals
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.package import DATA
from skg_bench.core.text import plural

FORMATS = ("table", "markdown", "json")
CLAIM_HEADINGS = ("id", "claimed", "measured", "verdict", "carried by")
_STATES = ("measured", *HELD, "refused", "outside", "open")


def show_claims(ids: Sequence[str], form: str, *, only_open: bool, every: bool = False) -> None:
    """Print the claims of these ids. `only_open`: those of them that are open. Without ids a table has counts and ids
    by verdict; with `every` each claim.

    Raises UsageError for an id that no source has, for an unknown format, and, once all else is printed, for files of
    findings about these claims that are refused.
    """
    if form not in FORMATS:
        raise UsageError(f"--format {form}: valid are {', '.join(FORMATS)}")
    chosen = _chosen(ids, only_open=only_open)
    if ids or every or only_open or form != "table":
        _show(ids, form, chosen)
    else:
        _show_counts(chosen)
    refused = {name: reason for line in chosen for name, reason in line.refused.items()}
    if refused:
        raise UsageError(by_id(refused))


def _show_counts(chosen: Sequence[Line]) -> None:
    """How many claims have each verdict, and which; a claim with several verdicts stands beside each."""
    by_word: dict[str, list[str]] = {}
    for line in chosen:
        words = {f"measured: {finding.verdict}" for _, finding in line.findings} or {line.state}
        for word in sorted({*words, *filter(None, [line.claim.held])}):
            by_word.setdefault(word, []).append(line.claim.id)
    order = sorted(by_word, key=lambda word: (not word.startswith("measured"), word))
    rows = [[word, str(len(by_word[word])), " ".join(by_word[word])] for word in order]
    screen = console()
    table_blocks.show_table(screen, ("state or verdict", "claims", "ids"), rows)
    screen.print(_count(chosen))
    screen.print("read on: `skg-bench claims K16` (one in full), `claims --open`, `claims --all`")


def _count(chosen: Sequence[Line]) -> str:
    if not (DATA.parent / "tests").is_dir():
        return "What carries a claim is told in a checkout: an installed package has neither tests nor reports."
    states = [line.state for line in chosen]
    return f"{len(chosen)} claims: " + ", ".join(f"{states.count(state)} {state}" for state in _STATES)


def _show(ids: Sequence[str], form: str, chosen: Sequence[Line]) -> None:
    screen = console()
    if form == "json":
        screen.out(
            json.dumps(
                [asdict(line) | {"state": line.state, "links": line.links} for line in chosen],
                indent=1,
                ensure_ascii=False,
            )
        )
        return
    rows = [row for line in chosen for row in claim_rows(line)]
    if form == "markdown":
        for row in (CLAIM_HEADINGS, ("---",) * len(CLAIM_HEADINGS), *rows):
            screen.out(f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), ' ') for cell in row)} |")
        return
    table_blocks.show_table(screen, CLAIM_HEADINGS, rows, wraps_from=13)  # as one block of 80 characters needs
    for line in chosen if ids else ():
        for text in claim_details(line):
            screen.print(text, soft_wrap=True)
    if not ids or not (DATA.parent / "tests").is_dir():
        screen.print(_count(chosen))


def _chosen(ids: Sequence[str], *, only_open: bool) -> list[Line]:
    root, known = DATA.parent, claims()
    for claim_id in ids:
        if claim_id not in known:
            raise UsageError(f"no source has a claim {claim_id!r}; {nearest(claim_id.upper(), known)}")
    every = {line.claim.id: line for line in claim_lines(root, refusals(root / "reports" / "claims", ids))}
    named = [every[claim_id] for claim_id in ids] or list(every.values())
    return [line for line in named if line.state == "open" or not only_open]


def claim_rows(line: Line) -> Iterator[tuple[str, ...]]:
    """Rows under CLAIM_HEADINGS: what holds the claim, and each finding; or one row that says that nothing does."""
    claim = line.claim
    if claim.held or not line.findings:
        carried = "\n".join(claim.by) or claim.why or claim.note or ""
        word = claim.held or ("outside the project" if line.state == "outside" else line.state)
        yield claim.id, claim.statement, (claim.note or "") if claim.held else "", word, carried
    claimed = [finding.claimed for _, finding in line.findings]
    for i, (experiment, finding) in enumerate(line.findings):
        # what tells it from the others
        label = finding.claimed if claimed.count(finding.claimed) == 1 else finding.words
        first = not i and not claim.held
        link = f"reports/claims/{experiment}.json"
        where = f" {finding.where}" if finding.where else ""
        yield claim.id if first else "", label, str(finding.measured), f"measured: {finding.verdict}{where}", link


def claim_details(line: Line) -> Iterator[str]:
    """All that is known of one claim, in lines."""
    yield ""
    claim = line.claim
    yield f"{claim.id} ({claim.source}): {claim.statement}"
    if claim.why:
        yield f"  outside the project: {claim.why}"
    for experiment, finding in line.findings:
        e = finding.evidence
        yield f"  {experiment}: {finding.verdict}{f' {finding.where}' if finding.where else ''}. {finding.words}"
        yield from (f"    {text}" for text in _beside(finding))
        size = f"{plural(e.users, 'user')}, {plural(e.weeks, 'week')}, seeds {', '.join(map(str, e.seeds))}"
        yield f"    {e.command}    # {size}"
        yield f"    measured at commit {e.commit}"
    yield from (f"  {name}: refused, as {reason}" for name, reason in line.refused.items())
    if claim.held:
        yield f"  {claim.held}" + (f": {claim.note}" if claim.note else "")
        yield from (f"    {name}" for name in claim.by)
    elif claim.note:
        yield f"  {claim.note}"
    others = [name for name in line.tests if name not in claim.by]
    yield from (f"  see also {name}" for name in others)


def _beside(finding: Finding) -> Iterator[str]:
    """Words beside a difference of arms: where its reference lies, each seed, and the paper's own point."""
    if finding.assay is not None:
        ahead = "it is never" if finding.assay.ahead is None else f"beyond never {finding.assay.ahead}"
        yield f"reference: {ahead}; an oracle is beyond it by {finding.assay.room}"
    if finding.by_seed:
        yield f"by seed: {', '.join(f'{mean:+.4f}' for mean in finding.by_seed)}"
    if finding.own is not None:
        yield f"at the paper's own operating point: {finding.own}"
