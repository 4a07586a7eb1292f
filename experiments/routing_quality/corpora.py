"""Labelled corpora: messages with a skill or out of scope, in three splits, with vectors.

A file in CLINC150's format is a JSON object of splits (`train, val, test, oos_train, oos_val, oos_test`), each a list
of [message, intent] pairs; the intent `oos` is out of scope in any split.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from experiments.routing_quality.recipe import Messages
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32
from skg_bench.embedder.minilm import MiniLM
from skg_bench.embedder.packaged import PACKAGED
from skg_bench.embedder.precomputed import Precomputed, save_vectors
from skg_bench.simulator.answers.corpus import BUILT_IN, load_corpus

CACHE = Path("runs/vectors")
OUT = "oos"
_PARTS = 5  # of the skills, by number; one is out of scope at test, one at validation
_SPLITS = {"train": ("train", "oos_train"), "validation": ("val", "oos_val"), "test": ("test", "oos_test")}


@dataclass(frozen=True)
class Corpus:
    """A labelled corpus."""

    name: str
    skills: tuple[str, ...]  # names
    train: Messages
    validation: Messages
    test: Messages


def clinc150() -> Path:
    """The file of CLINC150 among the shared datasets; UsageError with what to do if it is not there."""
    folder = Path(os.environ.get("SKG_BENCH_SHARED", "../shared"))
    file = folder / "datasets" / "clinc150" / "data_full.json"
    if not file.is_file():
        raise UsageError(
            f"{file} is absent; get data_full.json from github clinc/oos-eval, then: export "
            "SKG_BENCH_SHARED=/path/to/shared"
        )
    return file


def read(file: Path, cache: Path = CACHE) -> Corpus:
    """A corpus in CLINC150's format, with MiniLM vectors, which are kept in `cache`.

    Raises UsageError for a file of another format, or one without a split.
    """
    try:
        raw = file.read_bytes()
        document = json.loads(raw)
        splits = {
            name: [(str(text), str(intent)) for part in parts for text, intent in document.get(part, [])]
            for name, parts in _SPLITS.items()
        }
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no corpus in CLINC150's format: {error}") from error
    if empty := [name for name, pairs in splits.items() if not pairs]:
        raise UsageError(f"{file} has no messages for {', '.join(empty)}; it needs {sorted(sum(_SPLITS.values(), ()))}")
    names = sorted({intent for pairs in splits.values() for _, intent in pairs} - {OUT})
    number = {name: i for i, name in enumerate(names)} | {OUT: -1}
    texts = [text for pairs in splits.values() for text, _ in pairs]
    digest = blake2b(raw, digest_size=8).hexdigest()
    vectors, begin, made = _vectors(texts, cache / digest), 0, {}
    for name, pairs in splits.items():
        skill = np.array([number[intent] for _, intent in pairs], np.int32)
        made[name] = Messages(vectors[begin : begin + len(pairs)], skill)
        begin += len(pairs)
    return Corpus(file.parent.name or file.stem, tuple(names), **made)


def without_labels(corpus: Corpus) -> Corpus:
    """No router is given an out-of-scope message to train on."""
    return replace(corpus, train=corpus.train.rows(corpus.train.skill >= 0))


def held_back(corpus: Corpus) -> Corpus:
    """Corpus whose out-of-scope messages are near: those of intents that no split before had a message of.

    A fifth of the intents is out of scope in test and absent from training and validation, another fifth is out of
    scope in validation and absent from training and test. The corpus' own out-of-scope messages stay in training only.
    """
    at_test, at_validation = 0, 1  # of the parts

    def relabelled(messages: Messages, outside: int, absent: int) -> Messages:
        kept = messages.rows((messages.skill >= 0) & (messages.skill % _PARTS != absent))
        labels: I32 = np.where(kept.skill % _PARTS == outside, -1, kept.skill).astype(np.int32)
        return Messages(kept.vectors, labels)

    known = (corpus.train.skill < 0) | (corpus.train.skill % _PARTS > max(at_test, at_validation))
    return Corpus(
        f"{corpus.name}, intents held back",
        tuple(name for i, name in enumerate(corpus.skills) if i % _PARTS not in (at_test, at_validation)),
        corpus.train.rows(known),
        relabelled(corpus.validation, at_validation, at_test),
        relabelled(corpus.test, at_test, at_validation),
    )


def _vectors(texts: Sequence[str], path: Path) -> I16:
    if not path.with_name(path.name + ".json").is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_vectors(path, texts, MiniLM().embed(texts), PACKAGED)
    return Precomputed(str(path)).embed(texts)


def builtin() -> Corpus:
    """120 intents of the built-in corpus, one-off messages out of scope.

    Splits go by wording, so that a wording with another slot value is never in two of them: of each intent's wordings
    half train, a quarter each validates and tests; of the one-offs a fifth each trains and validates.
    """
    corpus = load_corpus(BUILT_IN[0])
    vectors = Precomputed(None).embed(corpus.messages)
    text, skill, part = [], [], []
    for kind, ids in enumerate(corpus.wordings):
        for nth, message in enumerate(ids[: corpus.n_wordings[kind]].tolist()):
            text.append(message)
            skill.append(int(corpus.intent[kind]))
            part.append(("train", "validation", "train", "test")[nth % 4])
    for nth, message in enumerate(corpus.one_offs.tolist()):
        text.append(message)
        skill.append(-1)
        part.append(("train", "validation", "test", "test", "test")[nth % 5])
    rows, skills, parts = np.array(text), np.array(skill, np.int32), np.array(part)
    made = {name: Messages(vectors[rows[parts == name]], skills[parts == name]) for name in _SPLITS}
    return Corpus("built-in", corpus.intents, **made)
