"""Savings by a skillbook: money and waiting beside an arm that sends everything to the language model (K01)."""

from experiments.skg_parameters.verdicts import REFERENCE, seed_means
from skg_bench.analysis.comparison.assay import NEVER, ORACLE, Assay, Measured, agree, claim_verdict
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.statistics.intervals import ALPHA, holm
from skg_bench.analysis.summary.saturation import saturation

POINT = "prompts"  # the arm at the sensitive point
_ASKED = (
    ("a skillbook makes answers cheaper", "cost_usd", "US dollars per request", -1),
    ("a skillbook makes answers faster", "latency_ms", "ms per request", -1),
    ("a skillbook serves users better", "utility", "utility per request", 1),
)


def spared(run: SeedRuns, evidence: Evidence) -> list[Finding]:
    """Findings on `skg`, or the sensitive point's arm, beyond `never`, corrected together. The reference is `never`, so
    that a verdict needs an oracle that is ahead of it.
    """
    arm = REFERENCE if REFERENCE in run.arms else POINT
    if {NEVER, ORACLE, arm} - set(run.arms):
        return []
    requests, shown = events(run), metrics(Utility.of(run.config))
    tally = {name: tallies(run, name, requests)[0] for name in (NEVER, ORACLE, arm)}
    wanted = [shown[metric] for _, metric, *_ in _ASKED]
    made, best = (contrast(wanted, tally[name], tally[NEVER], requests) for name in (arm, ORACLE))
    assay = Assay(None, Measured.of(best["utility"]))
    ps = holm([made[metric].p(new=True) for _, metric, *_ in _ASKED])
    used_up, results = saturation(requests).reasons, []
    what = "as the paper has it" if arm == REFERENCE else "a skill's prompt, every answer captured"
    for (claimed, metric, unit, sign), p in zip(_ASKED, ps, strict=True):
        by_seed = seed_means(shown[metric], tally[arm], tally[NEVER], requests)
        up, down = agree(by_seed, above=0.0), agree(by_seed, below=0.0)
        shows = p < ALPHA and not made[metric].disputed
        holds = shows and (up if sign > 0 else down)
        fails = shows and (down if sign > 0 else up)
        why = ": it depends on the interval" if made[metric].disputed else ": the seeds disagree" if shows else ""
        neither = f"not shown either way{why}"
        says, reason = claim_verdict(holds=holds, fails=fails, assay=assay, used_up=used_up, neither=neither)
        words = reason or ("it is so" if holds else "it is the other way round")
        text = f"{arm} against the arm without, {what}: {words}."
        measured = Measured.of(made[metric], unit)
        results.append(Finding("K01", f"{claimed}: {what}", measured, says, text, evidence, assay, by_seed))
    return results
