"""What kind of request each event is, read off the log of a run of the built-in world."""

from skg_bench.analysis.counts.kinds import INTENT_KINDS, kinds
from skg_bench.analysis.counts.tally import events
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.corpus import ACT, CORPUS_KINDS, load_corpus


def test_the_kind_of_a_request_is_read_off_the_log(tiny_run: Run) -> None:
    corpus = load_corpus()
    of_intent = {name: CORPUS_KINDS[code] for name, code in zip(corpus.intents, corpus.kind, strict=True)}
    of_intent |= {name: "act" for name, code in zip(corpus.intents, corpus.effect, strict=True) if code == ACT}
    names = {"stale": "live", "act": "live", "stable": "stable", "slot": "slot", None: "one_off"}
    told = kinds(tiny_run, events(tiny_run))
    rows = tiny_run.turns(tiny_run.arms[0], ["intent"])["intent"].to_pylist()
    truth = [names[of_intent.get(intent)] for intent in rows]
    pairs = {(INTENT_KINDS[code], kind) for code, kind in zip(told, truth, strict=True)}
    # a look-up that nobody has asked again after its time, and an act asked once, are not told from what holds
    assert pairs <= {(kind, kind) for kind in INTENT_KINDS} | {("stable", "live"), ("slot", "live")}
    assert {("slot", "slot"), ("live", "live"), ("one_off", "one_off")} <= pairs
