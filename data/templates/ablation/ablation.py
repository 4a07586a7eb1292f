"""Two arms that differ in one part, beside the model alone. Run it: python ablation.py."""

import json

import skg_bench

ARMS = {
    "base": [],  # the loop by its defaults
    "mine": ["policy.threshold=0.8"],  # the one change; `skg-bench list` prints what can be changed
    "never": ["policy=never", "curator=none"],  # the model alone
}

if __name__ == "__main__":
    words = [f"arms={json.dumps(ARMS)}", "reference=base", "learner=mine", "profile=smoke", "out=run"]
    run = skg_bench.run(words, progress=True)
    for sentence in skg_bench.explain(run):  # the verdict, and why
        print(f"* {sentence}")
    print(skg_bench.compare(run))
    print(f"page: {run.path / 'report.html'}")
