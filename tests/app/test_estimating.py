"""`skg-bench estimate`: tables and runs, what it prints, and bad input that it refuses with the row and a remedy."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skg_bench
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.policy_value.open_bandit import SHARED, answers, arrays, vectors
from tests.app.test_cli import call, refused
from tests.runs import changed, logs_alone

Columns = dict[str, list[Any]]


def clicks(n: int = 400) -> Columns:
    """Two actions, of which the second is better; a policy that does it always."""
    rng = np.random.default_rng(0)
    action, user = rng.integers(0, 2, n), np.sort(rng.integers(0, 40, n))
    good = rng.random(n) < 0.3 + 0.4 * action
    return {
        "user": [f"u{i}" for i in user.tolist()], "action": action.tolist(), "propensity": [0.5] * n,
        "reward": good.astype(int).tolist(), "second": action.tolist(), "same": [0.5] * n,
    }  # fmt: skip


def lists(n: int = 400) -> Columns:
    """The same with candidates, in an order of its own in each row, and a model."""
    known, flip = clicks(n), np.random.default_rng(1).integers(0, 2, n).tolist()
    return {
        **{name: known[name] for name in ("user", "action", "propensity", "reward")},
        "candidates": [[1, 0] if turned else [0, 1] for turned in flip],
        "second": [[1.0, 0.0] if turned else [0.0, 1.0] for turned in flip],
        "even": [[0.5, 0.5]] * n,
        "predicted": [[0.6, 0.4] if turned else [0.4, 0.6] for turned in flip],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Columns], Path]:
    """A Parquet file of these columns."""

    def made(columns: Columns) -> Path:
        path = tmp_path / "log.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return made


def as_csv(columns: Columns, path: Path) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_csv_and_a_parquet_file_say_the_same(write: Callable[[Columns], Path], tmp_path: Path) -> None:
    first = skg_bench.estimate(write(clicks()), {"second": "second", "even": 0.5})
    second = skg_bench.estimate(as_csv(clicks(), tmp_path / "log.csv"), {"second": "second", "even": "1/2"})
    assert first == second
    assert first.rows == 400
    assert first.users == 40
    values = {(each.policy, each.estimator): each for each in first.values}
    assert values["second", "snips"].verdict == "higher"
    assert values["second", "snips"].interval[0] < 0.7 < values["second", "snips"].interval[1]
    assert values["even", "ips"].verdict == "inconclusive"
    assert values["even", "ips"].difference == 0.0
    assert values["log", "ips"].verdict == "reference"
    assert {each.estimand for each in first.values} == {"step"}


def test_lists_over_candidates_with_a_model_give_doubly_robust_values(write: Callable[[Columns], Path]) -> None:
    made = skg_bench.estimate(write(lists()), {"second": "second", "even": "even"}, against="even")
    values = {(each.policy, each.estimator): each for each in made.values}
    known = clicks()
    w = 2.0 * np.array(known["action"])
    r = np.array(known["reward"])
    q = np.where(w > 0, 0.6, 0.4)
    assert values["second", "dr"].value == pytest.approx(float(np.mean(0.6 + w * (r - q))), abs=1e-12)
    assert values["second", "sndr"].value == pytest.approx(0.6 + float(np.mean(w * (r - q)) / w.mean()), abs=1e-12)
    assert values["even", "dr"].value == pytest.approx(float(np.mean(0.5 + r - q)), abs=1e-12)
    assert values["second", "dr"].difference == pytest.approx(values["second", "dr"].value - values["even", "dr"].value)
    assert values["second", "dr"].verdict == "higher"
    scalar = skg_bench.estimate(write({**clicks(), "even": [0.5] * 400}), {"second": "second", "even": "even"})
    plain = {(each.policy, each.estimator): each.value for each in scalar.values}
    assert values["second", "snips"].value == pytest.approx(plain["second", "snips"], abs=1e-12)


def test_a_policy_with_a_model_is_held_against_one_without(write: Callable[[Columns], Path]) -> None:
    made = skg_bench.estimate(write(lists()), {"second": "second", "half": "1/2"}, against="half")
    values = {(each.policy, each.estimator): each for each in made.values}
    assert {name for policy, name in values if policy == "half"} == {"ips", "snips"}
    gap = values["second", "dr"].value - values["half", "ips"].value
    assert values["second", "dr"].difference == pytest.approx(gap, abs=1e-12)


def test_the_raw_open_bandit_data_set_is_read_as_it_is() -> None:
    file = SHARED / "datasets" / "obd" / "bts" / "men" / "men.csv"
    if not file.exists():
        pytest.skip(f"the Open Bandit data set is absent: {file}; SKG_BENCH_SHARED says where it lies")
    columns = "{action: item_id, propensity: propensity_score, reward: click}"
    code, out, _ = call("estimate", str(file), "--policy", "random=1/34", "--columns", columns, "--by-row")
    assert code == 0
    assert "10,000 decisions, rows are taken for independent, as no user is named" in out
    assert "0.0030086 (0.0014916 to 0.0045257)" in out
    assert "0.9433 +- 0.036" in out
    assert "655.7" in out
    assert "178.3" in out


def test_the_open_bandit_vectors_come_out_of_a_table(write: Callable[[Columns], Path]) -> None:
    data, known = arrays("A", "data.npz"), answers("A", "obp_estimates.json")["policies"]["soft"]["estimates"]
    n = len(data["action"])
    path = write({
        "action": data["action"].tolist(), "propensity": data["pscore"].tolist(), "reward": data["reward"].tolist(),
        "candidates": [list(range(8))] * n, "soft": data["pi_e__soft"].tolist(), "predicted": data["q_hat"].tolist(),
    })  # fmt: skip
    made = skg_bench.estimate(path, {"soft": "soft"}, estimators=["ips", "dm", "sndr", "switch=3", "dros=100"])
    ours = {each.estimator: each.value for each in made.values if each.policy == "soft"}
    theirs = {"ips": "ipw", "dm": "dm", "sndr": "sndr", "switch=3": "switch-dr_tau3", "dros=100": "dr-os_lam100"}
    assert ours == pytest.approx({name: known[key]["value"] for name, key in theirs.items()}, abs=1e-9)
    assert vectors("A").is_dir()


def test_what_is_printed_says_what_it_is_and_what_is_withheld(write: Callable[[Columns], Path]) -> None:
    path = write({**clicks(), "reward": [None, *clicks()["reward"][1:]], "never": [0.0] * 400})
    code, out, _ = call(
        "estimate", str(path), "--policy", "second=second", "--policy", "never=never", "--estimator", "ips",
        "--estimator", "clipped=1.5",
    )  # fmt: skip
    assert code == 0
    assert "400 decisions, 40 users, 1 rewards missing" in out
    assert "* second is withheld: 1 of 400 rewards are missing, and nothing says by what chance" in out
    assert "the value is between" in out
    assert "* never is withheld: it never does what the log did" in out
    assert "it is not the value of an arm that learns" in out
    assert "clustered by user" in out
    assert "values: means over turns, in which busy users weigh more" in out
    assert "if rows were independent" not in out
    code, out, _ = call(
        "estimate", str(write(clicks())), "--policy", "a=second", "--estimator", "clipped=1.5", "--by-row"
    )
    assert code == 0
    assert "* biased: shrunk weights, or a model alone, get no verdict" in out
    assert "if rows were independent" in out


# ------------------------------------------------------------------------------------------------------ bad input

BAD: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "no propensity": ({"propensity": None}, "", "has no column 'propensity' (the log's probability of it"),
    "no reward": ({"reward": None}, "", "--columns '{reward: COLUMN}'"),
    "propensity 0": ({"propensity": [0.5, 0.0]}, "", "row 2: propensity is 0.0; the log's probability of it, above 0"),
    "propensity above 1": ({"propensity": [1.5, 0.5]}, "", "row 1: propensity is 1.5"),
    "propensity missing": ({"propensity": [0.5, None]}, "", "row 2: propensity is empty"),
    "propensity nan": ({"propensity": [0.5, float("nan")]}, "", "row 2: propensity is empty"),
    "propensity infinite": ({"propensity": [0.5, float("inf")]}, "", "row 2: propensity is inf"),
    "reward text": ({"reward": ["good", "bad"]}, "", "row 1: reward is 'good'; a number, or true and false is needed"),
    "reward lists": ({"reward": [[1.0], [2.0]]}, "", "row 1: reward is [1.0]; a number"),
    "rewards alike": ({"reward": [1, 1]}, "", "every reward is 1: nothing tells one decision from another"),
    "a user": ({"user": ["a", "a"]}, "", "the log has one user"),
    "user missing": ({"user": ["a", None]}, "", "row 2: user is empty; each row needs a user"),
    "policy above 1": ({"second": [0.5, 1.5]}, "", "row 2: second is 1.5; policy a: 0 to 1 is needed"),
    "policy below 0": ({"second": [0.5, -0.1]}, "", "row 2: second is -0.1"),
    "policy text": ({"second": ["x", "y"]}, "", "row 1: second is 'x'"),
    "no rows": ({name: [] for name in clicks()}, "", "has no rows"),
    "two fields": ({}, "{reward: propensity}", "'propensity' is propensity and reward"),
    "another field": ({}, "{rewrd: reward}", "rewrd is no field; did you mean 'reward'"),
    "another column": ({}, "{reward: rewarrd}", "has no column 'rewarrd' for reward; did you mean 'reward'"),
    "no mapping": ({}, "[reward]", "--columns [reward]: write --columns '{reward: COLUMN"),
    "chance 0": ({"reward_propensity": [0.5, 0.0]}, "", "row 2: reward_propensity is 0.0; a chance above 0"),
    "reward too large": ({"reward": [0.0, 1e300]}, "", "row 2: reward is 1e+300"),
    "propensity too small": ({"propensity": [0.5, 1e-300]}, "", "row 2: propensity is 1e-300"),
    "a model alone": ({"predicted": [0.5, 0.5]}, "{predicted: predicted}", "no policy says what it would do instead"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused(name: str, write: Callable[[Columns], Path]) -> None:
    columns, mapping, says = BAD[name]
    table = {key: column[:2] for key, column in clicks().items()} | {"reward": [0, 1], "user": ["a", "b"], **columns}
    path = write({key: column for key, column in table.items() if column is not None})
    words = ["--columns", mapping] if mapping else []
    assert says in refused("estimate", str(path), "--policy", "a=second", *words)


BAD_LISTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "sum": ({"second": [[0.5, 0.5], [0.9, 0.4]]}, "row 2: second is [0.9, 0.4]; it sums to 1.3"),
    "negative": ({"second": [[0.5, 0.5], [1.4, -0.4]]}, "row 2: second is [1.4, -0.4]"),
    "length": ({"second": [[0.5, 0.5], [1.0]]}, "row 2: second is [1.0]; its row has 2 candidates"),
    "none": ({"second": [[0.5, 0.5], None]}, "row 2: second is empty; its row has 2 candidates"),
    "number": ({"second": [[0.5, 0.5], [0.5, None]]}, "row 2: second is [0.5, None]; probabilities"),
    "model": ({"predicted": [[0.5, 0.5], [0.5, float("inf")]]}, "row 2: predicted is [0.5, inf]; a finite number"),
    "flat model": ({"predicted": [0.5, 0.5]}, "row 1: predicted is 0.5; a list is needed"),
    "no candidates": ({"candidates": None}, "policy a is a column of lists, which needs a column 'candidates'"),
    "no action": ({"action": None}, "policy a is a column of lists, which needs a column 'action'"),
    "flat": ({"candidates": [1, 0]}, "row 1: candidates is 1; it holds the candidates of a row"),
    "empty": ({"candidates": [[0, 1], []]}, "row 2: candidates is []; it holds what could have been done"),
    "another": ({"action": [0, 5]}, "row 2: action is 5; it is 0 times among the candidates of its row"),
    "twice": ({"candidates": [[0, 0], [0, 1]]}, "row 1: action is 0; it is 2 times among the candidates"),
    "types": ({"action": ["0", "1"]}, "candidates and action are of other types: int64 and string"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LISTS)
def test_bad_lists_are_refused(name: str, write: Callable[[Columns], Path]) -> None:
    columns, says = BAD_LISTS[name]
    table = {key: column[:2] for key, column in lists().items()} | {
        "reward": [0, 1], "user": ["a", "b"], "action": [0, 1], "candidates": [[0, 1], [0, 1]],
        "second": [[0.5, 0.5], [0.5, 0.5]], **columns,
    }  # fmt: skip
    path = write({key: column for key, column in table.items() if column is not None})
    assert says in refused("estimate", str(path), "--policy", "a=second")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no policy is given; ask for one: --policy NAME=1/34"),
        (("--policy", "a"), "--policy a: write --policy NAME=1/34 or NAME=COLUMN"),
        (("--policy", "a=second", "--policy", "a=0.5"), "a is asked about twice"),
        (("--policy", "a=secnd"), "neither a probability, such as 1/34, nor a column"),
        (("--policy", "a=1/0"), "neither a probability"),
        (("--policy", "a=0"), "a probability is above 0 and at most 1"),
        (("--policy", "a=1.5"), "a probability is above 0 and at most 1"),
        (("--policy", "log=second"), "log is the name of what made the log"),
        (("--policy", "a=second", "--against", "b"), "--against b: valid: a, log"),
        (("--policy", "a=second", "--estimator", "dr"), "--estimator dr needs a model of the reward"),
        (("--policy", "a=second", "--arm", "skg"), "is a table: --arm and --target go with a run folder"),
        (("--target", "a=[policy=never]"), "is a table: --arm and --target go with a run folder"),
        (("--target", "a=policy"), "--target a=policy: write --target 'NAME=[policy.threshold=0.6]'"),
        (("--columns", "{", "--policy", "a=second"), "--columns {: write --columns"),
    ],
)  # fmt: skip
def test_bad_words_are_refused(words: tuple[str, ...], says: str, write: Callable[[Columns], Path]) -> None:
    assert says in refused("estimate", str(write(clicks())), *words)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    torn, other = tmp_path / "torn.parquet", tmp_path / "log.xlsx"
    torn.write_bytes(b"PAR1 and no more")
    other.write_bytes(b"x")
    assert "is torn or no Parquet file" in refused("estimate", str(torn), "--policy", "a=1")
    assert "a table whose name ends in .csv, .tsv, .parquet" in refused("estimate", str(other), "--policy", "a=1")
    assert "cannot be read" in refused("estimate", str(tmp_path / "none.csv"), "--policy", "a=1")
    assert "is no run" in refused("estimate", str(tmp_path), "--policy", "a=1")
    twice = tmp_path / "twice.csv"
    twice.write_text("reward,reward,propensity\n1,0,0.5\n")
    assert "has the column 'reward' twice" in refused("estimate", str(twice), "--policy", "a=1")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("reward,propensity\n1,0.5\n0,0.5,7\n")
    assert "row 3 is torn: another number of fields" in refused("estimate", str(ragged), "--policy", "a=1")


def test_a_text_table_names_the_line_of_a_fault(tmp_path: Path) -> None:
    known = clicks(6)
    for column, value, says in (
        ("propensity", "0,5", "'0,5'"),
        ("reward", "ok", "'ok'"),
        ("propensity", "", "is empty"),
    ):
        cells = {**known, column: [*known[column][:4], value, *known[column][5:]]}
        path = as_csv({name: [f'"{cell}"' for cell in cells[name]] for name in cells}, tmp_path / "log.csv")
        err = refused("estimate", str(path), "--policy", "a=1/2")
        assert f"row 6: {column}" in err
        assert says in err


# ------------------------------------------------------------------------------------------------------------ runs


@pytest.fixture(scope="module")
def run(once: Callable[..., Path]) -> Run:
    """Twelve users of a softmax, a memory of ratings, a rule, nobody's skills, and procedures that may fail."""
    arms = (
        "arms={soft: [policy=softmax], wise: [policy=thompson], rule: [], never: [policy=never], tool: [policy=softmax,"
        "serving=procedure], both: [policy=interleave]}"
    )
    size = ("profile=smoke", "users=12", "weeks=4", "simulator.corpus=builtin_120")
    with logs_alone():
        folder = once("estimated", lambda out: skg_bench.run([*size, arms, f"out={out}"]))
    return Run(folder)


REWARD = {"reward": "answer_correct"}


@pytest.mark.parametrize(("arm", "policy"), [("soft", "softmax"), ("both", "interleave")])
def test_the_arm_itself_as_a_target_is_the_log(arm: str, policy: str, run: Run) -> None:
    made = skg_bench.estimate(run, targets={"same": [f"policy={policy}"]}, columns=REWARD, arm=arm, estimand="step")
    log, *same = made.values
    assert {each.policy for each in same} == {"same"}
    assert all(each.value == pytest.approx(log.value, abs=1e-12) and each.verdict == "inconclusive" for each in same)
    assert made.weights[1].mean == 1.0
    assert made.users == 12


def test_a_stricter_target_of_a_softmax_is_better_in_the_states_of_the_log(run: Run) -> None:
    code, out, _ = call(
        "estimate", str(run.path), "--arm", "soft", "--reward", "answer_correct", "--target",
        "strict=[policy=threshold,policy.threshold=0.6]", "--target", "cold=[policy.temperature=0.02]",
        "--estimand", "step",
    )  # fmt: skip
    assert code == 0
    assert "strict" in out
    assert "cold" in out
    made = skg_bench.estimate(
        run.path, targets={"strict": ["policy=threshold", "policy.threshold=0.6"]}, columns=REWARD, arm="soft",
        estimand="step",
    )  # fmt: skip
    turns = run.turns("soft")
    combined = np.stack(turns["combined"].to_numpy())
    skill, best = turns["skill"].to_numpy(), combined.argmax(axis=1)
    shortlist = np.stack(turns["shortlist"].to_numpy())
    decision = np.where(combined.max(axis=1) >= 0.6, shortlist[np.arange(len(best)), best], -1)
    w = (decision == skill) / turns["propensity"].to_numpy()
    ips = float(np.mean(w * turns["answer_correct"].to_numpy()))
    assert made.values[1].value == pytest.approx(ips, rel=1e-9)


def test_a_log_without_chance_says_nothing_of_what_it_never_did(run: Run) -> None:
    made = skg_bench.estimate(
        run, targets={"lax": ["policy.threshold=0.3"]}, columns=REWARD, arm="rule", estimand="step"
    )
    assert "rows it would do something else, and the log took no chance" in made.weights[1].withheld
    assert {each.verdict for each in made.values[1:]} == {"withheld"}


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("policy=thompson", "decides by more than the scores of the log"),
        ("policy=beta_mean", "decides by more than the scores of the log"),
        ("policy=llm_chooser", "decides by more than the scores of the log"),
        ("router=bm25", "Another router, scorer or curator needs a run of its own"),
        ("simulator=facts", "Another router, scorer or curator needs a run of its own"),
        ("policy.treshold=0.6", "did you mean 'threshold'"),
        ("policy.threshold=2", "must lie in"),
        ("policy=thresold", "did you mean 'threshold'"),
    ],
)  # fmt: skip
def test_targets_of_which_the_log_does_not_tell_are_refused(target: str, says: str, run: Run) -> None:
    words = ("--arm", "soft", "--reward", "answer_correct", "--estimand", "step", "--target", f"x=[{target}]")
    assert says in refused("estimate", str(run.path), *words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--target", "x=[policy=never]", "--reward", "answer_correct"), "say whose log it is: --arm soft|wise"),
        (("--arm", "sft", "--reward", "answer_correct", "--policy", "a=1"), "--arm sft: did you mean 'soft'"),
        (("--arm", "soft", "--policy", "a=1"), "has no column 'reward'"),
        (("--arm", "soft", "--reward", "user_satisfaction", "--policy", "a=1"), "user_satisfaction is"),
        (("--arm", "soft", "--reward", "answer_correct", "--target", "x=[]"), "no override is given"),
        (("--arm", "soft", "--estimand", "loop"), "--estimand loop is of targets; give one: --target"),
        (("--arm", "soft", "--reward", "answer_correct", "--estimand", "step", "--target", "skill=[policy=never]"),
         "take another one"),
    ],
)  # fmt: skip
def test_bad_words_on_a_run_are_refused(words: tuple[str, ...], says: str, run: Run) -> None:
    assert says in refused("estimate", str(run.path), *words)


def test_a_policy_with_a_memory_still_leaves_a_log_of_its_chances(run: Run) -> None:
    made = skg_bench.estimate(run, targets={"never": ["policy=never"]}, columns=REWARD, arm="wise", estimand="step")
    assert made.values[1].estimator == "ips"
    assert made.weights[1].mean == pytest.approx(1.0, abs=0.05)


def test_a_log_that_does_not_say_which_skill_failed_is_not_asked_about_targets(run: Run) -> None:
    assert "procedure_failed" in run.turns("tool")["serving"].to_pylist()
    words = ("estimate", str(run.path), "--arm", "tool", "--reward", "answer_correct")
    err = refused(*words, "--estimand", "step", "--target", "never=[policy=never]")
    assert "the procedure of a skill failed and the LLM answered; the log does not say which skill" in err
    assert call(*words, "--policy", "half=0.5")[0] == 0


@pytest.mark.parametrize("arm", ["soft", "both"])
def test_a_propensity_that_was_changed_is_found_with_its_turn(arm: str, run: Run, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "changed"
    shutil.copytree(run.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    compositions = manifest["compositions"]
    if arm == "soft":
        compositions[arm]["policy"]["temperature"] = 0.06  # the log was made at .05
    else:
        compositions[arm]["policy"]["second"]["threshold"] = 0.7  # and at .6
    other = changed(Run(folder), compositions=compositions)
    with pytest.raises(UsageError, match=rf"arm '{arm}', user \d+, turn \d+: its policy does this with probability"):
        skg_bench.estimate(other, targets={"never": ["policy=never"]}, columns=REWARD, arm=arm, estimand="step")
