"""Batches in which a text's vector does not depend on its neighbours.

In a batch, shorter texts are padded, and the sums over padding change the last bits of a vector: between batches of 128
and of one, 2 % of MiniLM's rows came out one unit apart on the embedding grid. Among texts of one length nothing is
padded, and the same bits came out in batches of 2 to 1,000; a lone text takes another path through the libraries, so it
stands there twice.
"""

from collections.abc import Iterator

import numpy as np

from skg_bench.core.grid import I64

_TOKENS = 1024  # in a batch, about: more is no faster on two cores (512 to 2,048 measured), and takes more memory


def batches(lengths: I64) -> Iterator[I64]:
    """Rows of texts of the same length each, shortest first, at least two a batch; `lengths` `[N]` in tokens.

    Who is alone of that length comes twice.
    """
    order = np.argsort(lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(lengths) else ():
        size = max(2, _TOKENS // max(1, int(lengths[same[0]])))
        for first in range(0, len(same), size):
            rows = same[first : first + size]
            yield rows if len(rows) > 1 else np.repeat(rows, 2)
