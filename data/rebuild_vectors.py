"""Embed the built-in corpus and the hard negatives again and write their .npy and .json; needs the extra `embed`."""

from itertools import chain
from pathlib import Path

import yaml

from skg_bench.embedder.minilm import MiniLM
from skg_bench.embedder.packaged import PACKAGED
from skg_bench.embedder.precomputed import save
from skg_bench.simulator.corpus import load

if __name__ == "__main__":
    here, model = Path(__file__).parent, MiniLM()
    alike = yaml.safe_load((here / "hard_negatives.yaml").read_text("utf-8"))
    texts = {
        "corpus/minilm": load().messages,
        "hard_negatives": list(chain.from_iterable(chain.from_iterable(alike.values()))),
    }
    for name, messages in texts.items():
        save(here / name, messages, model.embed(messages), PACKAGED)
