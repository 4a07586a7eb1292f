"""Tokens that a server does not count, and what is said of them."""

import logging
from collections.abc import Iterable
from functools import cache

from skg_bench.asking.asking import Completion
from skg_bench.asking.wire import CHARACTERS

ESTIMATED = "tokens estimated"  # end of what a completion says of the model that served it


@cache
def warn_of_estimates(model: str) -> None:
    """Warn that tokens of a model are estimated, once in a process."""
    logging.getLogger("skg_bench").warning(
        f"the server of {model} does not count tokens: they are estimated, one for {CHARACTERS} characters, and so are "
        "costs, budgets and all that is compared by them"
    )


def warn_where_estimated(completions: Iterable[Completion], model: str) -> None:
    """Warn where tokens of some completions were estimated when they were recorded."""
    if any(completion.served.endswith(ESTIMATED) for completion in completions):
        warn_of_estimates(model)
