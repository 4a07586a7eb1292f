"""A reranker and an assistant, each added by one file and one yaml: the examples of docs/plugins.md, in a package."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.gate.panel import panel
from skg_bench.app import gate, run_identity
from skg_bench.app.compose import compose
from skg_bench.app.packages import packages
from skg_bench.core.errors import UsageError
from tests.analysis.gate.panels import made
from tests.app.gate_runs import ANCHORS
from tests.app.lab import declare, forget, write
from tests.app.test_cli import ENVIRONMENT, call
from tests.conformance.shared import plan_beside
from tests.conformance.suite import Case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"


ONE_AFTER_ANOTHER = """import json, sys
from skg_bench.app.cli import app
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
    print("ended", flush=True)
"""


def example() -> dict[str, str]:
    """Code blocks of the page that name their file in the first line."""
    blocks = re.findall(r"```(?:python|yaml|toml)\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(blocks)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in example().items():
        write(tmp_path / name, text)
    declare(tmp_path, "mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path
    forget()


@pytest.mark.req("K03")
def test_the_pages_reranker_is_listed_and_runs_as_an_arm(mine: Path, bare: None) -> None:
    assert set(example()) == {
        "mine/freshness.py", "mine/conf/reranker/freshness.yaml", "pyproject.toml", "mine/echo.py",
        "mine/one_call.py", "mine/conf/curator/one_call.yaml",
        "mine/conf/assistant/echo.yaml", "mine/errands.py", "mine/errands.toml", "mine/conf/simulator/errands.yaml",
        "mine/conf/signs/doorstep.yaml", "mine/conf/experiment/errands.yaml",
    }  # fmt: skip
    code, out, _ = call("list", "reranker")
    assert code == 0
    assert re.search(r"freshness +Prefers what was used lately", out)
    arms = "arms={skg: [], fresh: [reranker=freshness, reranker.weight=2.5], never: [policy=never]}"
    run = skg_bench.run(["users=2", "weeks=1", arms])
    assert run.turns("fresh", ["turn"]).num_rows > 0
    assert run.manifest["compositions"]["fresh"]["reranker"] == {"_target_": "mine.freshness.Freshness", "weight": 2.5}


def test_the_pages_proposer_is_short_public_and_learns(mine: Path, bare: None) -> None:
    code = example()["mine/one_call.py"]
    assert len([line for line in code.splitlines() if line.strip()]) < 30
    assert not re.search(r"(?<![\w])_[a-z]", code)  # no private name
    arms = "arms={learner: [], one_call: [curator=one_call], never: [policy=never]}"
    run = skg_bench.run(["experiment=guardian", "contrasts=[]", "users=2", "weeks=4", "reference=never", arms])
    jobs = run.learning("one_call")
    assert set(jobs["result"].to_pylist()) == {"applied", "unchanged"}
    assert min(jobs["cost_usd"].to_pylist()) > 0
    assert "ADD" in run.updates("one_call")["op"].to_pylist()


def test_the_pages_assistant_answers_beside_the_others(mine: Path, bare: None) -> None:
    arms = "arms={skg: [], echo: [assistant=echo], never: [policy=never]}"
    few = ("users=6", "weeks=1", "simulator.corpus=builtin_120", "simulator.volume_spread=0.2")
    run = skg_bench.run([*few, "policy.threshold=0.4", arms])
    turns = run.turns("echo", ["message", "user", "serving", "matched_skill"]).to_pandas()
    stored = turns["serving"] == "stored"
    assert stored.any()
    assert not (stored & ~turns.duplicated(["user", "message"])).any()
    assert turns["matched_skill"].isna().all()
    with pytest.raises(UsageError, match=r"arm 'echo': router=exact: router is a part of assistant=pipeline, and"):
        compose(["arms={never: [policy=never], echo: [assistant=echo, router=exact]}"])


def test_the_pages_components_are_played_beside_ours_in_the_conformance_tests(mine: Path) -> None:
    """As the page says: `pytest tests/conformance` runs those of installed packages, too."""
    every = [Case("router", "exact", "skg_bench"), Case("reranker", "freshness", "mine")]
    assert [arm.name for arm in plan_beside(every).arms] == ["router-exact-itself", "reranker-freshness-itself"]


SEER = """
from dataclasses import dataclass
from skg_bench.router.oracle import RightSkill

@dataclass(frozen=True)
class Seer(RightSkill):
    '''Knows which stored answer is right.'''
"""


def test_an_arm_that_a_package_tells_what_is_true_is_said_to_be_and_never_gated(mine: Path) -> None:
    """The gate knew our own oracles by their names, and a build with another one passed."""
    write(mine / "mine" / "seer.py", SEER)
    write(mine / "mine" / "conf" / "router" / "seer.yaml", "_target_: mine.seer.Seer\nnear: false\n")
    forget()
    arms = f"arms={{skg: [router=seer,policy=always,curator=everything], {ANCHORS}}}"
    run = ["run", "experiment=gate", "users=3", "weeks=2", "out=seen", arms]
    code, out, err = call(*run)
    assert code == 0, err
    assert "skg: a component of another package is told what is true (sees_truth)" in " ".join((out + err).split())
    assert skg_bench.Run("seen").manifest["told_truth"] == ["skg"]
    with pytest.raises(
        UsageError, match=r"arm 'skg' of seen has sees_truth in a component of another package, with whi"
    ):
        panel(skg_bench.Run("seen"), "skg")


@pytest.mark.parametrize("text", ["# errands.yaml\n# @package _global_\n", "question: Does it pay?\n"])
def test_an_experiment_without_its_first_line_is_refused_with_this_line(mine: Path, bare: None, text: str) -> None:
    """The page's own file, copied with the comment above it, asked Hydra to override another simulator."""
    file = mine / "mine" / "conf" / "experiment" / "errands.yaml"
    whole = file.read_text("utf-8")
    file.write_text(text + (whole if "package" in text else "arms: {never: [policy=never]}\n"), "utf-8")
    code, _, err = call("run", "experiment=errands")
    assert code == 2
    assert "Begin a file of an experiment or a profile with the line `# @package _global_`" in " ".join(err.split())


def test_the_code_of_an_added_package_is_in_the_identity(mine: Path) -> None:
    from skg_bench.app.run_identity import code_digest

    code_digest.cache_clear()
    before = code_digest()
    (mine / "mine" / "freshness.py").write_text("# changed", "utf-8")
    code_digest.cache_clear()
    assert code_digest() != before
    code_digest.cache_clear()


def test_code_that_an_added_package_imports_is_in_the_identity(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = mine / "mine" / "echo.py"
    file.write_text(f"from weights6 import WEIGHT\n{file.read_text('utf-8')}", "utf-8")
    digests = set()
    for weight in (1, 2):
        write(mine / f"site{weight}" / "weights6.py", f"WEIGHT = {weight}\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(mine / f"site{weight}"))
            run_identity.code_digest.cache_clear()
            digests.add(run_identity.code_digest())
    assert len(digests) == 2


def test_commit_and_dirty_state_of_an_added_package_are_in_the_manifest(mine: Path, bare: None) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", str(mine), "-c", "user.name=n", "-c", "user.email=e", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def known(out: str) -> dict[str, str | None]:
        arms = "arms={fresh: [reranker=freshness], never: [policy=never]}"
        run = skg_bench.run(["users=1", "weeks=1", arms, f"out={out}"])
        packages: dict[str, dict[str, str | None]] = run.manifest["packages"]
        assert "mine" in packages
        return packages["mine"]

    assert known("unknown") == {"version": "1.0", "commit": None, "dirty": None}
    git("init", "-q")
    git("add", "mine", "pyproject.toml")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert known("clean") == {"version": "1.0", "commit": commit, "dirty": None}
    (mine / "unrelated.txt").write_text("beside the package", "utf-8")
    assert run_identity.provenance()["packages"]["mine"]["dirty"] is None
    states = set()
    for text in ("# one", "# two"):
        (mine / "mine" / "new.py").write_text(text, "utf-8")
        states.add(run_identity.provenance()["packages"]["mine"]["dirty"])
        assert str(mine / "mine" / "new.py") in run_identity.uncommitted()
    assert None not in states
    assert len(states) == 2


def test_drift_counts_the_commits_of_each_package_in_its_own_repository(mine: Path) -> None:
    """Commits beside the package, and those of another repository, are no change of it."""

    def commit(file: str) -> str:
        (mine / file).write_text(f"# {file}", "utf-8")
        git = ("git", "-C", str(mine), "-c", "user.name=n", "-c", "user.email=e")
        for words in (("add", file), ("commit", "-q", "-m", file)):
            subprocess.run([*git, *words], check=True, capture_output=True)
        return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    subprocess.run(["git", "init", "-q", str(mine)], check=True)
    first, *_, last = [commit(file) for file in ("mine/one.py", "beside.txt", "mine/two.py", "mine/three.py")]
    assert run_identity.commits_between("mine", first, last) == 2
    assert run_identity.commits_between("mine", last, last) == 0
    for name, old, new in (("mine", first, "f" * 40), ("mine", None, last), ("other", first, last),
                           ("skg_bench", first, last)):  # fmt: skip
        assert run_identity.commits_between(name, old, new) is None
    still = np.zeros((2, 8), np.bool_)
    panels = [
        replace(made(still, still, "same"), made={"commit": core, "packages": {"mine": {"commit": mines}}})
        for core, mines in (("c", first), ("d", last))
    ]
    lines = [f"commit.mine: {first} -> {last} (2 commits of mine)", "commit.skg_bench: c -> d"]
    assert gate._commits(*panels) == lines
    assert gate._commits(panels[0], panels[0]) == []


def test_the_pages_reranker_installs_as_it_is_printed(tmp_path: Path) -> None:
    for name, text in example().items():
        write(tmp_path / "source" / name, text)
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--target"]
    subprocess.run([sys.executable, *install, str(site), "."], cwd=tmp_path / "source", check=True, timeout=300)
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{site}:{ENVIRONMENT['PYTHONPATH']}"}

    arms = "arms={fresh: [reranker=freshness], never: [policy=never]}"
    commands = [
        ["list", "reranker"],
        ["list", "reranker.freshness"],
        ["run", "reranker=freshness", "users=1", "weeks=1", "workers=1", arms, "out=here"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    listed, described, played = done.stdout.split("ended\n")[:3]
    assert re.search(r"freshness +Prefers what was used lately", listed)
    assert "weight" in described
    assert "fresh" in played
    manifest = json.loads((tmp_path / "here" / "manifest.json").read_text("utf-8"))
    assert manifest["packages"] == {"mine": {"version": "0.1.0", "commit": None, "dirty": None}}


def test_a_package_that_does_not_declare_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no such option"):
        compose(["reranker=freshness"])


@pytest.mark.parametrize(
    ("name", "prepare", "reason"),
    [
        ("nowhere", {}, "cannot be imported"),
        ("bare", {"bare/__init__.py": ""}, "has no folder conf/"),
        ("odd", {"odd/__init__.py": "", "odd/conf/rerankr/x.yaml": ""}, "did you mean 'reranker'?"),
        ("same", {"same/__init__.py": "", "same/conf/reranker/linear.yaml": ""}, "exists already"),
    ],
)
def test_a_package_that_declares_itself_wrongly_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, prepare: dict[str, str], reason: str
) -> None:
    for file, text in prepare.items():
        write(tmp_path / file, text)
    declare(tmp_path, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    with pytest.raises(UsageError, match=re.escape(reason)):
        compose([])
    forget()


def test_a_single_module_may_declare_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "alone.py", "")
    write(tmp_path / "conf" / "reranker" / "lone.yaml", "_target_: alone.Lone\n")
    declare(tmp_path, "alone")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    assert [package.name for package in packages()] == ["skg_bench", "alone"]
    forget()
