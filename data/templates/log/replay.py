"""A log, replayed: what would skills have answered? Run it: python replay.py."""

from pathlib import Path

import skg_bench

COLUMNS = "{user: customer, time: asked_at, message: question, answer: answer, satisfaction: rating}"

if __name__ == "__main__":
    log = Path(__file__).with_name("log.csv")
    words = ["simulator=recorded", f"simulator.path={log}", f"simulator.columns={COLUMNS}", "out=run"]
    # embedder=minilm (extra `embed`) knows what words mean; hashing counts shared ones
    run = skg_bench.run([*words, "embedder=hashing"], progress=True)
    for sentence in skg_bench.explain(run):
        print(f"* {sentence}")
    print(skg_bench.compare(run))
    print(f"page: {run.path / 'report.html'}")
