"""Knowledge that a model has of the user: its prompt. Where that lacks a fact, it asks back, declines or guesses.

Each manner is an outcome. Where the fact was never told, or no longer holds, the right answer is to say so: asking back
and declining are right there, and a guess is wrong.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.grid import F64, I8, I32, I64, U64, Bool
from skg_bench.core.world import PROMPTED, Ledger, Served
from skg_bench.simulator.facts.catalogue import Catalogue
from skg_bench.simulator.facts.stream import Needs
from skg_bench.simulator.facts.table import BY_DEVICE, BY_NOBODY, BY_USER, BY_WORLD, TELLING

PROMPT_CONTENTS = ("nothing", "fact", "outdated", "mistaken")
NOTHING, FACT, OUTDATED, MISTAKEN = range(len(PROMPT_CONTENTS))
MANNERS = ("stated", "asked_back", "declined", "guessed")
STATED, ASKED_BACK, DECLINED, GUESSED = range(len(MANNERS))


@dataclass(frozen=True, slots=True)
class Turns:
    """Needs of the events of one turn, `[B]` each."""

    type: I32
    knower: I8
    thing: I32  # [B, 2]
    wanted: I32  # [B, 2]
    told: I64
    changed: Bool
    first: Bool

    @staticmethod
    def of(needs: Needs, type_: I32, number: I32) -> "Turns":
        """Needs of the events with these numbers."""
        at = np.arange(len(number)), number
        return Turns(
            type_, needs.knower[at], needs.thing[at], needs.wanted[at], needs.told[at], needs.changed[at],
            needs.first[at],
        )  # fmt: skip

    def owned(self, *, tools: bool) -> Bool:
        """Mask of requests that a model answers by itself, with its tools if it has them."""
        mask: Bool = (self.knower == BY_WORLD) | (tools & (self.knower == BY_DEVICE))
        return mask

    def knowable(self, catalogue: Catalogue) -> Bool:
        """Mask of requests for facts that were told, and hold."""
        valued = (self.thing < 0) | (catalogue.value[self.wanted] >= 0)
        mask: Bool = (self.thing[:, 0] >= 0) & valued.all(axis=1)
        return mask


@dataclass(frozen=True)
class Manners:
    """A model that lacks something. Meaning and source of each share stand in `conf/simulator/facts.yaml`."""

    asks_back: float
    declines: float
    guesses_if_misled: float
    guess_right: float
    tools: bool

    def guesses(self, misled: Bool) -> F64:
        """Probability that it guesses, `[B]`. `misled`: its prompt is about something else."""
        share = max(0.0, 1.0 - self.asks_back - self.declines)
        return np.where(misled, max(share, self.guesses_if_misled), share)

    def manner(self, guesses: F64, event: U64) -> I32:
        """Manner of each model that lacks something, `[B]`."""
        u = uniform(fold(fold(fold(event, int(Purpose.MANNER)), 0), 0))
        asks = self.asks_back / max(self.asks_back + self.declines, 1e-12)
        says = np.where(u < (1.0 - guesses) * asks, ASKED_BACK, DECLINED)
        return np.where(u < 1.0 - guesses, says, GUESSED).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Knowledge of models at one turn, `[B]` each."""

    prompt: I32  # index into PROMPT_CONTENTS; -1 where nothing of the user is needed
    manner: I32  # index into MANNERS
    ability: F64  # probability of a right answer, given the manner
    chance: F64  # the same before the manner is drawn


def knowledge(
    catalogue: Catalogue, manners: Manners, turns: Turns, ledger: Ledger, served: Served, event: U64
) -> Knowledge:
    """Knowledge of models that are called; `event` are the keys of the events."""
    prompted = served.how == PROMPTED
    recalled = np.full((len(prompted), served.recalled.shape[1] + 1), -1, np.int32)  # one more: there may be none
    recalled[prompted, 1:] = served.recalled[prompted]
    needs_fact = turns.knower == BY_USER
    prompt = np.where(needs_fact, _stated(catalogue, turns, ledger, recalled), -1).astype(np.int32)
    lacks = (turns.knower == BY_NOBODY) | (needs_fact & (prompt == NOTHING))
    if not manners.tools:
        lacks |= turns.knower == BY_DEVICE
    guesses = manners.guesses(prompted)
    manner = np.where(lacks, manners.manner(guesses, event), STATED).astype(np.int32)
    knowable = turns.knowable(catalogue) | (turns.knower == BY_DEVICE)
    guessed, honest = (np.where(knowable, manners.guess_right, 0.0), np.where(knowable, 0.0, 1.0))
    guessed = np.where(turns.knower == BY_DEVICE, 0.0, guessed)  # without its tool nobody can say what is so now
    ability, chance = served.ability.copy(), served.ability.copy()
    ability[lacks] = np.where(manner == GUESSED, guessed, honest)[lacks]
    chance[lacks] = (guesses * guessed + (1.0 - guesses) * honest)[lacks]
    for mask, value in (((prompt == OUTDATED) | (prompt == MISTAKEN), 0.0), (turns.knower == TELLING, 1.0)):
        ability[mask] = chance[mask] = value
    return Knowledge(prompt, manner, ability, chance)


def _stated(catalogue: Catalogue, turns: Turns, ledger: Ledger, recalled: I32) -> I32:
    """Contents of prompts with answers `recalled` (handles `[B, J]`, -1: none), of the facts that are needed, `[B]`."""
    row = np.arange(len(recalled))[:, None]
    type_, right, time = (column[row, recalled] for column in (ledger.type, ledger.right, ledger.time))
    thing = np.where(recalled >= 0, catalogue.thing[type_], -1)
    whole = ((recalled >= 0) & right & (type_ == turns.type[:, None])).any(axis=1)
    state = np.full(len(recalled), FACT, np.int32)
    for place in range(2):
        needed, wanted = turns.thing[:, place, None], turns.wanted[:, place, None]
        informs = (catalogue.value[type_] >= 0) | (right & (type_ == wanted))
        about = (thing == needed) & informs & (needed >= 0)
        newest = np.where(about, time, -1).argmax(axis=1)[:, None]
        fits, sound, value = (
            np.take_along_axis(column, newest, axis=1)[:, 0]
            for column in (right & (type_ == wanted), right, catalogue.value[type_])
        )
        wrong = np.where(sound & (value < catalogue.most), OUTDATED, MISTAKEN)
        here = np.where(about.any(axis=1), np.where(fits, FACT, wrong), NOTHING)
        here = np.where(needed[:, 0] >= 0, here, FACT)
        state = np.where(state == FACT, here, np.where(here > FACT, here, state))
    return np.where((state == NOTHING) & whole, FACT, state).astype(np.int32)
