"""Figures of choosers in a draw: what each makes of the same book, and how well its reader tells places apart."""

from collections.abc import Mapping

import numpy as np

from skg_bench.core.grid import F64
from skg_bench.study.guardian.lives import Draw, Life, Lives, MeanDifference, life_means, over_users
from skg_bench.study.guardian.mass_verdicts import figures

FORK = 30  # turn from which on the book is given; conf/experiment/llm_or_rule.yaml
CHOOSERS = {
    "reader": "a reader of the prompt",
    "sharp": "a reader who leaves nothing to chance",
    "rule_anywhere": "the rule without a place: what helped most",
    "thompson": "Thompson sampling, without a place",
    "random": "any strategy, or the generic question",
    "oracle": "the best strategy of the same book",
    "position": "a reader of the order alone",
    "hidden": "a reader from whom ratings are hidden",
    "empty": "the same prompt with an empty book",
}
AGAINST = {  # the reader less these, in the same draw
    "hidden": "ratings in the prompt: the reader, less one from whom they are hidden",
    "position": "what the prompt says: the reader, less one of the order alone",
    "random": "choosing: the reader, less a random choice from the same book",
    "empty": "the book: the reader, less the same prompt with an empty book",
}
READING = {"reader": None, "places_0": 0.0, "places_4": 4.0, "places_16": 16.0}  # weight of the place; None: as drawn
APART = 0.23  # how much nearer a trigger is to one of the same category than to another [cosine]: see the README


def measure(draw: Draw, lives: Lives) -> Mapping[str, float]:
    """A row of the table: differences in utility from the rule and from controls, once the book is given."""
    row: dict[str, float] = {}
    for name, life in lives.items():
        row[f"utility {name}"] = over_users(_by_user(life)).mean
        row[f"acceptance {name}"] = over_users(_by_user(life, acceptance=True)).mean
        if name not in ("rule", "live"):
            row |= figures(f"{name} - rule", _less(life, lives["rule"]))
    for name in AGAINST:
        row |= figures(f"reader - {name}", _less(lives["reader"], lives[name]))
    for name, weight in READING.items():
        similarity = draw.values["policy.similarity"] if weight is None else weight
        row[f"prefers {name}"] = prefers(similarity, draw.values["policy.temperature"])
    return row


def prefers(similarity: float, temperature: float) -> float:
    """Probability that the reader, of two strategies that differ in place alone, takes the one learned here."""
    return float(1.0 / (1.0 + np.exp(-similarity * APART / temperature)))


def _less(life: Life, other: Life) -> MeanDifference:
    return over_users(_by_user(life) - _by_user(other))


def _by_user(life: Life, *, acceptance: bool = False) -> F64:
    """A user's mean over the turns with the given book."""
    given = np.broadcast_to(np.arange(life.there.shape[1]) >= FORK, life.there.shape)
    return (
        life_means(life, life.listened.astype(float), life.spoken & given)
        if acceptance
        else life_means(life, life.utility, given)
    )
