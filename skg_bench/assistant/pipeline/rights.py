"""Rights to learn of the arms of a stack: from the turn at which an arm freezes on, it has fewer."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.assistant.pipeline.components import refits
from skg_bench.assistant.pipeline.parts import Part
from skg_bench.core.arms import Arm, Freeze
from skg_bench.core.grid import Bool


@dataclass(frozen=True, slots=True)
class Phase:
    """Rights to learn, for all turns between two at which an arm freezes."""

    refits: Bool  # [A] the scorer learns
    tags_only: Sequence[Bool | None]  # for each curator, its arms with a book that is frozen, where ratings count
    offers: Sequence[Bool | None]  # and those that make offers; None: all of its arms
    curates: Sequence[Bool | None]  # and those that it curates, in the same way


class Rights:
    """Rights of these arms, by the turn of their users."""

    def __init__(self, arms: Sequence[Arm], curators: Sequence[Part]) -> None:
        self._arms, self._curators = arms, curators
        self._freezes = sorted({arm.freeze_at for arm in arms if arm.freeze_at is not None})
        self._phases: dict[int, Phase] = {}  # by how many of these turns are over

    def at(self, turn: int) -> Phase:
        """Rights at a turn."""
        nth = bisect_right(self._freezes, turn)
        if nth not in self._phases:
            self._phases[nth] = self._made(turn)
        return self._phases[nth]

    def _made(self, turn: int) -> Phase:
        frozen = [arm.frozen(turn) for arm in self._arms]
        freezes_of = [[frozen[j] for j in part.arms] for part in self._curators]

        def unless(all_are: bool, freezes: Sequence[Freeze | None]) -> list[Bool | None]:
            masks = [np.array([freeze in freezes for freeze in each]) for each in freezes_of]
            return [None if (mask == all_are).all() else mask for mask in masks]

        return Phase(
            np.array([refits(arm, turn) for arm in self._arms]), unless(False, ("book", "book+scorer")),
            unless(True, (None,)), unless(True, (None, "book", "book+scorer")),
        )  # fmt: skip
