"""Signs, which say which feedback of a domain counts as which rating, and how those of the two loops are put together.

Users of an assistant whose skills say something rate no answers. They do something about it, at once or later, and say
days later whether that was right. An arm's signs make ratings of both, which all of its components then learn from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AFTERWARDS, RATING, RETRACTED, KnownFeedback
from skg_bench.core.grid import I32, I64
from skg_bench.core.growing import wider
from skg_bench.core.reach import NO_REACH, Reaches

Loop = Literal["immediate", "retrospective"]
SignMerge = Literal["sum", "replace", "separate"]
_VALID = (-1, 0, 1)


class HeardOutcomes:
    """Outcomes and ratings of each user's turns, `[B, T]` each, -1: not known."""

    def __init__(self, n_users: int) -> None:
        self.outcome = np.full((n_users, 0), -1, np.int8)
        self.rating = np.full((n_users, 0), -1, np.int8)

    def reach(self, turns: int) -> None:
        """Room for this number of turns."""
        self.outcome, self.rating = wider(self.outcome, turns, -1), wider(self.rating, turns, -1)


@dataclass(frozen=True)
class Signs:
    """Signs of outcomes, and of what users say later given the outcome: 1 is a rating ok, 0 partial, -1 miss.

    `loops` says which of the two rate skills. `merge`: the later sign is one more rating (`sum`), takes the place of
    the earlier one (`replace`), or is feedback of a kind of its own (`separate`).
    """

    outcome: Mapping[str, int]
    satisfaction: Mapping[str, Mapping[str, int]]
    loops: tuple[Loop, ...]
    merge: SignMerge
    reaches: ClassVar[Reaches] = {"outcome": NO_REACH, "satisfaction": NO_REACH}

    def __post_init__(self) -> None:
        object.__setattr__(self, "loops", tuple(self.loops))
        _check_signs("signs.outcome", self.outcome)
        for name, later in self.satisfaction.items():
            where = f"signs.satisfaction.{name}"
            if not isinstance(later, Mapping):
                raise UsageError(f"{where}={later!r} must give signs by what is said later")
            _check_signs(where, later)
        _check_words("signs.loops", self.loops, get_args(Loop))
        if not self.loops:
            raise UsageError(
                f"signs.loops is empty, so that nothing is learned from; name {' or '.join(get_args(Loop))}"
            )
        if self.merge not in get_args(SignMerge):
            raise UsageError(f"signs.merge={self.merge!r}, valid are {', '.join(get_args(SignMerge))}")

    def check(self, domain: Domain) -> None:
        """Raises UsageError for levels of feedback that a domain with signals does not have, and for outcomes without a
        sign.
        """
        outcomes, satisfactions = (_levels(domain, number) for number in (domain.acted, domain.later))
        if not outcomes and not satisfactions:
            return
        if unknown := [name for name in self.outcome if name not in outcomes]:
            raise UsageError(
                f"signs.outcome has {unknown[0]!r}, valid are {', '.join(outcomes)}, which are said in the domain "
                f"{domain.name!r}; signs=NAME takes those of conf/signs/NAME.yaml, in your package too"
            )
        if missing := [name for name in outcomes if name not in self.outcome]:
            raise UsageError(f"signs.outcome leaves out {', '.join(missing)}; give each outcome a sign: -1, 0 or 1")
        _check_words("signs.satisfaction", self.satisfaction, outcomes)
        for name, later in self.satisfaction.items():
            _check_words(f"signs.satisfaction.{name}", later, satisfactions)

    @cached_property
    def _known(self) -> dict[str, tuple[I32, I32]]:
        """Ratings by the name of the domain, once they were asked for."""
        return {}

    def _ratings(self, domain: Domain) -> tuple[I32, I32]:
        """Rating of each outcome; and of what is said later, by outcome, where the last row, which index -1 finds, is
        for unknown outcomes.
        """
        if domain.name not in self._known:
            outcomes, answers = (_levels(domain, number) for number in (domain.acted, domain.later))
            later = [*(self.satisfaction.get(name, {}) for name in outcomes), {}]
            self._known[domain.name] = (
                np.array([1 - self.outcome[name] for name in outcomes], np.int32),
                np.array([[1 - signs.get(answer, 0) for answer in answers] for signs in later], np.int32),
            )
        return self._known[domain.name]

    def rate(self, known: KnownFeedback, heard: HeardOutcomes, domain: Domain) -> tuple[KnownFeedback, I64]:
        """The feedback with ratings, each right behind what it is made of, and for each row its place in `known`. What
        skills did not serve is rated by nobody. `heard` remembers the outcomes.
        """
        acted, later = known.kind == domain.acted, known.kind == domain.later
        if not (len(known.row) and (acted | later).any()):
            return known, np.arange(len(known.row))
        heard.reach(int(known.turn.max()) + 1)
        of_outcome, of_satisfaction = self._ratings(domain)
        did = known.rows(acted)
        heard.outcome[did.row, did.turn] = did.value
        served, parts = known.skill >= 0, [_Rows(np.arange(len(known.row)), known.kind, known.value)]
        if "immediate" in self.loops:
            rating = of_outcome[known.value[acted]]
            first = np.flatnonzero(acted & served)
            parts.append(_rows(first, RATING, rating[served[acted]]))
            heard.rating[known.row[first], known.turn[first]] = parts[-1].value
        if "retrospective" in self.loops:
            at = np.flatnonzero(later & served)
            row, turn = known.row[at], known.turn[at]
            rating = of_satisfaction[heard.outcome[row, turn], known.value[at]]
            if self.merge == "replace":
                earlier = heard.rating[row, turn].astype(np.int32)
                parts.append(_rows(at[earlier >= 0], RETRACTED, earlier[earlier >= 0]))
            parts.append(_rows(at, AFTERWARDS if self.merge == "separate" else RATING, rating))
        place, kind, value = (np.concatenate([getattr(part, name) for part in parts]) for name in _Rows.__slots__)
        order = np.argsort(place, kind="stable")
        place = place[order]
        rated = KnownFeedback(known.row[place], known.turn[place], kind[order], value[order], known.skill[place])
        return rated, place


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows at places `[n]` of the feedback, or added there."""

    place: I64
    kind: I32
    value: I32


def _rows(place: I64, kind: int, value: I32) -> _Rows:
    return _Rows(place, np.full(len(place), kind, np.int32), value)


def _levels(domain: Domain, number: int) -> tuple[str, ...]:
    """Levels of one of a domain's kinds; -1: no kind, so none."""
    return domain.kind(number).levels if number >= 0 else ()


def _check_words(where: str, words: Any, valid: Sequence[str]) -> None:
    if unknown := [word for word in words if word not in valid]:
        raise UsageError(f"{where} has {unknown[0]!r}, valid are {', '.join(valid)}")


def _check_signs(where: str, signs: Mapping[str, Any]) -> None:
    for name, sign in signs.items():
        if isinstance(sign, bool) or sign not in _VALID or not isinstance(sign, int):
            raise UsageError(f"{where}.{name}={sign!r} must be a sign: -1, 0 or 1")
