"""Worth of learning where luck, mood and order are out; and the article's three proofs, for what learns and for
what does not.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from skg_bench.core.grid import F64, Bool
from skg_bench.simulator.advice.levels import OVERRIDDEN
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.study.guardian.lives import Draw, Life, Lives, MeanDifference, life_means, over_users
from skg_bench.study.guardian.mass_verdicts import figures
from skg_bench.study.guardian.replays import books_of_others, later
from skg_bench.study.guardian.study import DrawStudy, served

HALF = 30  # triggers after which a book is given; it is judged on those that follow
STEP = 15  # trigger whose own lesson is judged, on that trigger
WITHIN = 18  # triggers within which the article's second evening follows the first
SHAMS = ("sham_content", "sham_ratings", "sham")
PLAYED = ("live", *SHAMS, "variety", "frozen")  # arms as they were lived
BOOKS = {"live": "live_30", **{name: f"{name}_30" for name in SHAMS}}  # arms that learn nothing from turn HALF on
_PARTS = 3  # of a life: a rise is from the first part to the last


def replayed(whole: DrawStudy, draw: Draw, lives: Lives) -> Lives:
    """All triggers again: with the books that arms learned until turn HALF, around turn STEP and in all, and of others.
    The reader chooses as before; what users do is not looked at, only what it is worth on average without a mood.
    """
    books = {f"book_{name}": lives[arm].books for name, arm in BOOKS.items()}
    books["book_donor"] = books_of_others(lives[BOOKS["live"]], HALF)
    books |= {"book_before": lives["live_15"].books, "book_after": lives["live_16"].books}
    return served(whole, draw, "frozen", {**books, "book_in_all": lives["live"].books})


def worth_of_books(lives: Lives) -> dict[str, F64]:
    """Each user's mean gain by the book of trigger HALF on later triggers, of which it has learned nothing: the worth
    of what is said with it less that with the book of the beginning, on average over luck and without a mood. `[U]`
    """
    before = lives["frozen"]
    return {name: gain(lives[f"book_{name}"], before, later(before, HALF)) for name in (*BOOKS, "donor")}


def gain(after: Life, before: Life, among: Bool) -> F64:
    """Each user's mean of what one book is worth more than another, on the same triggers. `[U]`"""
    return life_means(after, after.fresh - before.fresh, among)


def rise(life: Life) -> F64:
    """Acceptance in the last third of each user's life, less that in the first. `[U]`"""
    place = np.arange(life.there.shape[1])[None]
    n = life.there.sum(axis=1, keepdims=True)
    listened = life.listened.astype(np.float64)
    first, last = (place * _PARTS < n), (place * _PARTS >= n * (_PARTS - 1))
    return life_means(life, listened, life.spoken & last) - life_means(life, listened, life.spoken & first)


def pairs(life: Life, *, reverse: bool = False) -> Bool:
    """Whose life has the article's pair: an override, then within WITHIN triggers, in the same context, another
    strategy and no override. `reverse`: the one that was overridden comes second. `[U]`
    """
    overridden = life.spoken & (life.outcome == OVERRIDDEN)
    first, second = (life.listened, overridden) if reverse else (overridden, life.listened)
    paired = np.zeros(len(life.there), np.bool_)
    for apart in range(1, min(WITHIN + 1, life.there.shape[1])):
        same = life.context[:, :-apart] == life.context[:, apart:]
        other = life.kind[:, :-apart] != life.kind[:, apart:]
        paired |= (first[:, :-apart] & second[:, apart:] & same & other).any(axis=1)
    return paired


@lru_cache(maxsize=1)
def evening() -> tuple[int, int]:
    """The article's evening: its context, and the kind of strategy that asks in general terms."""
    table = strategies(None)
    times = len(table.times)
    context = table.categories.index("electronics") * times + table.times.index("late at night")
    return context, table.kinds.index("impulse-check-generic")


def first_evening(life: Life) -> float:
    """Share overridden of generic advice about electronics late at night, over all users; NaN without any."""
    context, generic = evening()
    such = life.spoken & (life.context == context) & np.isin(life.kind, (-1, generic))
    return float((life.outcome[such] == OVERRIDDEN).mean()) if such.any() else float("nan")


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Figures of a draw."""
    frozen, live = lives["frozen"], lives["live"]
    row: dict[str, float] = {"first_evening": first_evening(frozen)}

    def tell(name: str, difference: MeanDifference) -> None:
        row.update(figures(name, difference))

    books = worth_of_books(lives)
    for name, worth in books.items():
        tell(f"proof_{name}", over_users(worth))
    for name in (*SHAMS, "donor"):
        tell(f"proof_live_less_{name}", over_users(books["live"] - books[name]))
    at = later(live, STEP) & ~later(live, STEP + 1)
    tell("step", over_users(gain(lives["book_after"], lives["book_before"], at)))
    tell("life", over_users(gain(lives["book_in_all"], frozen, frozen.there)))
    for name in PLAYED:
        life = lives[name]
        tell(f"rise_{name}", over_users(rise(life)))
        row[f"pair_{name}"] = float(pairs(life).mean())
        row[f"reversed_{name}"] = float(pairs(life, reverse=True).mean())
        if name != "frozen":
            accepted = [life_means(lived, lived.listened.astype(np.float64), lived.spoken) for lived in (life, frozen)]
            tell(f"acceptance_{name}", over_users(accepted[0] - accepted[1]))
            tell(f"utility_{name}", over_users(life_means(life, life.utility) - life_means(frozen, frozen.utility)))
        if name != "live":
            tell(f"pairs_live_less_{name}", over_users(pairs(live).astype(np.float64) - pairs(life)))
    return row
