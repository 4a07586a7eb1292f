"""Figures of public corpora: wordings (CLINC150), changed values (SGD), and raters beside one another (USS)."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from skg_bench.core.foreign import json_of
from skg_bench.core.grid import F64, I16, I32
from skg_bench.embedder.minilm import MiniLM
from skg_bench.simulator.datasets import Dataset

Groups = Sequence[Sequence[str]]  # messages by intent
_INTENTS, _WORDINGS = 120, 14  # of the built-in corpus
_OK, _PARTIAL, _MISS = range(3)


def mean_words(groups: Groups) -> float:
    """Words of a message, mean."""
    return float(np.mean([len(re.findall(r"[\w']+", message)) for group in groups for message in group]))


def word_overlap(groups: Groups) -> float:
    """Words in common of two messages of a group, of all words of both (Jaccard), mean over pairs."""
    shares = []
    for group in groups:
        words = [frozenset(re.findall(r"[\w']+", message.lower())) for message in group]
        shares += [len(a & b) / len(a | b) for i, a in enumerate(words) for b in words[:i]]
    return float(np.mean(shares))


def near_misses(vectors: I16, label: I32) -> float:
    """Share of messages whose nearest other one, by cosine, has another label."""
    unit: F64 = vectors / np.maximum(np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True), 1e-9)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2.0)
    return float((label[similarity.argmax(axis=1)] != label).mean())


def of_wordings(groups: Groups, embed: Callable[[Sequence[str]], I16]) -> dict[str, float]:
    """The three moments of wordings."""
    label = np.repeat(np.arange(len(groups), dtype=np.int32), [len(group) for group in groups])
    vectors = embed([message for group in groups for message in group])
    return {
        "words": mean_words(groups),
        "overlap": word_overlap(groups),
        "near_miss": near_misses(vectors, label),
    }


def of_clinc150(dataset: Dataset) -> dict[str, float]:
    """Wordings of the test split, as many intents and messages of each as the built-in corpus has."""
    groups = defaultdict[str, list[str]](list)
    for message, intent in json_of(dataset.read("data_full.json"), "data_full.json")["test"]:
        groups[intent].append(message)
    return of_wordings([group[:_WORDINGS] for group in [*groups.values()][:_INTENTS]], MiniLM().embed)


def of_sgd(dataset: Dataset) -> dict[str, float]:
    """Share of the users' turns in which a slot that had a value gets another."""
    turns = [
        change
        for file in dataset.files
        if "dialogues" in file
        for dialogue in json_of(dataset.read(file), file)
        for change in _changes(dialogue["turns"])
    ]
    return {"changed": sum(turns) / len(turns)}


def _changes(turns: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
    """Changes of a value in the turns of the user. SGD lists all spellings of one."""
    state: dict[tuple[str, str], frozenset[str]] = {}
    for turn in turns:
        if turn["speaker"] != "USER":
            continue
        new = {
            (frame["service"], slot): frozenset(spellings)
            for frame in turn["frames"]
            for slot, spellings in frame["state"]["slot_values"].items()
        }
        yield any(state[slot].isdisjoint(spellings) for slot, spellings in new.items() if slot in state)
        state |= new


def of_uss(dataset: Dataset) -> dict[str, float]:
    """Share of ratings that are the contrary of the other raters' median, where that is ok, and where it is a miss."""
    pairs = Counter[tuple[int, int]]()
    for line in dataset.read("SGD.txt").decode("utf-8").splitlines():
        speaker, text, *_, scores = line.split("\t") if line.count("\t") == 3 else ("", "", "")
        if speaker == "USER" and text != "OVERALL" and scores:
            given = [int(score) for score in scores.split(",")]
            for i, score in enumerate(given):
                pairs[_class(round(median(given[:i] + given[i + 1 :]))), _class(score)] += 1
    shares = {}
    for name, others, contrary in (("miss_if_right", _OK, _MISS), ("ok_if_wrong", _MISS, _OK)):
        shares[name] = pairs[others, contrary] / sum(pairs[others, rating] for rating in (_OK, _PARTIAL, _MISS))
    return shares


def _class(score: int) -> int:
    """Class of a score from 1 to 5, as `conf/simulator/uss.yaml` has it."""
    return _OK if score >= 4 else _PARTIAL if score == 3 else _MISS


COMPUTED = {"clinc150": of_clinc150, "sgd": of_sgd, "uss": of_uss}  # by dataset
