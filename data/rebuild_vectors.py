"""Embed our corpora, the hard negatives and the Guardian's triggers again and write their .npy and .json; needs the
extra `embed`. `python data/rebuild_vectors.py guardian/minilm` does it for those named: the others' bytes stay, as
another kind of CPU rounds a few coordinates otherwise.
"""

import sys
from itertools import chain
from pathlib import Path

import yaml

from skg_bench.embedder.minilm import MiniLM
from skg_bench.embedder.packaged import PACKAGED
from skg_bench.embedder.precomputed import save_vectors
from skg_bench.simulator.answers.corpus import BUILT_IN, load_corpus
from skg_bench.skillbook.library.strategies import strategies

if __name__ == "__main__":
    here, model = Path(__file__).parent, MiniLM()
    alike = yaml.safe_load((here / "hard_negatives.yaml").read_text("utf-8"))
    first, further = BUILT_IN
    texts = {
        "corpus/minilm": load_corpus(first).messages,
        "more/minilm": load_corpus(further).messages,
        "hard_negatives": list(chain.from_iterable(chain.from_iterable(alike.values()))),
        "guardian/minilm": strategies().triggers.text,
    }
    for name in sys.argv[1:] or texts:
        save_vectors(here / name, texts[name], model.embed(texts[name]), PACKAGED)
