"""Components are walked with all that is inside of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from skg_bench.asking.asking import Prices, components_within, mapped, placed


@dataclass(frozen=True)
class Keeping:
    """Keeps files."""

    folder: str | None = None

    def kept_in(self, folder: Path) -> "Keeping":
        return replace(self, folder=str(folder))


@dataclass(frozen=True)
class Holding:
    """Holds others."""

    inner: Any
    number: int = 1


def test_what_keeps_files_is_placed_wherever_it_stands_and_all_else_stays_the_same_object() -> None:
    plain = Holding(Holding(3))
    both = placed((plain, Holding((Keeping(), plain))), Path("there"))
    assert both[0] is plain
    assert both[1] == Holding((Keeping("there"), plain))
    assert placed(plain, Path("there")) is plain


def test_inner_components_are_changed_before_those_around_them() -> None:
    order: list[Any] = []

    def change(part: Any) -> Any:
        order.append(part)
        return part

    whole = Holding(Holding("deep"))
    assert mapped(whole, change) is whole
    assert order.index("deep") < order.index(Holding("deep")) < order.index(whole)
    assert list(components_within(Holding((Keeping(),)))) == [Holding((Keeping(),)), (Keeping(),), Keeping(), None, 1]


def test_cached_tokens_have_a_price_of_their_own() -> None:
    assert Prices(3.0, 0.3, 15.0).cost(1_000_000, 400_000, 100_000) == pytest.approx(1.8 + 0.12 + 1.5)
