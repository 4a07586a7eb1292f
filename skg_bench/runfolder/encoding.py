"""Columns of words, as codes into a dictionary."""

import numpy as np
import pyarrow as pa


def encoded(codes: np.ndarray, words: pa.Array) -> pa.DictionaryArray:
    """Codes to words; negative codes are null.

    The dictionary has each word once. Where a word stands twice, Arrow's Parquet writer reserves room for both, writes
    one, and fills the page with whatever the process had in memory there.
    """
    none, distinct = codes < 0, words.dictionary_encode()  # costs nothing for words that are encoded already
    codes, words = codes.astype(np.int32), distinct.dictionary
    codes[~none] = distinct.indices.to_numpy()[codes[~none]]
    if len(codes) < len(words):  # a small shard holds only the words that it uses, or they would be most of its bytes
        used, index = np.unique(codes[~none], return_inverse=True)
        codes[~none], words = index, words.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=none) if none.any() else pa.array(codes), words)
