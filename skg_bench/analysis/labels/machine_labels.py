"""Labels by machines, which may be wrong: of a sheet that a program filled, or by comparing texts."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from skg_bench.analysis.labels.hit_pairs import HitPairs
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.analysis.labels.rater_labels import check_texts, merged, read_sheet
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64

EXACT = "exact"  # name of the comparison of texts
_SIGNS = re.compile(r"[\W_]+")


def machine_labels(judge: str, pairs: HitPairs) -> dict[int, int]:
    """Label of pairs by a judge: `exact`, or a file that holds one label a pair.

    Raises UsageError for a file that is no such sheet, holds labels of several raters, or none of these pairs.
    """
    if judge == EXACT:
        return exact_labels(pairs)
    given = read_sheet(Path(judge))
    labels = merged(given)
    raters = {rater for by_rater in labels.values() for rater in by_rater}
    if len(raters) > 1:
        raise UsageError(f"--judge {judge}: it holds labels of {', '.join(sorted(raters))}; give a file of one of them")
    if not np.isin(np.array(sorted(labels), np.uint64), pairs.pairs).any():
        raise UsageError(f"--judge {judge}: none of its {len(labels):,} pairs of message and answer occurs in the run")
    check_texts(given, pairs)
    return {pair: next(iter(by_rater.values())) for pair, by_rater in labels.items()}


def exact_labels(pairs: HitPairs) -> dict[int, int]:
    """Labels by text: right where a stored answer and the log's own are the same words, whatever their case and
    punctuation; else wrong. The log's own answers are right.
    """
    labels = dict[int, int]()
    for hits in pairs.arms:
        at = pa.array(hits.turn)
        texts = [column.take(at).cast(pa.string()) for column in (pairs.stored[hits.arm], pairs.table["logged_answer"])]
        columns = pa.chunked_array([chunk for column in texts for chunk in column.chunks], pa.string())
        words = _words(columns)
        stored, logged = words[: len(hits.turn)], words[len(hits.turn) :]
        given = np.where(stored == logged, PairLabel.RIGHT, PairLabel.WRONG)
        labels.update(zip(hits.pair.tolist(), given.tolist(), strict=True))
    for hits in pairs.arms:
        labels.update(dict.fromkeys(hits.logged.tolist(), int(PairLabel.RIGHT)))
    return labels


def _words(texts: pa.ChunkedArray) -> I64:
    """A number for each text; the same for the same words."""
    encoded = texts.combine_chunks().dictionary_encode()
    plain = [_SIGNS.sub(" ", text.casefold()).strip() for text in encoded.dictionary.to_pylist()]
    number = {words: i for i, words in enumerate(dict.fromkeys(plain))}
    codes: I64 = np.array([number[words] for words in plain], np.int64)[encoded.indices.to_numpy()]
    return codes
