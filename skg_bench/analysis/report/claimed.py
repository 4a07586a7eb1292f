"""Section "What would have looked like proof": the article's three proofs, for arms that learn and arms that do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from skg_bench.analysis.comparison.claimed_proofs import (
    LOOK,
    LOOKS,
    WITHIN,
    Arc,
    ClaimedProofs,
    PairShares,
    SeedContrast,
    Trio,
)
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.chart import Chart, Series
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.tables import Cell
from skg_bench.analysis.report.typeset import marked, typeset_interval, typeset_value
from skg_bench.analysis.statistics.binomial import exact_share
from skg_bench.analysis.statistics.curves import Band
from skg_bench.analysis.statistics.inference import PairedT
from skg_bench.analysis.statistics.intervals import ALPHA
from skg_bench.runfolder.run import Run

ROLES = {"live": "learns", "frozen": "its book stays", "sham": "learns at random"}


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm, what it does, and figures of it."""

    look: Look
    role: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Says:
    """Sentences on what a proof shows, and what it does not."""

    shows: Markup
    not_shows: Markup


@dataclass(frozen=True, slots=True)
class Claimed:
    """The section of the page."""

    size: str  # how many users are counted in the looks, in words
    window: int  # a user's first triggers, in which pairs are looked for
    charts: Sequence[Chart]
    arc: Sequence[ArmRow]
    arc_says: Says
    pair: Sequence[ArmRow]
    pair_says: Says
    seeds: Sequence[ArmRow]
    seeds_says: Says | None  # None: no two arms differ in their first book alone
    seeds_missing: str  # the override that adds such an arm


def claimed(proofs: ClaimedProofs, run: Run, looks: Sequence[Look], learner: str) -> Claimed:
    """The section; its sentences are about `learner` if that is one of the arms that learn, else about the first."""
    trio = next((trio for trio in proofs.trios if trio.live == learner), proofs.trios[0])
    named = {look.arm: look for look in looks}
    roles = {arm: ROLES[role] for each in proofs.trios for role in ROLES for arm in [getattr(each, role)]}
    arms = [arm for arm in proofs.arcs if arm in named]
    return Claimed(
        f"{proofs.users:,} users with {LOOK * LOOKS} interactions or more",
        WITHIN,
        charts(proofs, looks),
        [ArmRow(named[arm], roles[arm], _arc_cells(proofs.arcs[arm])) for arm in arms],
        _arc_says(proofs, trio),
        [ArmRow(named[arm], roles[arm], _pair_cells(proofs.pairs[arm])) for arm in arms],
        _pair_says(proofs, trio),
        _seed_rows(proofs.seeds, named),
        _seeds_say(proofs.seeds[0], run.telling.noun) if proofs.seeds else None,
        _seeds_missing(run, trio.frozen),
    )


def charts(proofs: ClaimedProofs, looks: Sequence[Look]) -> list[Chart]:
    """Acceptance and utility over interactions."""
    drawn = [look for look in looks if look.drawn and look.arm in proofs.arcs]
    listened, worth = (
        [Series(look.arm, look.classes, *_tracks(getattr(proofs.arcs[look.arm], name))) for look in drawn]
        for name in ("acceptance", "utility")
    )
    positions = [float(position) for position in proofs.positions]
    return [
        Chart(
            "f-acceptance", "Acceptance", "Share of interactions that users listened to, since the point before.",
            "share", "interaction", positions, listened,
        ),
        Chart(
            "f-worth", "Utility", "What the same interactions were worth, less money and waiting.", "utility",
            "interaction", positions, worth,
        ),
    ]  # fmt: skip


def _tracks(band: Band) -> list[list[float | None]]:
    return [[None if np.isnan(v) else float(v) for v in track] for track in (band.mean, band.low, band.high)]


# ------------------------------------------------------------------------------------------------------ figures


def ends(test: PairedT, bounds: tuple[float, float] = (-np.inf, np.inf)) -> tuple[float, float]:
    """The 95 % interval, cut at `bounds`."""
    return max(test.limit(ALPHA / 2), bounds[0]), min(test.limit(1 - ALPHA / 2), bounds[1])


def _cell(test: PairedT, unit: str) -> Cell:
    low, high = ends(test, (0.0, 1.0) if unit == "share" else (-np.inf, np.inf))
    return Cell(typeset_value(test.mean, unit), typeset_interval(low, high, unit))


def _change(test: PairedT, unit: str) -> str:
    low, high = ends(test)
    return f"{typeset_value(test.mean, unit, signed=True)} ({typeset_interval(low, high, unit, signed=True)})"


def _share(value: float) -> str:
    return typeset_value(value, "share")


# ---------------------------------------------------------------------------------------------------------- arc


def _arc_cells(arc: Arc) -> list[Cell]:
    first, final = arc.worth[0], arc.worth[-1]
    return [
        *(_cell(look, "share") for look in arc.looks),
        _cell(first, "utility"),
        _cell(final, "utility"),
        Cell(_share(arc.climbs), ""),
        *(Cell(typeset_value(skills, "skills"), "") for skills in arc.skills),
    ]


def _arc_says(proofs: ClaimedProofs, trio: Trio) -> Says:
    live, frozen, sham = (proofs.arcs[arm] for arm in (trio.live, trio.frozen, trio.sham))
    of_live, of_frozen, of_sham = (code(arm) for arm in (trio.live, trio.frozen, trio.sham))
    shows = (
        f"that users of {of_live} listen to {_share(live.looks[0].mean)} of their first {LOOK} interactions and to "
        f"{_share(live.looks[-1].mean)} of their last {LOOK}: {_change(live.rise, 'difference')}; under {of_frozen} "
        f"the change is {_change(frozen.rise, 'difference')}, under {of_sham} {_change(sham.rise, 'difference')}."
    )
    count = round(LOOK * live.looks[0].mean)
    low, high = exact_share(count, LOOK)
    less_frozen, less_sham = (proofs.beyond[trio.live, arm] for arm in (trio.frozen, trio.sham))
    although = ", although acceptance does not rise" if sign(less_frozen) > 0 >= sign(live.rise) else ""
    not_shows = (
        f"what that is worth: the utility of the same interactions changes by {_change(live.gain, 'utility')}"
        f"{_worse_off(live)}. Over all interactions {of_live} less {of_frozen} is {_change(less_frozen, 'utility')}"
        f"{although}; {of_live} less {of_sham} is {_change(less_sham, 'utility')}. Nor does it show anything of one "
        f"user: who listens to {count} of {LOOK} may be one who listens to {typeset_interval(low, high, 'share')}, and "
        f"under {of_frozen} acceptance climbs at both steps for {_share(frozen.climbs)} of users ({of_sham} "
        f"{_share(sham.climbs)}, {of_live} {_share(live.climbs)})."
    )
    return Says(marked(shows), marked(not_shows))


def _worse_off(arc: Arc) -> str:
    """Sentence on what acceptance hides, where it hides something."""
    rises, gains = (sign(test) for test in (arc.rise, arc.gain))
    if gains == 0:
        return ", an interval that holds 0"
    return ", so acceptance rises and users are worse off" if rises > 0 > gains else ""


def sign(test: PairedT) -> int:
    """1 or -1 where the whole 95 % interval lies above or below 0, else 0."""
    low, high = ends(test)
    return int(low > 0) - int(high < 0)


# --------------------------------------------------------------------------------------------------------- pair


def _pair_cells(pair: PairShares) -> list[Cell]:
    return [_cell(pair.share, "share"), _cell(pair.reverse, "share")]


def _pair_says(proofs: ClaimedProofs, trio: Trio) -> Says:
    live, frozen, sham = (proofs.pairs[arm] for arm in (trio.live, trio.frozen, trio.sham))
    of_live, of_frozen, of_sham = (code(arm) for arm in (trio.live, trio.frozen, trio.sham))
    shows = (
        f"that {_share(live.share.mean)} of users have such a pair under {of_live}, {_share(frozen.share.mean)} under "
        f"{of_frozen} and {_share(sham.share.mean)} under {of_sham}: {of_live} less {of_frozen} is "
        f"{_change(proofs.found[trio.live, trio.frozen], 'difference')}, less {of_sham} "
        f"{_change(proofs.found[trio.live, trio.sham], 'difference')}."
    )
    often = f" {live.share.mean / frozen.share.mean:.1f} times as frequent as" if frozen.share.mean else ", and none"
    not_shows = (
        f"that one user's pair comes of learning: pairs are{often} under {of_frozen}, where nothing is learned, and "
        f"{_share(live.reverse.mean)} of users under {of_live} have one the other way round."
    )
    return Says(marked(shows), marked(not_shows))


# -------------------------------------------------------------------------------------------------------- seeds


def _seed_rows(contrasts: Sequence[SeedContrast], named: Mapping[str, Look]) -> list[ArmRow]:
    rows: dict[str, ArmRow] = {}
    for contrast in contrasts:
        for k, arm in enumerate((contrast.reference, contrast.arm)):
            at = 1 - k  # figures have the arm first
            cells = [_cell(contrast.acceptance[at], "share"), _cell(contrast.utility[at], "utility")]
            if arm in named:
                rows.setdefault(arm, ArmRow(named[arm], f"begins with {contrast.seeds[at] or 'no skill'}", cells))
    return list(rows.values())


def _seeds_say(contrast: SeedContrast, noun: str) -> Says:
    arm, reference = code(contrast.arm), code(contrast.reference)
    mine, theirs, difference = contrast.acceptance
    shows = (
        f"that users of {arm} listen to {_share(mine.mean)} of all interactions and those of {reference} to "
        f"{_share(theirs.mean)}: {_change(difference, 'difference')}."
    )
    since = "both arms learn from then on" if contrast.learns else "neither arm learns"
    not_shows = (
        f"that this was learned: both books were given before the first trigger, and {since}. In utility a {noun} "
        f"{arm} less {reference} is {_change(contrast.utility[2], 'utility')}."
    )
    return Says(marked(shows), marked(not_shows))


def _seeds_missing(run: Run, frozen: str) -> str:
    """An override that adds an arm with another book beside `frozen`."""
    seeds = (run.manifest["compositions"][frozen]).get("seeds")
    overrides = [override for override in run.config["arms"][frozen] if not override.startswith("seeds=")]
    other = "rookie" if seeds == "pro" else "pro"
    return f"+arms.other_book=[{','.join([*overrides, f'seeds={other}'])}]"
