"""Worth of a book of one's own, against books that several users share."""

from collections.abc import Mapping

import numpy as np

from experiments.personal_or_shared.batch import shared
from skg_bench.core.grid import F64
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, over_users
from skg_bench.study.guardian.mass_verdicts import figures
from skg_bench.study.guardian.replays import books_of_others, later, life_with
from skg_bench.study.guardian.study import DrawStudy, opened, served

HALF = 30  # triggers after which books are compared, on those that follow
NIGHTS = (1, 3, 10, HALF)  # triggers of each user that a batch has read
SHARED = ("donor", "batch", "cohorts", "population", "frozen")  # what one's own book is held against


def replayed(whole: DrawStudy, draw: Draw, lives: Lives) -> Lives:
    """All triggers again with each user's book of turn HALF, another user's, and the shared book of each night."""
    setting = opened(whole, draw)
    taught = lives[f"live_{HALF}"]
    books = {"own": taught.books, "donor": books_of_others(taught, HALF)}
    for night in NIGHTS:
        books[f"batch_{night}"] = shared(setting, lives[f"live_{night}"].books, len(taught.there))
    return served(whole, draw, "frozen", books, setting)


def cohorts(lives: Lives) -> F64:
    """An A/B test, `[U, T]` of worth without a mood: until turn HALF every other user has the seed book, the others the
    other hand-written one; then all have the one under which more was listened to.
    """
    a, b = lives["frozen"], lives["pro"]
    arm = np.arange(len(a.there)) % 2
    first = ~later(a, HALF)
    accepted = [
        float(np.nanmean(life_means(life, life.listened.astype(np.float64), life.spoken & first)[arm == i]))
        for i, life in enumerate((a, b))
    ]
    winner = (a, b)[int(accepted[1] > accepted[0])]
    tested = np.where(arm[:, None] == 0, a.fresh, b.fresh)
    return np.where(first, tested, winner.fresh)


def worths(lives: Lives) -> Mapping[str, F64]:
    """Worth without a mood of all triggers, `[U, T]`, by who learns what and when."""
    nights = {0: lives["frozen"], **{night: lives[f"batch_{night}"] for night in NIGHTS}}
    return {
        "batch": life_with(nights, "fresh"), "cohorts": cohorts(lives),
        **{name: lives[name].fresh for name in ("live", "frozen", "sham", "blind", "population", "own", "donor")},
    }  # fmt: skip


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Figures of a draw."""
    live = lives["live"]
    row: dict[str, float] = {}
    by_name = worths(lives)
    after = later(live, HALF)

    def more(name: str, other: str, panel: np.ndarray) -> F64:
        """MeanDifference of each user."""
        return life_means(live, by_name[name] - by_name[other], panel)

    for name in SHARED:
        row |= figures(f"own_less_{name}", over_users(more("own", name, after)))
        if name != "donor":
            row |= figures(f"life_less_{name}", over_users(more("live", name, live.there)))
    row |= figures("life_less_sham", over_users(more("live", "sham", live.there)))
    row |= figures("life_less_blind", over_users(more("live", "blind", live.there)))
    row |= _shares(row)
    for name in ("frozen", "sham", "blind", "population"):
        row |= figures(f"utility_less_{name}", over_users(_utility(live) - _utility(lives[name])))
        row |= figures(f"accepted_less_{name}", over_users(_accepted(live) - _accepted(lives[name])))
    return row


def _shares(row: Mapping[str, float]) -> dict[str, float]:
    """Shares of what one's own book is worth beyond the seed book that another's, and a shared one, lack. NaN
    where one's own book is not significantly worth more.
    """
    gain, error = row["own_less_frozen"], row["own_less_frozen_error"]
    worth_it = gain > 1.96 * error
    return {
        f"personal_{name}": row[f"own_less_{name}"] / gain if worth_it else float("nan") for name in ("donor", "batch")
    }


def _utility(life: Life) -> F64:
    return life_means(life, life.utility)


def _accepted(life: Life) -> F64:
    return life_means(life, life.listened.astype(np.float64), life.spoken)
