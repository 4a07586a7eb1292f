"""Figures of a draw: acceptance, utility and size of the book by interaction, as lived and on a fixed panel."""

from collections.abc import Mapping

import numpy as np

from skg_bench.core.grid import F64, Bool
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, mean, over_users, paired_lives
from skg_bench.study.guardian.mass_verdicts import figures

FIRST, NEXT, LAST = (0, 5), (5, 10), (40, 60)  # interactions: the article's beginner, after five, and at the end
STEPS = (0, 5, 10, 20, 40)  # interactions from which on windows begin
BOOKS = (0, 5, 10, 40)  # interactions after which the book is taken
LIVED = ("live", "frozen", "sham", "unworn", "unworn_sham")
WINDOW = 5  # interactions that are looked at from a step on


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Figures of all arms of `experiment=guardian_arc`."""
    known: dict[str, float] = {}
    for name in LIVED:
        known |= _lived(name, lives[name])
    live, frozen, sham = (lives[name] for name in ("live", "frozen", "sham"))
    known |= figures("live_frozen", paired_lives(live, frozen, _utility_of))
    known |= figures("live_sham", paired_lives(live, sham, _utility_of))
    known |= figures("unworn_sham_utility", paired_lives(lives["unworn"], lives["unworn_sham"], _utility_of))
    known |= figures("live_frozen_accepted", over_users(accepted(live) - accepted(frozen)))
    for step in BOOKS:
        book = lives[f"book_{step}"]
        known |= {f"panel_accepted_{step}": mean(accepted(book)), f"panel_utility_{step}": mean(utility(book))}
    grown, seed, random = (lives[name] for name in ("book_40", "book_0", "sham_40"))
    known |= figures("grown", paired_lives(grown, seed, _utility_of))
    known |= figures("grown_sham", paired_lives(grown, random, _utility_of))
    known |= figures("sham_seed", paired_lives(random, seed, _utility_of))
    known |= figures("grown_accepted", over_users(accepted(grown) - accepted(seed)))
    five = accepted(live, FIRST)
    known["user_error"] = float(np.nanstd(five, ddof=1)) if np.isfinite(five).sum() > 1 else np.nan
    return known


def _lived(name: str, life: Life) -> dict[str, float]:
    known = {f"{name}_{part}": mean(accepted(life, turns)) for part, turns in PARTS.items()}
    known |= figures(f"{name}_rise", over_users(accepted(life, LAST) - accepted(life, FIRST)))
    known |= figures(f"{name}_gain", over_users(utility(life, LAST) - utility(life, FIRST)))
    for step in STEPS:
        window = (step, step + WINDOW)
        known[f"{name}_accepted_{step}"] = mean(accepted(life, window))
        known[f"{name}_utility_{step}"] = mean(utility(life, window))
        known[f"{name}_size_{step}"] = mean(life_means(life, life.book_size, _within(life, (step, step + 1))))
    return known | {f"{name}_size_last": mean(life_means(life, life.book_size, _within(life, LAST)))}


PARTS = {"first": FIRST, "next": NEXT, "last": LAST}


def _within(life: Life, turns: tuple[int, int]) -> Bool:
    number = np.arange(life.there.shape[1])
    mask: Bool = life.there & (number >= turns[0]) & (number < turns[1])
    return mask


def accepted(life: Life, turns: tuple[int, int] = (0, 10**6)) -> F64:
    """A user's share of interventions that are listened to. `[U]`"""
    return life_means(life, life.listened, life.spoken & _within(life, turns))


def utility(life: Life, turns: tuple[int, int] = (0, 10**6)) -> F64:
    """A user's utility a trigger. `[U]`"""
    return life_means(life, life.utility, _within(life, turns))


def _utility_of(life: Life) -> F64:
    return life.utility
