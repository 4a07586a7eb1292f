"""Scorers shared by all users of an arm: fitted on a pool of people who are in no run, then constant; K31.

The pool is simulated under the arm for all weeks, served by a scorer that has learned nothing. All their ratings
known by the end are then fitted at once, as if they were one user's. With `scope=pool` every user is scored by what
comes out, for good; with `scope=pool+user` a new user begins with it, and the user's own ratings teach a second scorer
what the first one lacks: their log-odds add up.

What was fitted lies in `pool/ARM.json` of the run, as text, and serves any other run whose arms have the same features.
"""

import hashlib
import json
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Stackable
from skg_bench.core.batch import NO_ROWS
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, bytes_of, json_file
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.temporary import replace_whole
from skg_bench.core.types import Reranker, Scorer, TrainingRows

_TRIED = np.array([[[-1e3], [0.0], [1e3]]])  # features `[1, 3, 1]` of which any scorer gives a number

Simulate = Callable[[Arm, int], Iterable[I32]]
"""Runs an arm for so many people outside the run, some at a time; gives the ids of each time's rows, afterwards."""


@dataclass(frozen=True)
class PretrainedScorer:
    """Log-odds of the pool's scorer plus those of the users' own."""

    shared: Scorer  # of B users, all alike
    own: Scorer

    def score(self, features: F64) -> F64:
        """`[b, K, F]` to `[b, K]`; a sum of multiples of 2**-36, so exact."""
        return self.shared.score(features) + self.own.score(features)


@dataclass(frozen=True)
class Pretrained:
    """`reranker` beginning with the scorer in `file`; `learns`: users go on from there."""

    reranker: Reranker
    file: str
    learns: bool

    @property
    def window(self) -> int:
        """Window of the recipe."""
        return self.reranker.window

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """The pool's scorer for everyone.

        Raises UsageError for a file that is no model of this recipe and these features.
        """
        shared = _map(
            load_scorer(Path(self.file), self.reranker, features), lambda array: np.repeat(array, n_users, axis=0)
        )
        user_scorer = self.reranker.start(n_users, features) if self.learns else None
        return shared if user_scorer is None else PretrainedScorer(shared, user_scorer)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """Only users' own scorers learn, if any."""
        if not isinstance(scorer, PretrainedScorer):
            return scorer
        n, k, f = training.features.shape
        anyone = _map(scorer.shared, lambda array: array[:1])
        offset = anyone.score(training.features.reshape(1, n * k, f)).reshape(n, k)
        return PretrainedScorer(scorer.shared, self.reranker.fit(scorer.own, rows, replace(training, offset=offset)))


def pretrained(arm: Arm, folder: Path, simulate: Simulate) -> Arm:
    """The arm with the scorer of its pool, fitted now unless it lies in `folder`, and so the arms that it forks from.

    Raises UsageError for a model of another recipe or other features.
    """
    parts, fork = components(arm), arm.fork and replace(arm.fork, arm=pretrained(arm.fork.arm, folder, simulate))
    if parts.scope == "user":
        return replace(arm, fork=fork)
    names, file = parts.signals.names, folder / f"{arm.name}.json"
    if isinstance(parts.pool, str):
        file = Path(parts.pool)
    elif not _whole(file):
        training = ratings_of_pool(arm, parts.pool, simulate)
        scorer = _blank(parts.reranker, names)
        if len(training.row):
            scorer = parts.reranker.fit(scorer, np.zeros(1, np.int64), training)
        save_scorer(file, scorer, names, len(training.row))
    load_scorer(file, parts.reranker, names)  # whatever is wrong with it is said before anything starts
    shared = Pretrained(parts.reranker, str(file), parts.scope == "pool+user")
    return replace(with_components(arm, reranker=shared, scope="user"), fork=fork)


def models(arms: Sequence[Arm]) -> dict[str, str]:
    """Hashes of the files that arms take their scorers from.

    Raises UsageError for a file that is not there.
    """
    pools = {arm.name: components(arm) for arm in arms if isinstance(arm.assistant, Stackable)}
    files = {name: Path(p.pool) for name, p in pools.items() if p.scope != "user" and isinstance(p.pool, str)}
    for name, file in files.items():
        if not file.is_file():
            raise UsageError(
                f"arm {name!r}: pool={file} is no file; a run with scope=pool leaves pool/ARM.json, or give a number "
                "of users to fit on"
            )
    return {f"pool of {name}": hashlib.sha256(bytes_of(file)).hexdigest() for name, file in files.items()}


# ---------------------------------------------------------------------------------------------------- the pool


@dataclass(frozen=True)
class _RatingRecorder:
    """A reranker that fits nothing and records what it is given: users, and their rated turns."""

    reranker: Reranker
    recorded: list[tuple[I64, TrainingRows]] = field(default_factory=list)
    window: ClassVar[int] = 0

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """Scorer that the recipe starts with."""
        return self.reranker.start(n_users, features)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """The same scorer."""
        self.recorded.append((rows[training.row], training))
        return scorer


def ratings_of_pool(arm: Arm, users: int, simulate: Simulate) -> TrainingRows:
    """All rated turns of a pool simulated under `arm`, as those of one user; by user, then as they became known."""
    simulated = arm.fork.arm if arm.fork is not None and arm.book != "own" else arm  # a given book rates nothing
    recorder = _RatingRecorder(components(arm).reranker)
    parts: list[tuple[I32, TrainingRows]] = []
    for ids in simulate(_recording(simulated, recorder), users):
        parts += [(ids[rows], training) for rows, training in recorder.recorded]
        recorder.recorded.clear()
    if not parts:
        f = len(components(arm).signals.names)
        return TrainingRows(NO_ROWS, np.zeros((0, 1, f)), NO_ROWS, NO_ROWS, np.zeros(0), np.zeros(0, np.uint64))
    user = np.concatenate([user for user, _ in parts])
    k = max(training.features.shape[1] for _, training in parts)
    wide = [np.pad(r.features, ((0, 0), (0, k - r.features.shape[1]), (0, 0))) for _, r in parts]
    rest = (np.concatenate([getattr(r, name) for _, r in parts]) for name in ("candidates", "place", "label", "event"))
    whole = TrainingRows(np.zeros(len(user), np.int32), np.concatenate(wide), *rest)
    return whole.rows(np.argsort(user, kind="stable"))


def _recording(arm: Arm, recorder: _RatingRecorder) -> Arm:
    """The arm with `recorder` as its reranker, which is given each rating at once."""
    fork = arm.fork and replace(arm.fork, arm=_recording(arm.fork.arm, recorder))
    at_once = with_components(arm, reranker=recorder, scope="user", refit_every=1, refit_apart=1)
    return replace(at_once, fork=fork)


# --------------------------------------------------------------------------------------------------- the file


def save_scorer(file: Path, scorer: Scorer, features: Sequence[str], rated_turns: int) -> None:
    """Write the scorer of one user as json, whole or not at all."""
    model = {
        "scorer": type(scorer).__name__, "features": list(features), "rated_turns": rated_turns,
        "arrays": _map(scorer, lambda array: array.tolist(), dict),
    }  # fmt: skip
    file.parent.mkdir(mode=0o700, exist_ok=True)
    replace_whole(file, (json.dumps({**model, "digest": _digest(model)}) + "\n").encode())


def _digest(model: Mapping[str, Any]) -> str:
    known = {key: value for key, value in model.items() if key != "digest"}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _whole(file: Path) -> bool:
    """Is there a model, as it was written?"""
    try:
        model = json_file(file)
        return bool(model["digest"] == _digest(model))
    except (UsageError, *FAULTS):
        return False


def load_scorer(file: Path, reranker: Reranker, features: Sequence[str]) -> Scorer:
    """The scorer of one user that `save_scorer` wrote.

    Raises UsageError for what is no such file or was changed, and for a model of another recipe or of other features.
    """
    blank = _blank(reranker, features)
    try:
        model = json_file(file)
        kind, theirs, arrays = model["scorer"], model["features"], model["arrays"]
    except (UsageError, *FAULTS) as error:
        raise UsageError(f"{file} is no model of a pool ({error!r}); a run with scope=pool writes one") from error
    if kind != type(blank).__name__:
        raise UsageError(f"{file} holds a {kind}, and this arm's reranker makes a {type(blank).__name__}; give its own")
    if theirs != list(features):
        given = ", ".join(map(str, theirs)) if isinstance(theirs, list) else reprlib.repr(theirs)
        raise UsageError(
            f"{file} is a model of other features: {given}; this arm has {', '.join(features)}. "
            "Take the signals.features that it was fitted with, or fit it again"
        )
    try:
        scorer: Scorer = _filled(blank, arrays)
        with np.errstate(all="ignore"):
            tried = scorer.score(np.tile(_TRIED, (1, 1, len(features))))
        if not np.isfinite(tried).all():
            raise ValueError("it scores what is no number")
    except FAULTS as error:
        raise UsageError(f"{file} does not hold the numbers of a {kind} ({error!r}); fit it again") from error
    if model.get("digest") != _digest(model):
        raise UsageError(f"{file} is not as it was written; fit it again")
    return scorer


def _blank(reranker: Reranker, features: Sequence[str]) -> Scorer:
    blank = reranker.start(1, features)
    if blank is None:
        raise UsageError("scope=pool shares a scorer, and this reranker makes none; take scope=user")
    return blank


def _map(scorer: Any, change: Callable[[Any], Any], made: Callable[..., Any] | None = None) -> Any:
    """The scorer with each of its arrays changed; `made` makes something else of the fields."""
    if not is_dataclass(scorer):
        return change(scorer)
    make: Callable[..., Any] = made or type(scorer)
    return make(**{f.name: _map(getattr(scorer, f.name), change, made) for f in fields(scorer)})


def _filled(blank: Any, values: Any) -> Any:
    """The scorer `blank` with the arrays of a file, which have as many dimensions, the first of them 1."""
    if is_dataclass(blank):
        return replace(blank, **{f.name: _filled(getattr(blank, f.name), values[f.name]) for f in fields(blank)})  # type: ignore[type-var]
    array = np.array(values, blank.dtype)
    if array.ndim != blank.ndim or len(array) != 1 or not np.isfinite(array).all():
        raise ValueError(f"an array of shape {array.shape}")
    return array
