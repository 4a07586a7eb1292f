"""The study of panels: what a panel costs, and what is seen on it."""

import numpy as np

from experiments.gate_power.panels import cost, kept, states
from tests.analysis.gate.test_power import made


def test_without_the_busiest_a_panel_has_as_many_users_and_ends_earlier() -> None:
    everybody, without = (cost(6, 1, 0, leave) for leave in (False, True))
    assert without.longest < everybody.longest <= everybody.turns
    assert min(everybody.seconds, without.seconds) > 0
    assert kept(np.arange(100), True).sum() == 98
    assert kept(np.arange(100), False).all()


def test_more_users_find_more_of_a_harm() -> None:
    few, many = (states(made(), users, 40, 0, "utility", 0.02) for users in (20, 400))
    assert few.count("fail") < many.count("fail")
    assert states(made(), 400, 40, 0).count("fail") <= 6
