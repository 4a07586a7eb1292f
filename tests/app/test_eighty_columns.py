"""Whatever a command prints on a smoke run, a terminal of 80 columns shows it whole."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.analysis import report, summary
from skg_bench.app import api, claim_tables, gate
from skg_bench.runfolder.run import Run
from tests.app.gate_runs import changed
from tests.app.test_cli import call
from tests.runs import logs_alone

SMOKE = ("experiment=assistant_growth", "profile=smoke", "users=6", "weeks=2", "workers=1")
COMMANDS = [
    "run experiment=assistant_growth profile=smoke users=6 weeks=2 workers=1 out=RUN",
    "run profile=smoke users=6 weeks=2 workers=1 --dry-run",
    "run -m seed=1,2 users=2 weeks=1 workers=1 out=cells",
    "compare RUN",
    "compare RUN --metric all --reference skg --margin utility=0.9",
    "compare RUN --flips 1",
    "gate --baseline BASELINE RUN --unproven",
    "gate --baseline BASELINE OTHER --unproven",
    "gate --baseline BASELINE --update OTHER --unproven",
    "list",
    "list --all",
    "list experiment",
    *(f"list {name}" for name in ("config", "simulator.clinc150", "experiment.counterfactuals", "reranker.linucb")),
    "runs .",
    "claims",
    "claims --all",
    "claims K16 --open",
    "data list",
    "experiment",
    "experiment assistant_growth RUN",
    "skillbook show RUN --arm always --user 1",
    "skillbook replay RUN --users 2",
    "counterexample find RUN --arm always --reference never",
    "report RUN",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two runs, as if from a clean tree, and the baseline of one."""
    folder = tmp_path_factory.mktemp("smoke")
    skg_bench.run([*SMOKE, f"out={folder / 'run'}"])
    with logs_alone():  # a gate reads no more
        skg_bench.run([*SMOKE, "policy.threshold=0.2", f"out={folder / 'other'}"])
    for name in ("run", "other"):
        changed(folder / name, dirty=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "uncommitted", list)
        gate.update_baseline(folder / "run", folder / "baseline.json", "skg", unproven=True)
    return {name.upper(): str(folder / file) for name, file in
            (("run", "run"), ("other", "other"), ("baseline", "baseline.json"))}  # fmt: skip


def made_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first result for a run stands for all later ones: a command asks for the same at both widths."""
    results: dict[str, Any] = {}

    def first(*words: Any, **more: Any) -> Any:
        key = repr([getattr(word, "path", word) for word in words])
        if key not in results:
            results[key] = function(*words, **more)
        return results[key]

    return first


@pytest.mark.parametrize("words", COMMANDS)
def test_no_cell_is_cut_and_no_word_of_a_table_is_broken(
    words: str, made: dict[str, str], refused: dict[str, str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "uncommitted", list)
    monkeypatch.setattr(claim_tables, "refusals", lambda folder, ids: refused)
    for module, name in ((api, "compare"), (report, "write_page")):
        monkeypatch.setattr(module, name, made_once(getattr(module, name)))
    given = [re.sub("RUN|OTHER|BASELINE", lambda match: made[match[0]], word) for word in words.split()]
    if {"-m", "--update"} & set(given):  # what is printed later is then the same each time
        call(*given)
    monkeypatch.setenv("COLUMNS", "80")
    code, narrow, _ = call(*given)
    assert code in (0, 1, 3)
    monkeypatch.setenv("COLUMNS", "2000")
    again, wide, _ = call(*given)
    assert again == code
    assert "…" not in narrow + wide
    for line in narrow.splitlines():
        assert len(line) <= 80 or re.search(r"(  \S.*){3}", line) is None, line  # the terminal wraps sentences
    missing = {word for word in set(wide.split()) - set(narrow.split()) if "/" not in word}  # a path may be broken
    assert (code, missing) == (again, set())


def test_the_verdict_of_each_arm_stands_in_the_first_block_and_the_learners_in_a_sentence(
    made: dict[str, str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("run", *SMOKE, f"out={made['RUN']}")
    assert code == 0
    figures = summary.read_summary(Run(made["RUN"]))
    first = out[: out.index("\n\n")]
    said = " ".join(out[out.index("* ") :].split())
    for arm, by_metric in figures.differences.items():
        (line,) = [line for line in first.splitlines() if line.split()[:1] == [arm]]
        assert by_metric["utility"].verdict.split()[0] in line
    assert f" {figures.learner} " in said
