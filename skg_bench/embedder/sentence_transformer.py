"""Any sentence-transformers model, run here by torch (extra `embed`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import stamp
from skg_bench.core.grid import I16, I64
from skg_bench.core.reach import NO_REACH, Reach, Reaches
from skg_bench.embedder import cache, packaged
from skg_bench.embedder.cache import TextProgress
from skg_bench.embedder.lengths import batches

_PROBE = 5.0  # seconds that the hub may take to say what a name is


@dataclass(frozen=True)
class SentenceTransformer:
    """`model`: a folder, a name on the Hugging Face hub, or `all-MiniLM-L6-v2`, whose weights come with a package.

    A name is looked up on this machine first, and asked from the hub only if it is not here. Code that a model brings
    along is run with `trust_remote_code` only, whatever the model's files say.
    """

    model: str
    revision: str | None  # commit, tag or branch on the hub; None: its main branch
    task: str | None  # for models with several heads
    dimensions: int | None  # of the vectors, the first ones are kept; None: all
    max_tokens: int | None  # texts are cut off after so many; None: after as many as the model takes
    device: Literal["cpu", "cuda"]
    trust_remote_code: bool
    reaches: ClassVar[Reaches] = {
        "model": Reach(("reads", "network"), harmless=(packaged.PACKAGED,)),
        "trust_remote_code": Reach(("code",)),
        "revision": NO_REACH,
        "task": NO_REACH,
    }

    def __post_init__(self) -> None:
        for name, value in (("dimensions", self.dimensions), ("max_tokens", self.max_tokens)):
            if value is not None and value < 1:
                raise UsageError(f"embedder.{name}={value} must be at least 1, or null")

    @property
    def pure(self) -> bool:
        """True on a CPU: texts of one length have the same bits in any batch (lengths.py); no GPU was measured."""
        return self.device == "cpu"

    @property
    def digest(self) -> str:
        """The weights, what is done with them, and the libraries that the bits depend on."""
        choices = f"task {self.task} dimensions {self.dimensions} tokens {self.max_tokens} on {self.device}"
        libraries = " ".join(f"{name} {_version(name)}" for name in ("sentence-transformers", "transformers", "torch"))
        return f"{self.model} {_weights(self, _stamps(self))} {choices} {libraries}"

    def embed(self, texts: Sequence[str], progress: TextProgress | None = None) -> I16:
        return cache.through(self.digest, texts, partial(_embed, self), progress)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError as error:
        raise _missing(library) from error


def _missing(library: str | None) -> UsageError:
    return UsageError(f"embedder=sentence_transformer needs {library}: {install_hint('sentence-transformers')}")


def _refused(what: SentenceTransformer, why: object) -> UsageError:
    return UsageError(f"embedder.model={what.model!r} cannot be loaded: {why}")


def _folder(what: SentenceTransformer) -> Path | None:
    """Folder of the model, if it is no name on the hub."""
    if what.model == packaged.PACKAGED:
        return packaged.model_folder()
    folder = Path(what.model).expanduser()
    return folder if folder.is_dir() else None


def _stamps(what: SentenceTransformer) -> Sequence[tuple[str, int, int]]:
    """Stamps of the files in a model's folder: one that is edited between two runs of this process is another model."""
    folder = _folder(what)
    return tuple(stamp(file) for file in sorted(folder.rglob("*")) if file.is_file()) if folder else ()


@lru_cache(maxsize=8)
def _weights(what: SentenceTransformer, _files: Sequence[tuple[str, int, int]]) -> str:
    """Hash of the model's files, or its commit on the hub."""
    if folder := _folder(what):
        return packaged.contents(folder)
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise _missing(error.name) from error
    try:
        here = try_to_load_from_cache(what.model, "config.json", revision=what.revision)
    except HFValidationError as error:
        raise _refused(what, f"it is no folder here, and cannot be a name on the hub ({error})") from error
    return Path(here).parent.name if isinstance(here, str) else _asked(what)


def _asked(what: SentenceTransformer) -> str:
    """The commit on the hub. Raises UsageError, after `_PROBE` seconds at most, if the hub does not say."""
    import httpx
    from huggingface_hub import HfApi

    try:
        return str(HfApi().model_info(what.model, revision=what.revision, timeout=_PROBE).sha)
    except (OSError, httpx.HTTPError) as error:
        raise _refused(
            what,
            f"it is no folder, it was not downloaded before, and the hub does not give it ({_first_line(error)}); name "
            f"a folder, or, where there is a network: hf download {what.model}",
        ) from error


@lru_cache(maxsize=1)
def _loaded(what: SentenceTransformer, files: Sequence[tuple[str, int, int]]) -> Any:
    try:
        import sentence_transformers
        import torch
        from safetensors import SafetensorError
    except ImportError as error:
        raise _missing(error.name) from error
    if what.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("embedder.device=cuda, but torch finds no GPU here; take embedder.device=cpu")
    packaged.quietly()
    folder = _folder(what)
    load = partial(
        sentence_transformers.SentenceTransformer,
        str(folder or what.model),
        device=what.device,
        revision=None if folder else _weights(what, files),
        truncate_dim=what.dimensions,
        trust_remote_code=what.trust_remote_code,
    )
    try:
        try:
            model = load(local_files_only=True)
        except OSError:
            if folder:
                raise
            _asked(what)  # without a network the library would try again for minutes
            model = load()
    except (ImportError, KeyError, OSError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
        own_code = not what.trust_remote_code and "trust_remote_code" in str(error)
        hint = "; it brings code of its own: read that first, then set embedder.trust_remote_code=true"
        raise _refused(what, _first_line(error) + hint * own_code) from error
    if what.task is not None and "task" not in model.get_model_kwargs():
        raise UsageError(f"embedder.task={what.task!r}, but {what.model} knows no tasks; take embedder.task=null")
    if what.max_tokens is not None:
        model.max_seq_length = what.max_tokens
    return model


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _embed(what: SentenceTransformer, texts: Sequence[str]) -> I16:
    model = _loaded(what, _stamps(what))
    if not texts:
        return np.zeros((0, model.get_embedding_dimension()), np.int16)
    options = {} if what.task is None else {"task": what.task}
    mask = model.preprocess(list(texts), **options).get("attention_mask")
    lengths: I64 = np.zeros(len(texts), np.int64) if mask is None else mask.sum(1).numpy()  # without one: no padding
    vector_by_row: dict[int, Any] = {}
    for rows in batches(lengths):
        some = [texts[i] for i in rows]
        vectors = model.encode(some, batch_size=len(some), show_progress_bar=False, **options)
        vector_by_row |= zip(rows.tolist(), vectors, strict=True)
    return quantise(np.stack([vector_by_row[i] for i in range(len(texts))]))
