"""Models of outcomes: fits take one thread, whatever the machine has."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info

from skg_bench.simulator.logs.outcome_models import FIT_ROWS, cross_fitted


def test_a_fit_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for one another took most of the processor time of a fit."""
    threads, fit = set[int](), LogisticRegression.fit

    def watched(model: Any, *given: Any, **named: Any) -> Any:
        threads.update(pool["num_threads"] for pool in threadpool_info())
        return fit(model, *given, **named)

    monkeypatch.setattr(LogisticRegression, "fit", watched)
    n = 5 * FIT_ROWS
    x = np.linspace(-1, 1, n)[:, None]
    cross_fitted("logistic", x, np.arange(n) % 2, np.arange(n) % 5, 2)
    assert threads == {1}
