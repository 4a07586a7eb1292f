"""Small corpora in the forms in which such corpora are published; nothing of theirs is in them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.package import CONF
from skg_bench.simulator.logs.labelled import Labelled

INTENTS = {
    "card_lost": "my card is lost", "exchange_rate": "euros for dollars", "pin_blocked": "the pin is blocked",
    "top_up": "put money on my account", "transfer_late": "the transfer has not come", "limits": "how much may I spend",
}  # fmt: skip
Pairs = Sequence[tuple[str, str]]


def pairs(of_each: int = 40, split: str = "test") -> Pairs:
    """Messages and their intents."""
    return [(f"{words}, {split} case {i}", name) for name, words in INTENTS.items() for i in range(of_each)]


def banking77(folder: Path, rows: Pairs | None = None) -> Path:
    """A file as BANKING77's test.csv."""
    path = folder / "test.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "category"), *(pairs() if rows is None else rows)])
    return path


def hwu64(folder: Path) -> Path:
    """A folder as HWU64 is given out: of each split a line a message, and a line a label."""
    for split in ("train", "valid", "test"):
        (folder / split).mkdir(parents=True)
        texts, labels = zip(*pairs(split=split), strict=True)
        (folder / split / "seq.in").write_text("\n".join(texts) + "\n", "utf-8")
        (folder / split / "label").write_text("\n".join(labels) + "\n", "utf-8")
    return folder


def labelled(path: Path | str, **changes: Any) -> Labelled:
    """The corpus there, with some parameters of the yaml changed."""
    node = yaml.safe_load((CONF / "simulator" / "labelled.yaml").read_text("utf-8"))["corpus"]
    del node["_target_"]
    return Labelled(**{**node, "path": str(path), **changes})
