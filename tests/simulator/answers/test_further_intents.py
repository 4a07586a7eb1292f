"""The 180 further intents of ours: what their README says of them is so."""

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
import yaml

from experiments.routing_quality.near_duplicates import alike_pairs, sampled
from skg_bench.core.package import DATA
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.simulator.answers.corpus import BUILT_IN, load_corpus

README = (DATA / "more" / "README.md").read_text("utf-8")
CONTRASTS = {frozenset(pair) for pair in re.findall(r"^\| `(\w+)` \| `(\w+)` \|", README, re.MULTILINE)}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Rows of all files of `data/more/intents`."""
    files = sorted((DATA / "more" / "intents").glob("*.yaml"))
    return [row for file in files for row in yaml.safe_load(file.read_text("utf-8"))["intents"]]


def test_weights_are_shares_of_topics_over_shares_of_intents(rows: list[dict[str, Any]]) -> None:
    table = re.findall(r"^\| [\w-]+ \| ([\d.]+) \| (\d+) \| ([\d.]+) \|$", README, re.MULTILINE)
    shares, counts, weights = (np.array(column, float) for column in zip(*table, strict=True))
    assert np.allclose(weights, shares / shares.sum() * counts.sum() / counts, atol=0.005)
    weighed = Counter(row["asked"] for row in rows if "asked" in row)
    assert weighed == dict(zip(weights, counts.astype(int), strict=True))


def test_only_the_named_contrasts_are_near_duplicates_of_other_intents_of_ours() -> None:
    parts = [load_corpus(folder) for folder in BUILT_IN]
    names = [name for part in parts for name in part.intents]
    assert {name for pair in CONTRASTS for name in pair} <= {*names}
    groups = [group for part in parts for group in sampled(part)]
    label = np.repeat(np.arange(len(groups), dtype=np.int32), [len(group) for group in groups])
    near = alike_pairs(Precomputed(None).embed([message for group in groups for message in group]), label)
    pairs = {frozenset((names[pair.one], names[pair.other])) for pair in near}
    further = {pair for pair in pairs if not pair <= {*parts[0].intents}}
    assert len(further) >= 10
    assert further <= CONTRASTS


def test_each_fifth_intent_or_more_has_a_contrast_and_wordings_differ_in_length(rows: list[dict[str, Any]]) -> None:
    corpus = load_corpus(BUILT_IN[1])
    assert len(CONTRASTS) * 2 >= len(corpus.intents) / 5
    for row in rows:
        words = [len(wording.split()) for wording in row["wordings"]]
        assert min(words) <= 4, row["intent"]
        assert max(words) >= 7, row["intent"]
