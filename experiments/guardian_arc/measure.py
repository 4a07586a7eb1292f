"""Figures of a draw: acceptance, utility and size of the book by interaction, as lived and on a fixed panel."""

from collections.abc import Mapping

import numpy as np

from experiments.guardian.lives import Draw, Life, Lives, by_user, over_users, paired
from experiments.guardian.verdicts import figures
from skg_bench.core.grid import F64, Bool

FIRST, NEXT, LAST = (0, 5), (5, 10), (40, 60)  # interactions: the article's beginner, after five, and at the end
STEPS = (0, 5, 10, 20, 40)  # interactions after which the book is taken
LIVED = ("live", "frozen", "sham", "unworn", "unworn_sham")
WINDOW = 5  # interactions that are looked at from a step on


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Of all arms of `experiment=guardian_arc`."""
    known: dict[str, float] = {}
    for name in LIVED:
        known |= _lived(name, lives[name])
    live, frozen, sham = (lives[name] for name in ("live", "frozen", "sham"))
    known |= figures("live_frozen", paired(live, frozen, _utility))
    known |= figures("live_sham", paired(live, sham, _utility))
    known |= figures("unworn_sham_utility", paired(lives["unworn"], lives["unworn_sham"], _utility))
    known |= figures("live_frozen_accepted", over_users(_accepted(live) - _accepted(frozen)))
    for step in STEPS:
        book = lives[f"book_{step}"]
        known |= {f"panel_accepted_{step}": _mean(_accepted(book)), f"panel_utility_{step}": _mean(_all(book))}
    grown, seed, random = (lives[name] for name in ("book_40", "book_0", "sham_40"))
    known |= figures("grown", paired(grown, seed, _utility))
    known |= figures("grown_sham", paired(grown, random, _utility))
    known |= figures("sham_seed", paired(random, seed, _utility))
    known |= figures("grown_accepted", over_users(_accepted(grown) - _accepted(seed)))
    five = _accepted(live, FIRST)
    known["user_error"] = float(np.nanstd(five, ddof=1)) if np.isfinite(five).sum() > 1 else np.nan
    return known


def _lived(name: str, life: Life) -> dict[str, float]:
    known = {f"{name}_{part}": _mean(_accepted(life, turns)) for part, turns in PARTS.items()}
    known |= figures(f"{name}_rise", over_users(_accepted(life, LAST) - _accepted(life, FIRST)))
    known |= figures(f"{name}_gain", over_users(_all(life, LAST) - _all(life, FIRST)))
    for step in STEPS:
        window = (step, step + WINDOW)
        known[f"{name}_accepted_{step}"] = _mean(_accepted(life, window))
        known[f"{name}_utility_{step}"] = _mean(_all(life, window))
        known[f"{name}_size_{step}"] = _mean(by_user(life, life.book_size, _within(life, (step, step + 1))))
    return known | {f"{name}_size_last": _mean(by_user(life, life.book_size, _within(life, LAST)))}


PARTS = {"first": FIRST, "next": NEXT, "last": LAST}


def _within(life: Life, turns: tuple[int, int]) -> Bool:
    number = np.arange(life.there.shape[1])
    mask: Bool = life.there & (number >= turns[0]) & (number < turns[1])
    return mask


def _accepted(life: Life, turns: tuple[int, int] = (0, 10**6)) -> F64:
    """A user's share of interventions that are listened to. `[U]`"""
    return by_user(life, life.listened, life.spoken & _within(life, turns))


def _all(life: Life, turns: tuple[int, int] = (0, 10**6)) -> F64:
    """A user's utility a trigger. `[U]`"""
    return by_user(life, life.utility, _within(life, turns))


def _utility(life: Life) -> F64:
    return life.utility


def _mean(values: F64) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
