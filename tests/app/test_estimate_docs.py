"""Figures of docs/estimate.md, by its own commands."""

import re
import shlex
from pathlib import Path

import pytest

import skg_bench
from skg_bench.runfolder.run import Run

DOCS = Path(__file__).parents[2] / "docs/estimate.md"


@pytest.mark.soak
def test_a_log_of_two_policies_says_what_the_docs_say(tmp_path: Path) -> None:
    commands = [
        text for text in re.findall(r"```sh\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL) if "interleave" in text
    ]
    made, estimated = (shlex.split(line)[1:] for line in commands[0].replace("\\\n", "").strip().splitlines())
    run = skg_bench.run([*(word for word in made[1:] if not word.startswith("out=")), f"out={tmp_path / 'both'}"])
    targets = dict(word.split("=", 1) for word in estimated if word.startswith(("lax=", "strict=")))
    values = skg_bench.estimate(
        run, targets={name: text.strip("[]").split(",") for name, text in targets.items()},
        columns={"reward": "answer_correct"}, arm="both", against="lax", estimand="step",
    ).values  # fmt: skip
    lax, strict = (next(v for v in values if (v.policy, v.estimator) == (name, "ips")) for name in ("lax", "strict"))
    alone = skg_bench.run([
        "profile=smoke", "users=60", "weeks=8", f"out={tmp_path / 'alone'}", "reference=never",
        "arms={lax: [policy.threshold=0.4], strict: [policy.threshold=0.6], never: [policy=never]}",
    ])  # fmt: skip
    right = [f"{Run(alone.path).turns(arm)['answer_correct'].to_pandas().mean():.3f}" for arm in ("lax", "strict")]
    low, high = lax.interval
    said = (
        f"estimated at {lax.value:.3f} for `lax` ({low:.3f} to {high:.3f}) and at {strict.value:.3f} for `strict`. "
        f"Run as arms, the two had {right[0]} and {right[1]},"
    )
    assert said in " ".join(DOCS.read_text("utf-8").split())
