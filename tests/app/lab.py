"""A small configuration of its own, with components in a temporary package that declares itself by an entry point."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from skg_bench.app import packages
from skg_bench.app.run_identity import code_digest

PARTS = '''
    """Parts of a laboratory."""
    from collections.abc import Sequence
    from dataclasses import dataclass
    from typing import Literal
    from skg_bench.core.errors import UsageError

    @dataclass(frozen=True)
    class Part:
        """A part of the laboratory.

        It has a rate.
        """
        rate: float
        kind: Literal["round", "square"] = "round"
        every: int | None = None
        names: Sequence[str] = ()

        def __post_init__(self) -> None:
            if self.rate < 0:
                raise UsageError(f"rate={self.rate} must not be negative")

    @dataclass(frozen=True)
    class Wrapped:
        """A part around a part."""
        curator: object
        at_turn: int
'''

ROOT = """
    defaults:
      - _self_
      - simulator: plain
      - embedder: plain
      - assistant: pipeline
      - router: plain
      - reranker: plain
      - policy: threshold
      - curator: live
      - llm: plain
      - signals: plain
      - signs: plain
      - jobs: plain
      - tracker: plain
      - launcher: plain
      - experiment: first
      - profile: small
    seed: 0
    salt: 0
    comparison: {errs: 0.15, usd: 0.004}
    users: 1
    weeks: 1
    cohort: 256
    workers: 1
    part: null
    out: null
    serving: stored
    hit_latency_ms: 50
    refit_every: 50
    refit_on_capture: true
    refit_apart: 1
    scope: user
    pool: 100
    decline_is_miss: false
    seeds: null
    named_by: type
    fork: null
    book: own
    freeze: null
    freeze_at: null
    mood: own
    utility: {wrong: 1.0, usd: 10.0, second: 0.0, offer: 0.0}
    arms: {}
    reference: never
    learner: null
    question: ""
    contrasts: []
    controls_of: []
"""


def write(path: Path, text: str) -> None:
    """Write a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).lstrip(), "utf-8")


def part(rate: float, extra: str = "") -> str:
    """Yaml of a part."""
    return f"_target_: lab_parts.things.Part\nrate: {rate}\nkind: round\n{extra}"


def declare(folder: Path, name: str, value: str | None = None) -> None:
    """Metadata as an installer leaves it: a distribution with one entry point."""
    info = folder / f"{name}-1.0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(info / "entry_points.txt", f"[{packages.ENTRY_POINTS}]\n{name} = {value or name}\n")


def build(tmp_path: Path) -> Path:
    """Write package and configuration; returns the configuration's folder."""
    conf = tmp_path / "conf"
    write(conf / "config.yaml", ROOT)
    for seam in (
        "simulator",
        "embedder",
        "router",
        "reranker",
        "llm",
        "signals",
        "signs",
        "jobs",
        "tracker",
        "launcher",
    ):
        write(conf / seam / "plain.yaml", part(0.5))
    write(conf / "assistant" / "pipeline.yaml", "_target_: skg_bench.assistant.pipeline.Pipeline\n")
    write(conf / "policy" / "threshold.yaml", part(0.5, "threshold: 0.5\n").replace("threshold: 0.5\n", "every: 5\n"))
    write(conf / "policy" / "never.yaml", "_target_: lab_parts.things.Part\nrate: 0.0\n")
    write(conf / "curator" / "live.yaml", part(0.1))
    wrapped = "defaults: [live@curator, _self_]\n_target_: lab_parts.things.Wrapped\nat_turn: 100\n"
    write(conf / "curator" / "frozen.yaml", wrapped)
    write(
        conf / "experiment" / "first.yaml",
        """
        # @package _global_
        experiment: first
        question: Does it?
        arms:
          live: []
          frozen: [curator=frozen, curator.at_turn=7]
          never: [policy=never]
        """,
    )
    write(conf / "profile" / "small.yaml", "# @package _global_\nprofile: small\nusers: 3\nweeks: 2\n")
    write(conf / "profile" / "large.yaml", "# @package _global_\nprofile: large\nusers: 30\nweeks: 20\n")
    site = tmp_path / "site"
    write(site / "lab_parts" / "__init__.py", "")
    write(site / "lab_parts" / "things.py", PARTS)
    write(site / "lab_parts" / "conf" / "reranker" / "lately.yaml", part(0.25))
    declare(site, "lab_parts")
    return conf


def forget() -> None:
    """Forget what was found on the search path."""
    packages.packages.cache_clear()
    packages.groups.cache_clear()
    code_digest.cache_clear()


@contextmanager
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The laboratory in place of the project's own configuration."""
    conf = build(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(packages, "CONF", conf)
    forget()
    yield conf
    for name in [name for name in sys.modules if name.split(".")[0] == "lab_parts"]:
        del sys.modules[name]
    forget()
