"""Two ways in which libraries compute: with the processor's own kernels, and with all that can differ from them."""

import os
import platform
import subprocess
import sys
from importlib import import_module
from pathlib import Path


def _avx512() -> bool:
    info = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and info.is_file() and "avx512vl" in info.read_text()


_NUMPY = import_module("numpy._core._multiarray_umath")
WIDE = " ".join(name for name in _NUMPY.__cpu_dispatch__ if _NUMPY.__cpu_features__.get(name))  # what it uses here
KERNELS = {
    "native": {"OPENBLAS_NUM_THREADS": "1"},
    "other": {  # OpenBLAS takes SkylakeX by itself where it can, and what is least elsewhere
        "OPENBLAS_CORETYPE": "Haswell" if _avx512() else "Nehalem",
        "OPENBLAS_NUM_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": WIDE,
    },
}


def elsewhere(kernel: str, root: Path, *command: str) -> str:
    """What a Python of its own prints, computing in another way."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "NPY_", "OMP_"))}
    arguments = [sys.executable, "-W", "ignore", *command]
    done = subprocess.run(arguments, env=known | KERNELS[kernel], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
