"""A world of a package outside, the example of docs/plugins.md: no line of skg_bench knows its words."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts.log_counts import LOGGED
from skg_bench.analysis.counts.outcomes import outcome_metrics
from skg_bench.analysis.counts.tally import COUNTS
from skg_bench.analysis.gate.against import harm
from skg_bench.analysis.gate.baseline import Baseline, baseline_text, read_baseline
from skg_bench.analysis.gate.judge import judge
from skg_bench.analysis.gate.panel import panel
from skg_bench.analysis.gate.rules import RULES, Rule
from skg_bench.app import gate
from skg_bench.app.domains import check_domain
from skg_bench.core.domain import Domain, OutcomeField, OutcomeMetric
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.tracker.events import write_events
from tests.app.lab import declare, forget, write
from tests.app.test_cli import call
from tests.app.test_extension import example
from tests.laws import world
from tests.runs import changed

WORLD = ["simulator=errands", "embedder=hashing", "users=30", "weeks=6", "policy.threshold=0.3", "salt=0"]
ARMS = (
    "arms={skg: [], exact: [router=exact], forked: [fork=skg@40, policy.threshold=0.9], "
    "never: [policy=never, curator=none], oracle: [router=oracle, policy=always, curator=oracle]}"
)
ROOT = Path(__file__).resolve().parents[2]
PRICE = OutcomeField("price", "float", (), "paid", "", truth=True)
COST = OutcomeMetric("paid", "paid", "price", (), "usd", "lower", "Dollars.")


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("errands")
    for name, text in example().items():
        write(folder / name, text)
    declare(folder, "mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        forget()
        yield folder
    forget()


@pytest.fixture(scope="module")
def run(mine: Path) -> Run:
    return skg_bench.run([*WORLD, ARMS, "workers=1", f"out={mine / 'run'}"])


def test_outcomes_and_feedback_of_its_own_are_in_the_logs(run: Run) -> None:
    turns = run.turns("skg").to_pandas()
    assert set(turns["mood"]) == {"calm", "cross"}
    assert (turns["answer_correct"] == (turns["minutes"] < 20)).all()
    assert turns["minutes"].between(5, 55).all()
    said = run.feedback("skg").to_pandas().groupby("kind", observed=True)["value"].agg(set)
    assert said["doorstep"] == {"thanks", "grumbles"}
    assert said["rating"] == {"ok", "miss"}
    assert "tier" not in turns


def test_metrics_of_its_own_are_compared(run: Run) -> None:
    rows = {(row.arm, row.metric.name): row for row in skg_bench.compare(run, reference="never").rows}
    better = rows["oracle", "minutes"]
    turns = {arm: run.turns(arm, ["minutes", "mood"]).to_pandas() for arm in ("oracle", "never")}
    gap = turns["oracle"]["minutes"].mean() - turns["never"]["minutes"].mean()
    assert better.difference.estimate.mean == pytest.approx(gap)
    assert better.difference.verdict == "better"
    assert rows["oracle", "cross"].mean == pytest.approx((turns["oracle"]["mood"] == "cross").mean())


def test_the_page_and_the_terminal_say_them(run: Run) -> None:
    page = (run.path / "report.html").read_text("utf-8")
    assert re.search(r"Minutes to the door under <code>oracle</code>: 10\.\d; -\d\.\d \(.*?\) against "
                     r"<code>never</code>: better", page.replace("−", "-"))  # fmt: skip
    assert "Minutes until it was there." in page
    text = re.sub(r"<[^>]+>", "", page)
    assert re.search(
        r"exact was at the door after \d+\.\d minutes, and annoyed \d+\.\d\s?% .*?of the people, against", text
    )
    assert "3,600 errands, the same for each of 5 arms" in text
    assert "What people say at the door; it rates nothing." in text
    code, out, _ = call("report", str(run.path))
    assert code == 0
    code, out, _ = call("run", *WORLD, ARMS, f"out={run.path}")
    assert code == 0
    assert "minutes to the" in out


NEW_METRIC = {
    "paced/errands.py": (
        (
            "truth=False)\n    mood:",
            'truth=False)\n    steps: F64 = outcome_field("to the shop and back", unit="", truth=False)\n    mood:',
        ),
        (
            "    metrics=(\n",
            '    metrics=(\n        OutcomeMetric("steps", "steps", "steps", (), "", "lower", "Steps walked."),\n',
        ),
        ("Errand(minutes, ", "Errand(minutes, 100.0 * minutes, "),
    ),
    "paced/errands.toml": (("{minutes} minutes,", "{minutes} minutes, {steps} steps,"),),
}  # what a metric with a column of its own takes, by file


def test_a_metric_with_a_new_column_touches_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"paced/{name}": example()[f"mine/{name}"].replace("mine.", "paced.").replace("mine:", "paced:")
        for name in ("errands.py", "errands.toml", "conf/simulator/errands.yaml")
    }
    files["paced/conf/simulator/paced.yaml"] = files.pop("paced/conf/simulator/errands.yaml")
    for name, pairs in NEW_METRIC.items():
        for before, after in pairs:
            assert files[name].count(before) == 1
            files[name] = files[name].replace(before, after)
    for name, text in files.items():
        write(tmp_path / name, text)
    declare(tmp_path, "paced")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    arms = "arms={exact: [router=exact], never: [policy=never]}"
    words = ["simulator=paced", *WORLD[1:], "users=3", "weeks=2", arms]
    try:
        run = skg_bench.run([*words, f"out={tmp_path / 'run'}"])
    finally:
        forget()
    turns = run.turns("exact").to_pandas()
    assert (turns["steps"] == 100 * turns["minutes"]).all()
    gaps = {row.metric.name: row.difference.estimate.mean for row in skg_bench.compare(run, reference="never").rows}
    assert gaps["steps"] == pytest.approx(100 * gaps["minutes"])
    text = re.sub(r"<[^>]+>", "", (run.path / "report.html").read_text("utf-8"))
    assert re.search(r"exact was at the door after \d+\.\d minutes, [\d,.]+ steps, and annoyed", text)
    assert "to the shop and back" in str(run.turns("exact").schema.field("steps").metadata)


OTHER_WORLDS = re.compile(r"[^.<>]*(?:[Rr]equest|slot value|look-up)[^.<>]*")
"""Words of a world of answers, whose users bring requests: with what stands around them."""


def test_the_page_has_no_words_of_another_world(run: Run) -> None:
    page = (run.path / "report.html").read_text("utf-8")
    shown = re.sub(r"<(script|style)\b.*?</\1>|<svg class=\"sprite.*?</svg>", "", page, flags=re.DOTALL)
    assert OTHER_WORLDS.findall(re.sub(r"<[^>]*>", "<>", shown)) == []


def test_processes_and_a_stop_change_no_bit(run: Run, mine: Path, bare: None) -> None:
    """Four users in cohorts of 7 are those of the run in which all are in step."""
    again = skg_bench.run([*WORLD, ARMS, "users=4", "workers=1", "cohort=7", f"out={mine / 'again'}"])
    assert world.differences(run, again, range(4)) == []
    (again.path / "turns" / "skg.0000000.parquet").unlink()
    mended = skg_bench.run([*WORLD, ARMS, "users=4", "workers=1", f"out={again.path}"])
    assert world.differences(run, mended, range(4)) == []
    forked = run.turns("forked").to_pandas()
    alike = run.turns("skg").to_pandas()["minutes"].to_numpy() == forked["minutes"].to_numpy()
    assert alike[forked["turn"] < 40].all()
    assert not alike[forked["turn"] >= 40].all()


def test_the_gate_holds_it(run: Run, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "uncommitted", list)
    file = str(mine / "baseline.json")
    run = changed(Run(shutil.copytree(run.path, mine / "gated")), commit="0" * 40, dirty=None)
    code, out, err = call("gate", "--baseline", file, "--update", "--arm", "exact", "--unproven", str(run.path))
    assert code == 0, out + err
    code, out, err = call("gate", "--baseline", file, "--unproven", str(run.path))
    assert code == 0, out + err
    assert "the same bits" in out
    informs = json.loads(Path(file).read_text("utf-8"))["metrics"]
    assert informs["minutes"] == informs["cross"] == {"role": "informs"}


def held(file: Path, **rules: object) -> Baseline:
    """The baseline in a file that declares these rules beside its own."""
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "metrics": {**content["metrics"], **rules}}), "utf-8")
    return read_baseline(file)


@pytest.mark.parametrize(("name", "better", "margin"), [("minutes", "lower", 1.0), ("cross", "lower", 0.02)])
def test_its_metrics_can_block_in_the_gate(
    run: Run, mine: Path, tmp_path: Path, name: str, better: str, margin: float
) -> None:
    best, worst = panel(run, "exact"), panel(run, "skg")
    file = tmp_path / "baseline.json"
    informs = tuple(Rule(metric.name, "informs") for metric in best.domain.metrics)
    file.write_text(baseline_text(Baseline(best, best, (*RULES, *informs), 2.0)), "utf-8")
    assert [rule.metric for rule in read_baseline(file).rules][-2:] == ["minutes", "cross"]
    baseline = held(file, **{name: {"role": "domain", "better": better, "margin": margin}})
    rule = next(rule for rule in baseline.rules if rule.metric == name)
    assert (rule.role, rule.blocks, rule.margin) == ("domain", True, margin)
    (judged,) = judge([harm(baseline.panel, worst, rule)])
    turns = {arm: run.turns(arm, ["minutes", "mood"]).to_pandas() for arm in ("exact", "skg")}
    of = {arm: table.minutes if name == "minutes" else table.mood == "cross" for arm, table in turns.items()}
    assert judged.mean == pytest.approx(of["skg"].mean() - of["exact"].mean(), abs=1e-6)
    assert judged.state == "fail"
    assert judge([harm(worst, best, rule)])[0].state == "pass"
    assert "minutes to the door" in best.metrics["minutes"].label


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"minutes": {"role": "errors"}}, 'metrics.minutes: it cannot have the role "errors"'),
        ({"hit_rate": {"role": "domain"}}, 'the role "domain"; metrics that can are minutes, cross'),
        ({"minutes": {"role": "domain", "better": "higher", "margin": 1}}, "says that 'higher' is better"),
        (
            {"minutes": {"role": "domain", "better": "lower"}},
            "metrics.minutes: margin is None, and must be a number above 0",
        ),
        ({"moods": {"role": "domain", "better": "lower", "margin": 1}}, "metrics that can are minutes, cross"),
    ],
)
def test_a_bad_rule_about_it_says_what_is_valid(run: Run, tmp_path: Path, rules: dict[str, object], says: str) -> None:
    best, file = panel(run, "exact"), tmp_path / "baseline.json"
    file.write_text(baseline_text(Baseline(best, best, RULES, 2.0)), "utf-8")
    with pytest.raises(UsageError, match=re.escape(says)):
        held(file, **rules)


def test_a_rule_about_a_domain_is_refused_in_another_world(run: Run) -> None:
    errands = panel(run, "exact")
    assert errands.domain.name == "errands"
    other = replace(errands, made={key: value for key, value in errands.made.items() if key != "domain"})
    with pytest.raises(UsageError, match="'minutes' is no metric there, as its domain is another"):
        harm(errands, other, Rule("minutes", "domain", "lower", 1.0))


def test_a_reader_needs_no_module_of_the_world(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mine", None)
    assert np.isfinite(skg_bench.compare(Run(run.path), reference="never").rows[0].mean)


def test_traces_hold_its_outcome_and_what_is_true_apart(run: Run, mine: Path) -> None:
    copy = Run(shutil.copytree(run.path, mine / "traced"))
    file, lines = write_events(copy, 2, None)
    traces = [json.loads(line)["trace"] for line in file.read_text("utf-8").splitlines()]
    turns = [trace["metadata"] for trace in traces if "minutes" in trace["metadata"]]
    assert len(turns) == 2 * 120 * len(run.arms) < lines
    assert {about["truth"]["mood"] for about in turns} == {"calm", "cross"}
    assert all("mood" not in about for about in turns)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("(minutes > 30.0).astype(np.int32)", "np.full(len(minutes), 2, np.int32)", r"outcome\.mood is 2"),
        ("draws.delay < 2 / 3, errand.mood", "draws.delay < 2 / 3, 7", r"Feedback\.value is 7"),
    ],
)
def test_a_world_that_says_what_it_did_not_declare_ends_the_run(
    right: str, wrong: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, err = rude(tmp_path, monkeypatch, right, wrong)
    assert exit_code == 2
    assert re.search(rf"the world of domain 'errands' of arm 'skg', user \d+, turn \d+: {says}", err)


def rude(folder: Path, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, *more: str) -> tuple[int, str]:
    """Exit code and errors of a run in the example with `wrong` in the place of `right`."""
    code, options = (example()[f"mine/{name}"] for name in ("errands.py", "conf/simulator/errands.yaml"))
    assert right in code
    for module in ("ours", "ours.errands"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    write(folder / "ours" / "errands.py", code.replace(right, wrong).replace("mine:errands.toml", ""))
    write(folder / "ours" / "conf" / "simulator" / "rude.yaml", options.replace("mine.", "ours."))
    write(folder / "ours" / "conf" / "signs" / "rude.yaml", example()["mine/conf/signs/doorstep.yaml"])
    declare(folder, "ours")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)
    forget()
    words = [
        "simulator=rude",
        *WORLD[1:],
        "users=5",
        "weeks=2",
        "arms={skg: []}",
        "reference=skg",
        "contrasts=[]",
        "workers=1",
        *more,
    ]
    exit_code, _, err = call("run", *words, f"out={folder / 'run'}")
    forget()
    return exit_code, " ".join(err.split())


SIGNALS = 'of two errands in three"', 'of two errands in three", ("They thanked you.", "They grumbled.")'


def test_learners_learn_from_a_kind_with_signals_by_signs_of_its_own(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, err = rude(tmp_path, monkeypatch, *SIGNALS, "signs=rude")
    assert code == 0, err
    log = Run(tmp_path / "run")
    turns, said, updates = (getattr(log, name)("skg").to_pandas() for name in ("turns", "feedback", "updates"))
    served = said.merge(turns.loc[~turns["fallback_to_llm"], ["user", "turn"]], on=["user", "turn"])
    either, rated = (rows.drop_duplicates(["user", "turn"]) for rows in (served, served[served["kind"] == "rating"]))
    assert updates["rating"].notna().sum() == len(either) > len(rated)


def test_signs_of_another_domain_are_refused_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, err = rude(tmp_path, monkeypatch, *SIGNALS)
    assert code == 2
    assert "signs.outcome has 'accepted', valid are thanks, grumbles, which are said in the domain 'errands'" in err


def test_its_experiment_runs(mine: Path) -> None:
    assert set(skg_bench.run(["experiment=errands", "users=3", "weeks=1", f"out={mine / 'asked'}"]).arms) == {
        "stored", "never",
    }  # fmt: skip


def test_no_file_of_ours_knows_its_words() -> None:
    ours = [*(ROOT / "skg_bench").rglob("*.py"), *(ROOT / "conf").rglob("*.yaml")]
    assert not [file for file in ours if re.search(r"\b(errands?|doorstep|grumbles)\b", file.read_text("utf-8"))]


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        (
            Domain("d", outcome=(PRICE,), metrics=(replace(COST, name="utility"),)),
            "metric 'utility' has the name of one",
        ),
        (
            Domain("d", outcome=(PRICE,), metrics=(replace(COST, name="pays_by"),)),
            "metric 'pays_by' has the name of one",
        ),
        (Domain("d", outcome=(replace(PRICE, name="answer_correct"),)), "field of the outcome 'answer_correct' has"),
    ],
)
def test_a_domain_stands_in_for_nothing_of_ours(domain: Domain, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_domain(domain)


def test_a_count_of_a_domain_is_none_of_ours() -> None:
    metric = outcome_metrics(Domain("d", outcome=(PRICE,), metrics=(replace(COST, name="hit"),)))["hit"]
    assert not set(metric.count) & {*COUNTS, *LOGGED}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("noun = 3", "the words of the domain are not sound: words.noun is 3"),
        ("nouns = 'x'", "the words of the domain are not sound: words must have the keys noun, "),
        ("tiles = ['moods']", "its words name the metric 'moods', valid are utility, "),
        ("worth = 'gold'", "its words name the column 'gold', valid are "),
        ("general = ['errors']", "its words name the metric of every world 'errors', valid are utility, "),
        ("noun = ", "telling='wordy:words.toml' cannot be read as package:file.toml"),
        (None, "telling='wordy:words.toml' cannot be read as package:file.toml"),
    ],
)
def test_bad_words_are_refused_before_a_run(
    words: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "wordy" / "__init__.py", "")
    if words is not None:
        write(tmp_path / "wordy" / "words.toml", words)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wordy", raising=False)
    with pytest.raises(UsageError, match=re.escape(says)):
        check_domain(Domain("d", telling="wordy:words.toml"))


def test_a_world_with_random_numbers_of_its_own_is_refused(mine: Path) -> None:
    """Arms of two stacks met other messages at the same times, and got a verdict."""
    lucky = (mine / "mine" / "errands.py").read_text("utf-8").replace(
        "pick, word = draw(keys, number, Purpose.NOVEL), draw(keys, number, Purpose.PICK)",
        "pick, word = np.random.default_rng().random((2, len(users), n))",
    )  # fmt: skip
    write(mine / "mine" / "lucky.py", lucky)
    write(mine / "mine" / "conf" / "simulator" / "lucky.yaml", "_target_: mine.lucky.Errands\nper_week: 20\n")
    forget()
    with pytest.raises(UsageError, match=r"domain 'errands': user \d+ has another event at turn \d+ if begun alone"):
        skg_bench.run(["simulator=lucky", "embedder=hashing", "users=3", "weeks=1", "arms={never: [policy=never]}"])
