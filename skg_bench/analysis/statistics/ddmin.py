"""The smallest part of a session that still shows something: delta debugging."""

from collections.abc import Callable, Iterator, Sequence

_ASKED = 64  # parts that are tried at once

Subset = tuple[int, ...]


def ddmin(items: Sequence[int], shows: Callable[[Sequence[Subset]], Sequence[bool]]) -> Subset:
    """A part of `items`, in order, that shows it, while without any one of its items it does not (1-minimal).

    All items together must show it; `shows` is asked for many parts at once. The algorithm ddmin of Zeller and
    Hildebrandt (IEEE Transactions on Software Engineering 2002, section 3.2): try n pieces and what is left without
    each of them; go on with the smallest that shows it, or else with finer pieces. Here nothing at all is tried first.
    """
    left, n = tuple(items), 2
    if not left or shows([()])[0]:
        return ()
    while len(left) > 1:
        pieces = list(_pieces(left, n))
        rests = [tuple(i for i in left if i not in set(piece)) for piece in pieces] if n > 2 else []
        subset = _first([*pieces, *rests], shows)
        if subset is None and n == len(left):
            break
        if subset is None:
            n = min(2 * n, len(left))
        else:
            n = 2 if subset in pieces else max(n - 1, 2)
            left = subset
    return left


def _pieces(items: Subset, n: int) -> Iterator[Subset]:
    """`n` pieces of about the same length."""
    for i in range(n):
        yield items[len(items) * i // n : len(items) * (i + 1) // n]


def _first(parts: Sequence[Subset], shows: Callable[[Sequence[Subset]], Sequence[bool]]) -> Subset | None:
    """The smallest that shows it, among the first few of which one does."""
    for first in range(0, len(parts), _ASKED):
        some = parts[first : first + _ASKED]
        good = [part for part, shown in zip(some, shows(some), strict=True) if shown]
        if good:
            return min(good, key=len)
    return None
