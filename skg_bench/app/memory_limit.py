"""The limit of a shell on memory (`ulimit -v`), which is looked at before the libraries are imported.

Below what they map, they end in many ways: an abort, a file that seems torn, or OpenBLAS, which tries again for ever
and hears no signal.
"""

import os
import resource

from skg_bench.core.errors import UsageError

LEAST_MAPPED = 2**30  # bytes that may be mapped, of which a quarter is used; 0.8 GiB do not compare two users
# OpenBLAS maps a stack and a buffer for each thread, one a core. The bits of a run do not depend on it.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def limit() -> int | None:
    """Bytes that this process may map; None: as many as it wants."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most


def check_limit() -> None:
    """Hold the limit to what the libraries need. Under any limit they get one thread, unless a person says otherwise.

    Raises UsageError.
    """
    if (most := limit()) is None:
        return
    if most < LEAST_MAPPED:
        raise UsageError(
            f"the limit of this shell on memory is {most >> 20:,} MiB (ulimit -v), and skg-bench needs "
            f"{LEAST_MAPPED >> 20:,} MiB at least, of which it uses a quarter; give a larger one: "
            f"ulimit -v {LEAST_MAPPED >> 10}, or ulimit -v unlimited"
        )
    for variable in _ONE_THREAD:
        os.environ.setdefault(variable, "1")
