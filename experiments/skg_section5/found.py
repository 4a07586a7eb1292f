"""Draws of one corpus held against section 5 of the SKG paper, and the findings for `skg-bench claims`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.skg_section5 import prior
from experiments.skg_section5.draws import read
from experiments.skg_section5.latency import SKILLS, Hits
from experiments.skg_section5.readings import READINGS, Frame, Mass, derived, holds, known, mass
from skg_bench.analysis.comparison.assay import ClaimVerdict, Measured
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.study import kept_draws
from skg_bench.study.conditions import NOWHERE, condition
from skg_bench.study.masses import cut_between

_HIT_MS = 50.0  # the paper's
_WEEKS = {"3 months": 13, "6 months": 26}


@dataclass(frozen=True)
class Corpus:
    """The draws of one folder, and what was found in them."""

    name: str
    folder: Path
    manifest: Mapping[str, Any]
    draws: Frame
    found: Sequence[Mass]

    @property
    def kinds(self) -> Mapping[str, Frame]:
        """The draws in which a skill is of one kind, by kind."""
        return {kind: self.draws[self.draws[prior.KIND] == kind] for kind in prior.kinds().options}

    @property
    def parameters(self) -> list[str]:
        """Names of what was drawn, kinds of skill among them."""
        return [*(p.name for p in prior.parameters()), *prior.kinds().options]

    @property
    def evidence(self) -> Evidence:
        """How to make them again."""
        more = " ".join(self.manifest["overrides"])
        command = f"skg-bench experiment skg_section5/draws {more}".strip()
        users = int(self.manifest["users"]) * len(self.draws)
        return kept_draws.evidence(self.manifest, command, users, int(self.manifest["weeks"]))


def corpus(folder: Path) -> Corpus:
    """Figures of the draws in a folder; its corpus is named after the simulator that it overrides."""
    manifest, table = read(folder)
    draws = derived(table.to_pandas())
    chosen = [o.partition("=")[2] for o in manifest["overrides"] if o.startswith("simulator=")]
    return Corpus((chosen or ["built-in"])[0], folder, manifest, draws, [mass(reading, draws) for reading in READINGS])


def value(number: float, unit: str) -> str:
    """A figure in its unit."""
    return f"{100 * number:.3g} %" if unit == "share" else f"{number:.3g}"


def contradiction() -> list[tuple[str, str, str]]:
    """K23 held against itself: months, what 2 to 5 skills a week add up to, what 200 to 500 would need a week."""
    return [
        (name, f"{2 * weeks} to {5 * weeks} skills", f"{200 / weeks:.1f} to {500 / weeks:.1f} a week")
        for name, weeks in _WEEKS.items()
    ]


def findings(corpora: Sequence[Corpus], hits: Hits | None, embedder: str, command: str) -> list[Finding]:
    """Findings for `skg-bench claims`: readings by prior mass, the contradiction, and the latency if it was measured.

    `embedder`: the name of the model whose time is in the latency.
    """
    results = []
    for source in corpora:
        for m in source.found:
            claimed = f"{m.reading.claimed} ({source.name} corpus)"
            by_kind = [
                f"{kind} {100 * mass(m.reading, draws).share:.1f} %"
                for kind, draws in source.kinds.items()
                if known(m.reading, draws).any()
            ]
            low, middle, high = (value(x, m.reading.unit) for x in m.spread)
            sentence = (
                f"As simulated it holds in {m.held:,} of {m.draws:,} draws; the median draw has {middle}, nine of ten "
                f"lie between {low} and {high}. By what a skill is: {', '.join(by_kind)}."
            )
            least, most = m.limits
            if m.verdict == "not testable here":
                cut_at = 100 * cut_between(least, most)
                cut = f" But so many draws leave open whether that is {cut_at:.0f} % of the prior."
                used_up = " But whether it does depends on draws in which the corpus was used up."
                sentence += used_up if m.used_up else cut
            where = ""
            if m.verdict == "attainable":
                rows = source.draws[known(m.reading, source.draws)]
                limits = condition(rows, source.parameters, holds(m.reading, rows))
                where, sentence = (str(limits), sentence) if limits else ("", f"{sentence} {NOWHERE}")
            measured = Measured(100 * m.share, 100 * least, 100 * most, "% of the prior")
            results.append(Finding(m.reading.id, claimed, measured, m.verdict, sentence, source.evidence, where=where))
    (_, three, need_three), (_, six, need_six) = contradiction()
    results.append(
        Finding(
            "K23", "2 to 5 new skills a week, 200 to 500 after 3 to 6 months",
            f"{three} after 3 months, {six} after 6", "contradictory",
            f"200 to 500 skills need {need_three} for 3 months, or {need_six} for 6.", corpora[0].evidence,
        )
    )  # fmt: skip
    if hits is not None:
        results += latency_findings(hits, embedder, Evidence(command, corpora[0].evidence.commit, 1, 0, (0,)))
    return results


def latency_findings(hits: Hits, embedder: str, evidence: Evidence) -> list[Finding]:
    """Findings on how long a hit and a call take."""
    low, middle, high = np.quantile(hits.whole, (0.05, 0.5, 0.95)).tolist()
    verdict: ClaimVerdict = "reproduced" if low <= _HIT_MS <= high else "not reproduced"
    than = "as claimed" if verdict == "reproduced" else "less than claimed" if high < _HIT_MS else "more than claimed"
    return [
        Finding(
            "K22", f"a hit takes about {_HIT_MS:.0f} ms", Measured(middle, low, high, "ms"), verdict,
            f"It takes {than}, with {embedder} in place of the paper's jina-embeddings-v3. Embedding a new "
            f"message takes {np.median(hits.embedding):.1f} ms and routing over {SKILLS} skills "
            f"{np.median(hits.routing):.2f} ms of processor time; the interval holds nine of ten messages.", evidence,
        ),
        Finding(
            "K22", "a call of the language model takes 1 to 5 s", "declared, not measured", "not testable here",
            "No language model is called here; its time is drawn from the range that the paper gives.", evidence,
        ),
    ]  # fmt: skip
