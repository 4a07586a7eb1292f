"""Readers of other people's files, each with files that it reads."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import skg_bench
from skg_bench.analysis import summary
from skg_bench.analysis.comparison.findings import findings_by_id
from skg_bench.analysis.counts.tally import COUNTS
from skg_bench.analysis.gate import baseline
from skg_bench.analysis.gate.against import Reference, hold
from skg_bench.analysis.gate.rules import RULES
from skg_bench.app.building import build
from skg_bench.app.counterexample.commands import replay
from skg_bench.app.skillbook import files as skillbooks
from skg_bench.app.skillbook.batch_file import apply_file
from skg_bench.app.skillbook.files import Named
from skg_bench.app.skillbook.rebuilt import verify
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking import frames, recording
from skg_bench.assistant.pipeline.pretraining import load_scorer, save_scorer
from skg_bench.core.foreign import json_of, text_of
from skg_bench.core.package import CONF, DATA
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers import corpus
from skg_bench.simulator.logs import clinc150
from skg_bench.skillbook import agentropy
from skg_bench.skillbook.ace.book import ERAS, dumps
from skg_bench.skillbook.conversion import between, to_ace
from skg_bench.skillbook.library import strategies
from skg_bench.skillbook.proposals.parsing import Batches, steps_of
from tests.analysis.gate.panels import worse
from tests.app.conftest import TINY
from tests.foreign.mutations import Files
from tests.simulator.logs.logs import ALL, SMALL, readers, recorded
from tests.simulator.logs.test_clinc150 import SAID, TABLE
from tests.simulator.logs.test_recorded_dialogues import DIALOGUE, USS
from tests.skillbook.proposals.proposing import BOOK, LIMITS
from tests.skillbook.test_agentropy import MONDAY, index

GOLDEN = Path(__file__).parents[1] / "golden"
CASE = Path(__file__).parents[1] / "regressions" / "low_threshold.json"
HEAD = ["user", "time", "message", "intent", "answer", "satisfaction"]
FEATURES = ("a", "b", "c")


@dataclass(frozen=True)
class Reader:
    """What reads the files of a folder, and such files."""

    files: Callable[[], Files]
    read: Callable[[Path], object]
    tries: int = 15


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def lines(rows: Any) -> bytes:
    return b"".join(text(row) + b"\n" for row in rows)


# ------------------------------------------------------------------------------------------------------- logs


def replayed(name: str, option: str = "recorded", **changes: Any) -> Callable[[Path], object]:
    """Read a log, and all that a run asks of it before its first turn."""

    def read(folder: Path) -> object:
        simulator = recorded(folder / name if name else folder, option, **changes)
        record = simulator.record
        state = readers(simulator)
        return record, simulator.names, simulator.events(state, 0), "".join(simulator.show(simulator.messages)).encode()

    return read


def separated(sign: str) -> Callable[[], Files]:
    rows = [HEAD, *([str(row.get(column, "")).replace(",", ";") for column in HEAD] for row in SMALL)]
    name = "log.csv" if sign == "," else "log.tsv"
    return lambda: {name: "".join(sign.join(row) + "\n" for row in rows).encode()}


CHOICES: list[dict[str, Any]] = [
    {"user": f"u{i // 3}", "action": i % 2, "propensity": 0.5, "reward": i % 4 // 2, "p": 0.25 + 0.5 * (i % 2),
     "candidates": [0, 1], "shares": [0.25, 0.75], "predicted": [0.1 * (i % 3), 0.5]}
    for i in range(12)
]  # fmt: skip


def decisions() -> bytes:
    names = ("user", "action", "propensity", "reward", "p")
    return "".join(
        ",".join(str(row[name]) for name in names) + "\n" for row in [{name: name for name in names}, *CHOICES]
    ).encode()


def asked(name: str, policies: Mapping[str, str]) -> Callable[[Path], object]:
    """Ask a log about policies."""
    return lambda folder: skg_bench.estimate(folder / name, policies)


def chats() -> list[dict[str, Any]]:
    said = [
        {"role": "user", "content": "tea?", "timestamp": "2024-03-04T10:00:00"},
        {"role": "assistant", "content": "Four minutes.", "timestamp": "2024-03-04T10:00:05"},
        {"role": "user", "content": "thanks"},
    ]
    return [{"user": f"u{i}", "time": f"2024-03-0{i + 1}T10:00:00", "message": said, "id": f"c{i}"} for i in range(3)]


def parquet(rows: list[dict[str, Any]]) -> Callable[[], Files]:
    def written() -> Files:
        file = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), file, compression="zstd", write_page_checksum=True)
        return {"log.parquet": file.getvalue()}

    return written


# ------------------------------------------------------------------------------------------------- skillbooks


def an_agentropy() -> Files:
    with TemporaryDirectory() as folder:
        agentropy.write_agentropy(Path(folder), index(), MONDAY)
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def converted(folder: Path) -> object:
    """A skillbook in all formats of ACE."""
    book = Named(folder).read().book
    return [dumps(to_ace(book, era, skillbooks.MONDAY, 0).book).encode() for era in ERAS]


def a_book(folder: Path) -> object:
    document = skillbooks.read_ace_book(folder / "book.json")
    own = Named(folder / "book.json").read().book
    return own.hash, [dumps(between(document, era).book).encode() for era in ERAS]


def applied(folder: Path) -> object:
    modes = ("strict", "compat-v2")
    for mode in modes:
        out = folder / f"{mode}.json"
        try:
            apply_file(folder / "book.json", folder / "batch.json", mode, out, 20_000)
        finally:
            out.unlink(missing_ok=True)
    return modes


BATCH = {
    "reasoning": "because",
    "operations": [
        {"type": "ADD", "section": "context", "keywords": ["logging"], "issue": "Shapes.", "insight": "Log them."},
        {"type": "TAG", "section": "context", "skill_id": "context-00001", "metadata": {"delta": 1}},
        {"type": "REMOVE", "section": "context", "skill_id": "context-00002"},
    ],
}  # fmt: skip


def proposed(folder: Path) -> object:
    batch = json_of(text_of(folder / "batch.json"), folder)
    ways: tuple[Batches, ...] = ("v1", "v2", "compat-v1", "compat-v09", "compat-v2")
    return [repr(steps_of(batch, BOOK, LIMITS, way)) for way in ways]


SKILL = b"""---
name: tea-brewing
description: How long tea steeps.
metadata:
  section: context
  keywords: tea time
---

Four minutes.
"""


# ---------------------------------------------------------------------------------------------------- corpora


def a_corpus() -> Files:
    tea = {
        "intent": "brew_tea", "kind": "stable", "hours": {"7-9": 4}, "weekdays": "any", "follows": [],
        "answer": "Four minutes.", "wordings": ["how long does tea steep", "tea time"],
    }  # fmt: skip
    rain = {
        "intent": "weather", "kind": "stale", "ttl_hours": 3, "hours": {}, "weekdays": "workdays",
        "follows": ["brew_tea"], "slot": {"city": ["Paris", "Osaka"]}, "answer": "Sun in {city}.",
        "wordings": ["rain in {city}?", "{City} {city}"],
    }  # fmt: skip
    return {
        "intents/a.yaml": yaml.safe_dump({"intents": [tea]}).encode(),
        "intents/b.yaml": text({"intents": [rain]}),  # JSON is yaml, too: its values can be replaced
        "one_offs.txt": b"a penny\ntwo pennies\n",
    }


def clinc(folder: Path) -> object:
    return clinc150.Clinc150(str(folder / "said.json"), str(folder / "table.yaml"), "train", 2).load()


# ------------------------------------------------------------------------------------------------- all others


def a_baseline() -> Files:
    with TemporaryDirectory() as folder:
        return {"baseline.json": _baseline(Path(folder))}


def _baseline(folder: Path) -> bytes:
    panel, anchor = worse([2], turns=200, users=5), worse([3], turns=200, users=5)
    return baseline.baseline_text(baseline.Baseline(panel, anchor, RULES, 2.0)).encode()


def gated(folder: Path) -> object:
    """Read a baseline, and hold a run against it."""
    file = folder / "baseline.json"
    read, new = baseline.read_baseline(file), worse([2], turns=200, users=5)
    new = replace(new, counts=dict.fromkeys(COUNTS, np.zeros(5)) | dict(new.counts))  # as a run has them all
    return read.drifts, hold(new, [Reference("baseline", read.panel, read.rules, str(file))])


@cache
def a_guardian() -> Files:
    texts = {file.name: file.read_text("utf-8") for file in (DATA / "guardian").glob("*.toml")}
    few = texts["triggers.toml"].replace("texts_per_cell = 7", "texts_per_cell = 1")
    return {name: content.encode() for name, content in (texts | {"triggers.toml": few}).items()}


def a_recording() -> Files:
    return {"1-a.jsonl.zst": lines(_asks())}


def _asks() -> list[dict[str, Any]]:
    rest = {
        "version": 1, "key": sha256(b"1").hexdigest(), "role": "r", "system": "s", "user": "u", "model": "m",
        "temperature": 0.0, "top_p": None, "limit": 100, "draw": None, "schema": None, "answer": "yes", "end": "ok",
        "reason": "", "tokens_in": 3, "tokens_cached": 0, "tokens_out": 4, "cost_usd": 0.1, "latency_ms": 3.5,
        "served": "",
    }  # fmt: skip
    return [rest, rest | {"key": sha256(b"2").hexdigest()}]


def played_back(folder: Path) -> object:
    """Lines get the digest that belongs to them, so that more than the digest is tried; then they are packed."""
    file = folder / "1-a.jsonl.zst"
    if file.is_file():
        told = [line for line in file.read_bytes().split(b"\n") if line]
        rests = [line[1:] for line in told]
        whole = [b'{"digest":"%s",' % sha256(rest).hexdigest().encode() + rest + b"\n" for rest in rests]
        file.write_bytes(frames.frame(b"".join(whole)))
    kept = recording.Recording(folder)
    kept.refresh()
    return len(kept), list(kept.asks())


def a_pool() -> Files:
    recipe = _recipe()
    with TemporaryDirectory() as folder:
        save_scorer(Path(folder) / "arm.json", recipe.start(1, FEATURES), FEATURES, 7)
        return {"arm.json": (Path(folder) / "arm.json").read_bytes()}


def _recipe() -> Any:
    return build("reranker", yaml.safe_load((CONF / "reranker" / "mlp.yaml").read_text("utf-8")), COMMAND_LINE)


def scored(folder: Path) -> object:
    return load_scorer(folder / "arm.json", _recipe(), FEATURES).score(np.full((1, 2, len(FEATURES)), 0.25))


def a_finding() -> Files:
    row = {
        "id": "K01", "claimed": "cheaper", "measured": {"value": 0.5, "low": None, "high": 1.0, "unit": "share"},
        "verdict": "reproduced", "words": "It is so.", "assay": None, "by_seed": [0.5], "own": None, "where": "",
        "command": "make demo", "commit": "abc", "users": 100, "weeks": 26, "seeds": [0, 1],
    }  # fmt: skip
    made = {"sources": [], "analysis": "a", "decisions": "b", "reduced": "", "surroundings": "c"}
    return {"experiment.json": text({"made": made, "findings": [row]})}


def found(folder: Path) -> object:
    return [str(finding.measured) for results in findings_by_id(folder).values() for _, finding in results]


def replayed_case(folder: Path) -> object:
    return replay([folder / "case.json"])


@cache
def a_run() -> Files:
    with TemporaryDirectory() as folder:
        run = skg_bench.run([*TINY, "users=2", f"out={folder}/run"])
        names = ("manifest.json", "summary.json")
        paths = [*(run.path / name for name in names), *run.path.glob("turns/*"), *run.path.glob("updates/skg*")]
        return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in paths}


def reread(folder: Path) -> object:
    """Everything that is read of a run: its manifest and figures, the logs, and a skillbook that is rebuilt."""
    run = Run(folder)
    for arm in run.arms:
        run.turns(arm).to_pandas()
    verify(folder, ["skg"], 2)
    return run.config, run.to_pandas(), run._repr_html_(), summary.read_summary(run)


READERS: Mapping[str, Reader] = {
    "csv": Reader(separated(","), replayed("log.csv", columns=ALL)),
    "tsv": Reader(separated("\t"), replayed("log.tsv", columns=ALL)),
    "json lines": Reader(lambda: {"log.jsonl": lines(SMALL)}, replayed("log.jsonl", columns=ALL), 40),
    "chats": Reader(lambda: {"log.jsonl": lines(chats())}, replayed("log.jsonl", columns={"id": "id"}), 25),
    "decisions": Reader(lambda: {"log.csv": decisions()}, asked("log.csv", {"a": "p", "b": "1/2"})),
    "decisions in parquet": Reader(parquet(CHOICES), asked("log.parquet", {"a": "p", "c": "shares"}), 25),
    "parquet": Reader(parquet(SMALL), replayed("log.parquet", columns=ALL), 25),
    "chats in parquet": Reader(parquet(chats()), replayed("log.parquet", columns={"id": "id"})),
    "sgd": Reader(lambda: {"dialogues_001.json": text([DIALOGUE] * 3)}, replayed("", "sgd"), 25),
    "uss": Reader(lambda: {"uss.txt": USS.encode()}, replayed("uss.txt", "uss", dialogues_per_user=1)),
    "agentropy log": Reader(an_agentropy, replayed("", "agentropy")),
    "agentropy skillbook": Reader(an_agentropy, converted, 25),
    "ace v2": Reader(lambda: {"book.json": (GOLDEN / "pro.json").read_bytes()}, a_book, 25),
    "ace v1": Reader(lambda: {"book.json": (GOLDEN / "rookie.json").read_bytes()}, a_book),
    "batch": Reader(lambda: {"book.json": (GOLDEN / "pro.json").read_bytes(), "batch.json": text(BATCH)}, applied),
    "proposals": Reader(lambda: {"batch.json": text(BATCH)}, proposed),
    "agent skills": Reader(lambda: {"tea-brewing/SKILL.md": SKILL}, converted),
    "corpus": Reader(a_corpus, lambda folder: corpus._load.__wrapped__((folder,), ()), 25),
    "clinc150": Reader(lambda: {"said.json": text(SAID), "table.yaml": text(TABLE)}, clinc),
    "baseline": Reader(a_baseline, gated, 25),
    "strategies": Reader(a_guardian, lambda folder: strategies._strategies.__wrapped__(folder, ())),
    "recording": Reader(a_recording, played_back),
    "pool": Reader(a_pool, scored),
    "findings": Reader(a_finding, found),
    "run": Reader(a_run, reread, 10),
    "case": Reader(lambda: {"case.json": CASE.read_bytes()}, replayed_case, 10),
}
