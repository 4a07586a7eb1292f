"""Models that read and write texts, chosen for a curator; what a run will ask, and what makes two runs the same."""

from pathlib import Path

import pytest

from skg_bench.app.compose import Composed, compose
from skg_bench.app.launch import prepare
from skg_bench.app.prepared_run import PreparedRun
from skg_bench.asking.prompts import PROMPTS
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call

MODEL = ("curator=reflecting", "arms={model: [], asked: [curator=skg]}", "reference=asked", "users=3", "weeks=1")


def composed(*overrides: str) -> Composed:
    return compose([*MODEL, *overrides])


def prepared(*overrides: str) -> PreparedRun:
    return prepare(composed(*overrides))


def refused(*overrides: str) -> str:
    with pytest.raises(UsageError) as error:
        prepared(*overrides)
    return str(error.value)


def test_an_option_of_llm_is_chosen_for_a_curator_like_an_option_of_a_group() -> None:
    for text in ("curator.llm=scripted", "+curator.llm=scripted"):
        arms = composed(text, "curator.llm.script=obedient").arms
        assert arms["model"]["curator"]["llm"]["script"] == "obedient"
        assert "llm" not in arms["asked"]["curator"]
    own = compose([*MODEL, "arms={model: [curator.llm=scripted, curator.llm.latency_ms=7], asked: [curator=skg]}"])
    assert own.arms["model"]["curator"]["llm"]["latency_ms"] == 7


def test_a_policy_has_a_model_of_its_own_beside_the_curators() -> None:
    asked = composed("policy=llm_chooser", "policy.llm=recorded", "policy.llm.model=small", "curator.llm.latency_ms=7")
    policy, curator = (asked.arms["model"][seam]["llm"] for seam in ("policy", "curator"))
    assert policy["_target_"].endswith(".RecordedModel")
    assert policy["llm"]["llm"]["model"] == "small"
    assert (curator["_target_"].rpartition(".")[2], curator["latency_ms"]) == ("Scripted", 7)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("curator.llm=scriptd",), "llm has no such option; did you mean 'scripted'"),
        (("curator.llm=7",), "llm has no such option"),
        (("router.llm=scripted",), "there is no key 'router.llm'"),
        (("curator.llm=simulated",), "curator.llm=Simulated draws what it costs to answer users and writes no text"),
        (("llm=scripted",), "llm=Scripted is a model of texts. It answers users as llm=in_words"),
        (("curator.llm._target_=os.system",), "is refused, as no yaml of curator names it there"),
        (("curator.llm._target_=skg_bench.curator.skg.SKG",), "is refused, as no yaml of curator names it there"),
        (("curator.llm.script=wise",), "curator.llm.script='wise' must be one of learner, obedient, reader"),
        (("curator.prompts=nowhere",), "there is no prompt file nowhere/reflector.md"),
        (("policy.llm=scripted",), "there is no key 'policy.llm'"),
        (("policy=llm_chooser", "policy.llm=scriptd"), "llm has no such option; did you mean 'scripted'"),
        (("policy=llm_chooser", "policy.llm=simulated"), "policy.llm=Simulated draws what it costs to answer users"),
        (("policy=llm_chooser", "policy.prompts=nowhere"), "there is no prompt file nowhere/chooser.md"),
    ],
)
def test_what_no_curator_can_ask_is_refused_before_anything_runs(overrides: tuple[str, ...], says: str) -> None:
    assert says in refused(*overrides)


def test_prompt_files_are_part_of_what_a_run_is(tmp_path: Path) -> None:
    """Each run of a process reads them again."""
    for role in ("reflector", "skill_manager"):
        (tmp_path / f"{role}.md").write_bytes((PROMPTS / f"{role}.md").read_bytes())
    before = prepared(f"curator.prompts={tmp_path}")
    assert prepared(f"curator.prompts={tmp_path}").identity == before.identity
    file = tmp_path / "reflector.md"
    file.write_text(file.read_text("utf-8").replace("Reflect on", "Think about"), "utf-8")
    after = prepared(f"curator.prompts={tmp_path}")
    assert after.identity != before.identity
    chooser = prepared(f"curator.prompts={tmp_path}", "policy=llm_chooser").data["prompts.model"]
    assert chooser != after.data["prompts.model"]
    assert set(after.data["prompts.model"].split()) < set(chooser.split())
    assert before.data.keys() == after.data.keys() == {"simulator", "embedder", "prompts.model"}


def test_a_dry_run_counts_asks_tokens_and_cost_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    _, shown, _ = call("run", *MODEL, "--dry-run")
    rows = [line.split() for line in shown.splitlines() if "scripted/learner" in line]
    assert [row[2] for row in rows] == ["reflector", "skill_manager"]
    asks = int(rows[0][3].replace(",", ""))
    assert asks > 5
    assert list(tmp_path.iterdir()) == []
    code, shown, _ = call("run", *MODEL, "out=run")
    assert code == 0
    assert f"model had {asks} learning jobs (" in shown
    jobs = Run(tmp_path / "run").learning("model")
    assert jobs.num_rows == asks
    columns = {4: "tokens_in", 5: "tokens_out"}  # of all users, and of the very model that was asked
    for at, name in columns.items():
        assert sum(int(row[at].replace(",", "")) for row in rows) == sum(jobs[name].to_pylist())
    tokens_in, tokens_out = (int(rows[0][at].replace(",", "")) for at in columns)
    for at, longest in ((6, tokens_out), (7, asks * 1000)):  # 3 and 15 USD a million
        assert float(rows[0][at]) == pytest.approx((3 * tokens_in + 15 * longest) / 1e6, abs=0.006)


def test_a_dry_run_counts_each_model_of_an_arm_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    policy = ("policy=llm_chooser", "policy.llm.script=obedient", "policy.llm.usd_per_million_in=1000")
    both = (*MODEL, *policy, "serving=prompted", "arms={model: [], asked: [policy=never]}")
    _, shown, _ = call("run", *both, "--dry-run")
    rows = [line.split() for line in shown.splitlines() if "scripted/" in line and line.startswith("model")]
    assert {(row[1], row[2]) for row in rows} == {
        ("scripted/obedient", "chooser"), ("scripted/learner", "reflector"), ("scripted/learner", "skill_manager")
    }  # fmt: skip
    (chooser,) = (row for row in rows if row[2] == "chooser")
    tokens_in, tokens_out = (int(chooser[at].replace(",", "")) for at in (4, 5))
    assert float(chooser[6].replace(",", "")) == pytest.approx((1000 * tokens_in + 15 * tokens_out) / 1e6, abs=0.006)
