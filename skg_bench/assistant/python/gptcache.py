"""GPTCache 0.1.44 as a Python object: its own cache of similar questions, with the run's vectors and model."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn
from warnings import catch_warnings, simplefilter

import numpy as np

from skg_bench.assistant.python.contract import Model
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32

_UNPICKLED = "data_map.txt"  # GPTCache unpickles this file of the current folder when it is imported


class GPTCache:
    """A cache for one user as GPTCache comes, with SQLite in memory and room for 1,000 answers.

    Its index alone is another one, which is exact and lies in memory. `threshold` is on GPTCache's scale: 0.9 is a
    cosine of 0.8, and its default 0.8 is a cosine of 0.6. It can be neither frozen nor saved, as its parts cannot.
    """

    def __init__(self, threshold: float = 0.8) -> None:
        self._threshold = threshold
        self._model: Model | None = None  # of the message under way
        self._ask: Callable[..., str] | None = None  # made at the first message: nothing is imported before

    def __deepcopy__(self, _memo: object) -> NoReturn:
        raise TypeError("GPTCache cannot be copied: a copy would have the same database and cache")

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the cache, or those of the model, which it then keeps."""
        self._model = model
        if self._ask is None:
            self._ask = _cached(self._threshold, self._vector)
        return self._ask(message, model)

    def _vector(self, text: str, **_: object) -> F32:
        assert self._model is not None  # noqa: S101  `answer` has set it
        return np.array(self._model.embed(text), np.float32)


def _cached(threshold: float, vector: Callable[..., F32]) -> Callable[..., str]:
    """A function that answers a message from an empty cache, or by the model.

    Raises UsageError where GPTCache is not installed.
    """
    _check_import()
    try:
        import gptcache.utils
        import sqlalchemy  # noqa: F401  SQLite

        gptcache.utils.prompt_install = _refused  # it would run the first pip on PATH for whatever is missing
        from gptcache import Cache, Config
        from gptcache.adapter.adapter import adapt
        from gptcache.manager import CacheBase, get_data_manager
        from gptcache.processor.pre import get_prompt
        from gptcache.similarity_evaluation import SearchDistanceEvaluation
    except ImportError as error:
        raise _refused(str(error.name)) from error
    with catch_warnings():
        simplefilter("ignore")  # SQLAlchemy says that GPTCache calls it by an older name
        storage = CacheBase("sqlite", sql_url="sqlite://")
    cache = Cache()
    cache.init(
        pre_embedding_func=get_prompt,
        embedding_func=vector,
        data_manager=get_data_manager(storage, _ExactIndex()),
        similarity_evaluation=SearchDistanceEvaluation(),
        config=Config(similarity_threshold=threshold),
    )

    def answer(message: str, model: Model) -> str:
        return str(adapt(lambda prompt: model(prompt), lambda words: words, _kept, prompt=message, cache_obj=cache))

    return answer


def _kept(words: str, keep: Callable[[str], object], *_: object, **__: object) -> str:
    keep(words)
    return words


def _check_import() -> None:
    if Path(_UNPICKLED).exists():
        raise UsageError(
            f"GPTCache unpickles the file {_UNPICKLED} of the current folder, and could run whatever is written there; "
            "give the command in another folder"
        )


def _refused(package: str, **_: object) -> UsageError:
    raise UsageError(
        f"GPTCache needs {package}, which is not installed; `make peers-assistants` makes an environment for it, or "
        "take pip install gptcache==0.1.44 SQLAlchemy"
    )


class _ExactIndex:
    """Nearest vector by squared distance, which is what GPTCache's own index finds and says."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._vectors: list[F32] = []

    def mul_add(self, datas: Sequence[Any]) -> None:
        """Keeps vectors with their ids."""
        self._ids += [each.id for each in datas]
        self._vectors += [each.data for each in datas]

    def search(self, data: F32, top_k: int) -> list[tuple[float, int]]:
        """Squared distance and id of the nearest one; `top_k` of -1 asks for one, too."""
        if not self._ids:
            return []
        distances = ((np.stack(self._vectors) - data) ** 2).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[: max(1, top_k)]
        return [(float(distances[at]), self._ids[at]) for at in nearest.tolist()]

    def delete(self, ids: Sequence[int]) -> None:
        """Drops vectors."""
        gone = set(ids)
        kept = [(i, vector) for i, vector in zip(self._ids, self._vectors, strict=True) if i not in gone]
        self._ids, self._vectors = [i for i, _ in kept], [vector for _, vector in kept]

    def rebuild(self, ids: Sequence[int]) -> None:
        """Keeps these alone."""
        self.delete(sorted(set(self._ids).difference(ids)))

    def flush(self) -> None:
        """Writes nothing."""

    def close(self) -> None:
        """Does nothing."""
