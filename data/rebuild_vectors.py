"""Embed the built-in corpus again and write data/corpus/minilm.{npy,json}; needs the extra `embed`, takes a minute."""

from pathlib import Path

from skg_bench.embedder.precomputed import save
from skg_bench.embedder.sentence_transformer import PACKAGED, SentenceTransformer
from skg_bench.simulator.corpus import load

if __name__ == "__main__":
    messages = load().messages
    vectors = SentenceTransformer(PACKAGED, batch=128).embed(messages)
    save(Path(__file__).parent / "corpus" / "minilm", messages, vectors, PACKAGED)
