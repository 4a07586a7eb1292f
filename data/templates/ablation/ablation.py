"""Two arms that differ in one part, beside the model alone. Run it: python ablation.py."""

import json

import skg_bench

ARMS = {
    "base": [],  # the loop by its defaults
    "mine": ["policy.threshold=0.6"],  # the one change; `skg-bench list` prints what can be changed
    "never": ["policy=never", "curator=none"],  # the model alone
}

REFERENCE, MINE, *_ = ARMS  # the first arm is compared with, the page begins with the second

if __name__ == "__main__":
    words = [f"arms={json.dumps(ARMS)}", f"reference={REFERENCE}", f"learner={MINE}", "profile=smoke"]
    words.append(f"question=Is {MINE} better for its users than {REFERENCE}?")
    run = skg_bench.run(words, progress=True)
    for sentence in skg_bench.explain(run):  # the verdict, and why
        print(f"* {sentence}")
    print(skg_bench.compare(run))
    print(f"page: {run.path / 'report.html'}")
    print(f"next: skg-bench compare {run.path} --flips 5")
