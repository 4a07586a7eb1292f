"""Features that a scorer can learn from and score: numbers, all of them."""

from collections.abc import Sequence

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64


def check_finite(features: F64, names: Sequence[str] | None = None) -> None:
    """Raises UsageError if any of `features` `[..., F]` is NaN or infinite; `names` name the columns."""
    if np.isfinite(features).all():
        return
    bad = ~np.isfinite(features).reshape(-1, features.shape[-1])
    column = int(bad.any(axis=0).argmax())
    name = f"number {column}" if names is None else repr(names[column])
    raise UsageError(
        f"feature {name} is NaN or infinite for {int(bad[:, column].sum())} of {len(bad)} candidates; features are "
        "numbers from 0 to 1: look at what the router gave as similarity, or leave the feature's group out of "
        "signals.features"
    )
