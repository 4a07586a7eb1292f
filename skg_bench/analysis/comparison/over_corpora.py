"""Findings on several corpora as one: a verdict that holds on one corpus and not on another depends on the corpus."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skg_bench.analysis.comparison.assay import OPEN, ClaimVerdict
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.analysis.summary.saturation import corpus
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.manifest import BESIDE
from skg_bench.runfolder.run import flat

DEPENDS: ClaimVerdict = "depends on the corpus"
_OF_CORPUS = ("embedder", "seed", "salt")  # of the configuration: another corpus has vectors of its own
_DATA = ("simulator", "embedder", "salt")  # of the digests, the same


def over_corpora(by_corpus: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """A finding for each claim, that of the first corpus on which it was tested, with what the others say of it.

    `by_corpus`: findings by the corpus' name. A verdict reads "depends on the corpus" where two corpora have a verdict
    and not the same. Where another corpus has none, its figure is told: it may lack users, be used up, or have a
    reference of which nothing can be said. What is open on the first corpus stays open.
    """
    results = dict[tuple[str, str], list[tuple[str, Finding]]]()
    for name, findings in by_corpus.items():
        for finding in findings:
            results.setdefault((finding.id, finding.claimed), []).append((name, finding))
    return [_joined(*known, first=next(iter(by_corpus))) for known in results.values()]


def _joined(mine: tuple[str, Finding], *others: tuple[str, Finding], first: str) -> Finding:
    (corpus_name, result) = mine
    if corpus_name != first:  # on which it was not tested
        result = replace(result, words=f"On {corpus_name} alone: {result.words}")
    if not others:
        return result
    words = " ".join([result.words, *(f"On {name} {each.measured}, {each.verdict}." for name, each in others)])
    sources = (*result.evidence.sources, *(source for _, each in others for source in each.evidence.sources))
    evidence = replace(result.evidence, sources=sources)
    if result.verdict == OPEN or {each.verdict for _, each in others} <= {OPEN, result.verdict}:
        return replace(result, words=words, evidence=evidence)
    return replace(result, verdict=DEPENDS, words=f"On {corpus_name} {result.verdict}: {words}", evidence=evidence)


def differ_in_corpus_alone(first: SeedRuns, other: SeedRuns, but: Collection[str] = ()) -> None:
    """Runs of an experiment on two corpora show what the corpus alone does: code, arms, data and configuration are the
    same, `but` these keys of it.

    Raises UsageError for others, and for a run that is not finished.
    """
    for run in (*first.runs, *other.runs):
        if not run.finished:
            raise UsageError(f"{run.path} is not finished; give its `skg-bench run` command again")
    mine, theirs = (flat(_counted(group.manifest, but)) for group in (first, other))
    if differ := [key for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key)]:
        key = differ[0]
        raise UsageError(
            f"runs of {first.config['experiment']} on {corpus(first.config)} and {corpus(other.config)} differ in "
            f"{key}: {mine.get(key)} and {theirs.get(key)}; what they show would not be the corpus alone"
        )


def _counted(manifest: Mapping[str, Any], but: Collection[str]) -> dict[str, Any]:
    """All that has to be alike on two corpora."""
    config = {key: value for key, value in manifest["config"].items() if key not in (*BESIDE, *_OF_CORPUS, *but)}
    data = {f"data.{key}": value for key, value in manifest["data"].items() if key not in _DATA}
    simulator = _without_corpus(config["simulator"])
    return {**config, **data, "simulator": simulator, "arms": manifest["compositions"], "code": manifest["code"]}


def _without_corpus(simulator: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in simulator.items() if key != "corpus"}
    users = kept.get("users")
    return {**kept, "users": _without_corpus(users)} if isinstance(users, Mapping) else kept
