"""What a skillbook spares: money and waiting beside an arm that sends everything to the language model (K01)."""

from experiments.skg_parameters.verdicts import REFERENCE, seed_means
from skg_bench.analysis.comparison.assay import NEVER, ORACLE, Assay, Measured, agree, verdict
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
    """Of `skg` and of the arm at the sensitive point beyond `never`, corrected together. The reference is `never`, so
    that a verdict needs an oracle that is ahead of it.
    """
    missing = {NEVER, ORACLE, REFERENCE, POINT} - set(run.arms)
    if missing:
        return []
    requests, shown = events(run), metrics(Utility.of(run.config))
    tally = {arm: tallies(run, arm, requests)[0] for arm in (NEVER, ORACLE, REFERENCE, POINT)}
    wanted = [shown[metric] for _, metric, *_ in _ASKED]
    made = {arm: contrast(wanted, tally[arm], tally[NEVER], requests) for arm in (REFERENCE, POINT, ORACLE)}
    assay = Assay(None, Measured.of(made[ORACLE]["utility"]))
    asked = [(arm, *question) for arm in (REFERENCE, POINT) for question in _ASKED]
    ps = holm([made[arm][metric].p(new=True) for arm, _, metric, *_ in asked])
    used_up, results = saturation(requests).reasons, []
    for (arm, claimed, metric, unit, sign), p in zip(asked, ps, strict=True):
        e = made[arm][metric]
        by_seed = seed_means(shown[metric], tally[arm], tally[NEVER], requests)
        up, down = agree(by_seed, above=0.0), agree(by_seed, below=0.0)
        holds = p < ALPHA and (up if sign > 0 else down)
        fails = p < ALPHA and (down if sign > 0 else up)
        neither = "not shown either way" if p >= ALPHA else "not shown either way: the seeds disagree"
        says, reason = verdict(holds=holds, fails=fails, assay=assay, used_up=used_up, neither=neither)
        words = reason or ("it is so" if holds else "it is the other way round")
        what = "as the paper has it" if arm == REFERENCE else "a skill's prompt, every answer captured"
        measured = Measured.of(e, unit)
        text = f"{arm} against the arm without, {what}: {words}."
        results.append(Finding("K01", f"{claimed}: {what}", measured, says, text, evidence, assay, by_seed))
    return results
