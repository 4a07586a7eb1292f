"""Users differ: in what they like to ask, and in when they get up."""

import numpy as np
import pytest

from skg_bench.core.world import Events
from tests.simulator.users import WEEK, assistant, events, real


def first_types(some: Events, user: int, n: int) -> list[int]:
    """The user's first n request types."""
    typed = some.truth.type[user, : some.n[user]]
    return list(dict.fromkeys(typed[typed >= 0].tolist()))[:n]


def test_the_stronger_the_taste_the_fewer_intents_a_user_begins_with() -> None:
    users, intent = np.arange(60, dtype=np.int32), assistant()._corpus.intent
    distinct = []
    for spread in (0.0, 1.0, 3.0):
        made = assistant(taste_spread=spread).population(0, users, 2)
        begun = [first_types(made, u, 25) for u in range(60)]
        distinct.append(np.mean([len(set(intent[t].tolist())) for t in begun if len(t) == 25]))
    assert distinct[0] > 1.1 * distinct[1] > 1.3 * distinct[2]


def test_an_intent_is_as_likely_with_many_slot_values_as_with_one() -> None:
    corpus = assistant()._corpus
    values = np.bincount(corpus.intent)
    made = events(500, 4)
    begun = np.array([t for u in range(500) for t in first_types(made, u, 3)])
    slotted = (values[corpus.intent[begun]] > 1).mean()
    assert abs(slotted - (values > 1).mean()) < 0.15  # among request types it would be 0.93


@pytest.mark.parametrize("seed", [0, 1])
def test_early_risers_stay_early_risers(seed: int) -> None:
    made = events(300, 4, seed)
    middle = []
    for half in (0, 1):
        at = real(made) & (made.time // (2 * WEEK) == half)
        noon = [np.mean(made.time[u][at[u]] % 86_400) if at[u].sum() > 100 else np.nan for u in range(300)]
        middle.append(np.array(noon))
    both = ~np.isnan(middle[0]) & ~np.isnan(middle[1])
    assert both.sum() > 80
    assert np.corrcoef(middle[0][both], middle[1][both])[0, 1] > 0.3
