"""Files of findings: what voids them, and the command that makes them again."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.comparison.findings import (
    Evidence,
    Finding,
    FindingsFile,
    FindingSource,
    Origins,
    digest_of,
    files,
)
from skg_bench.app import claim_files, claim_inputs
from skg_bench.app.api import run as simulate
from skg_bench.app.claim_inputs import analysis, refusal, surroundings
from skg_bench.app.cli import app
from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA, EXPERIMENTS
from skg_bench.study.guardian import drawing
from tests.runs import tables_alone

ROOT = DATA.parent
FOUND = Finding("K24", "a figure", "52 skills", "contradictory", "It is not so.", Evidence("do it", "abc", 12, 4, (0,)))
OVERRIDES = ("experiment=gate", "users=2")


@pytest.fixture(scope="module")
def whole() -> FindingsFile:
    """A file that follows from what stands in the checkout."""
    source = claim_inputs._now(OVERRIDES)
    assert source is not None
    return FindingsFile("grid", Origins((source,), analysis("grid"), "decided"), (FOUND,))


def test_a_file_counts_while_all_that_it_follows_from_is_as_it_was(whole: FindingsFile) -> None:
    assert refusal(whole) == ""
    assert refusal(replace(whole, made=replace(whole.made, surroundings=surroundings()))) == ""


def test_each_input_that_changes_voids_a_file(whole: FindingsFile) -> None:
    made, (source,) = whole.made, whole.made.sources
    dirty = replace(FOUND, evidence=replace(FOUND.evidence, commit="abc, with uncommitted changes"))
    other = replace(source, configuration="0" * 32)
    data = replace(source, data={**source.data, "simulator": "another"})
    gone = replace(source, overrides=("experiment=gate", "policy=abolished"))
    for changed, reason in (
        (replace(whole, findings=(FOUND, dirty)), "code that is in no commit"),
        (replace(whole, made=replace(made, decisions="")), "does not say what it was made from"),
        (replace(whole, made=replace(made, sources=())), "does not say what it was made from"),
        (replace(whole, made=replace(made, analysis="0" * 32)), "its analysis has changed"),
        (replace(whole, made=replace(made, sources=(source, other))), "its configuration has changed"),
        (replace(whole, made=replace(made, sources=(gone,))), "its configuration has changed"),
        (replace(whole, made=replace(made, sources=(data,))), "its data have changed since: simulator"),
    ):
        assert reason in refusal(changed)


def test_a_file_about_a_dataset_that_is_not_on_this_machine_counts_by_its_configuration(
    whole: FindingsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("SKG_BENCH_SHARED", "XDG_CACHE_HOME"):
        monkeypatch.setenv(home, str(tmp_path))
    source = claim_inputs._now((*OVERRIDES, "simulator=clinc150", "embedder=hashing"))
    assert source is not None
    assert "simulator" not in source.data
    there = replace(source, data={**source.data, "simulator": "of the dataset"})
    assert refusal(replace(whole, made=replace(whole.made, sources=(there,)))) == ""
    other = replace(there, configuration="0" * 32)
    assert "configuration has changed" in refusal(replace(whole, made=replace(whole.made, sources=(other,))))


def test_seed_salt_and_how_a_run_is_made_are_no_configuration_and_all_else_is() -> None:
    config = {"users": 2, "seed": 0, "salt": 0, "workers": 1, "utility": {"offer": 0.05}}

    def digest(**changed: object) -> str:
        return FindingSource.of(
            [], {"config": {**config, **changed}, "compositions": {}, "beside": []}, {}
        ).configuration

    assert digest(seed=3, salt="draw", workers=2, out="here") == digest()
    assert digest(utility={"offer": 0.0}) != digest()
    moved, other = ({"_target_": f"skg_bench.{place}", "near": 1} for place in ("there.Users", "here.Others"))
    assert digest(simulator=moved) == digest(simulator={"_target_": "skg_bench.here.Users", "near": 1})
    assert digest(simulator=[moved]) != digest(simulator=[other])
    assert FindingSource.of(
        ["seed=3", "out=x", "a=1"], {"config": {}, "compositions": {}, "beside": []}, {}
    ).overrides == ("a=1",)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an experiment that imports one module beside it."""
    folder = tmp_path / "experiments" / "toy"
    folder.mkdir(parents=True)
    (folder / "analysis.py").write_text("from experiments.toy.part import x\ny = x + 1\n", "utf-8")
    (folder / "part.py").write_text("def x():\n    return 1\n", "utf-8")
    (folder / "prior.yaml").write_text("a: 1\n", "utf-8")
    monkeypatch.setattr(claim_inputs, "EXPERIMENTS", tmp_path / "experiments")
    return folder


def _digest() -> str:
    for kept in (analysis, claim_inputs._statements):
        kept.cache_clear()
    return analysis("toy")


@pytest.mark.parametrize(
    ("file", "text", "counts"),
    [
        ("part.py", 'def x():\n    """One."""\n    return 1  # one\n', False),
        ("part.py", "def x():\n    return 2\n", True),
        ("analysis.py", "from experiments.toy.part import x\ny = x + 2\n", True),
        ("prior.yaml", "a: 2\n", True),
        ("another.py", "z = 1\n", False),  # nobody imports it
        ("part.py", "import math\n\n\ndef x():\n    from math import pi\n\n    return 1\n", False),
        ("part.py", "if TYPE_CHECKING:\n    import math\n\n\ndef x():\n    return 1\n", False),
        ("analysis.py", "from experiments.toy.part import x\ny = x - 1\n", True),
    ],
)
def test_code_that_an_analysis_runs_and_priors_count_and_words_do_not(
    toy: Path, file: str, text: str, counts: bool
) -> None:
    before = _digest()
    (toy / file).write_text(text, "utf-8")
    assert (_digest() != before) == counts


def test_a_module_that_is_moved_and_a_definition_that_goes_into_another_change_nothing(toy: Path) -> None:
    before = _digest()
    (toy / "part.py").rename(toy / "moved.py")
    (toy / "analysis.py").write_text("from experiments.toy.moved import x\ny = x + 1\n", "utf-8")
    assert _digest() == before
    (toy / "analysis.py").write_text("from experiments.toy.moved import x, y\n", "utf-8")
    (toy / "moved.py").write_text("def x():\n    return 1\n\n\ny = x + 1\n", "utf-8")
    assert _digest() == before
    (toy / "moved.py").write_text("def x():\n    return 1\n\n\ny = x + 2\n", "utf-8")
    assert _digest() != before


def test_decisions_are_those_of_the_arms_and_not_of_how_the_run_was_made(tmp_path: Path, bare: None) -> None:
    made = [
        simulate(["arms={skg: []}", "reference=skg", "users=2", "weeks=2", "policy.threshold=0.3", *more])
        for more in (
            [f"out={tmp_path / 'a'}", "cohort=512"],
            [f"out={tmp_path / 'b'}", "cohort=1"],
            [f"out={tmp_path / 'c'}", "reranker=identity"],
        )
    ]
    same, again, other = (claim_files.decisions(run.path) for run in made)
    assert same == again != other


def test_every_file_that_is_committed_can_be_made_again() -> None:
    recipes = claim_files.recipes()
    assert {file.experiment for file in files(ROOT / "reports" / "claims")} <= set(recipes)
    for name, recipe in recipes.items():
        assert any(EXPERIMENTS.glob(f"**/{name}/analysis.py"))
        assert recipe.analyse.endswith("--write reports")
        assert "{runs}" in str(claim_files._out(recipe.small))


def told(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["claims", *words])
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def test_the_plan_says_minutes_and_commands_and_does_nothing(tmp_path: Path) -> None:
    text = told("--make", "--dry-run", "skg_parameters", "locking", "--runs", str(tmp_path / "runs"))
    total = sum(claim_files.recipes()[name].minutes for name in ("skg_parameters", "locking"))
    assert f"about {total:g} CPU minutes in all" in text
    runs = [
        run for run in claim_files.recipes()["skg_parameters"].runs if run.startswith("run experiment=skg_sensitive")
    ]
    assert text.count("  skg-bench run experiment=skg_sensitive") == 1 + len(runs)  # and the small one
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--make", "skg_parameter"], "did you mean 'skg_parameters'"), (["--check", "K24"], "no findings are made by"),
     (["--make", "--check"], "give one of them")],
)  # fmt: skip
def test_what_cannot_be_made_is_one_message_and_exit_code_2(words: list[str], message: str) -> None:
    assert message in told(*words, code=2)


@pytest.fixture
def recipe_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Makes an experiment's recipe the only one, in a folder of its own; returns the list of commands carried out."""
    carried: list[str] = []

    def only(name: str, **recipe: object) -> list[str]:
        (tmp_path / "claims.yaml").write_text(json.dumps({name: {"minutes": 1, **recipe}}), "utf-8")
        return carried

    def carry_out(command: str) -> None:
        carried.append(command)
        _here(command, tmp_path)

    monkeypatch.setattr(claim_files, "RECIPES", tmp_path / "claims.yaml")
    monkeypatch.setattr(claim_files, "CHECKOUT", tmp_path)
    monkeypatch.setattr(claim_files, "refusal", lambda file: refusal(_clean(file)))  # the checkout may be dirty
    monkeypatch.setattr(claim_files, "_carry_out", carry_out)
    return only


def test_files_are_made_kept_and_checked(
    tmp_path: Path, recipe_of: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seeds of a small experiment, by the commands of a recipe."""
    arms = {"skg": [], "never": ["policy=never"], "oracle": ["router=oracle"], "other": ["policy.threshold=0.7"]}
    asks = "{kind: effect, arm: other, reference: skg, asks: 'K11: a threshold of 0.7'}"
    run = f"run users=2 weeks=1 reference=skg 'arms={json.dumps(arms)}' \"contrasts=[{asks}]\" policy.threshold=0.3"
    carried = recipe_of(
        "skg_parameters", small=f"{run} out={{runs}}/small", runs=[f"{run} seed={i} out={{runs}}/{i}" for i in (0, 1)],
        analyse="experiment skg_parameters {runs}/0 {runs}/1 --write reports", reduced=[],
    )  # fmt: skip
    folder = tmp_path / "kept"
    with tables_alone():
        assert "took" in told("--make", "--runs", str(folder))
    (file,) = files(tmp_path / "reports" / "claims")
    assert file.made.surroundings == surroundings()
    assert file.findings[0].evidence.seeds == (0, 1)
    assert len(file.findings[0].by_seed) == 2
    commands = claim_files.recipes()["skg_parameters"].commands(folder)
    assert carried == commands
    with tables_alone():
        told("--make", "--runs", str(folder))
    assert carried == [*commands, commands[-1]]  # runs are read, not made again
    assert "skg_parameters: counts" in told("--check")
    monkeypatch.setattr(claim_files, "decisions", lambda folder: "f" * 32)
    monkeypatch.setattr(claim_files, "_carry_out", lambda command: None)
    assert "a small run decides otherwise" in told("--check", code=2)
    manifest = folder / "small" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"code": "', '"code": "0'), "utf-8")
    with pytest.raises(UsageError, match="were made by different code"):
        claim_files._check_one_code(commands)


def test_files_are_made_of_kept_draws_without_making_one(
    tmp_path: Path, recipe_of: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kept"
    recipe_of("generic", runs=[], small="experiment generic --draws 1 --out {runs}/small users=2 workers=1",
              analyse="experiment generic --draws 2 --out {runs}/all users=2 workers=1 --write reports",
              reduced=[])  # fmt: skip
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told("--make", "--runs", str(folder))
    (file,) = files(tmp_path / "reports" / "claims")
    for manifest in folder.glob("*/manifest.json"):  # as if an earlier commit had made them
        content = json.loads(manifest.read_text("utf-8"))
        manifest.write_text(json.dumps({**content, "code": "earlier", "commit": "abc", "dirty": None}), "utf-8")
    monkeypatch.setattr(drawing, "lives", lambda whole, draw: pytest.fail("a draw is made"))
    told("--make", "--runs", str(folder))
    (again,) = files(tmp_path / "reports" / "claims")
    assert again.made == file.made
    assert {finding.evidence.commit for finding in again.findings} == {"abc"}
    assert [finding.measured for finding in again.findings] == [finding.measured for finding in file.findings]
    manifest = folder / "small" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace("earlier", "other"), "utf-8")
    assert "were made by different code" in told("--make", "--runs", str(folder), code=2)


def test_an_analysis_that_was_only_rewritten_is_known_by_what_it_finds_in_a_reduced_study(
    tmp_path: Path, recipe_of: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    little = "experiment generic --draws 1 --out {runs}/little users=2 workers=1"
    recipe_of("generic", runs=[], small=little, analyse=f"{little} --write reports",
              reduced=["experiment generic --draws 1 --out {runs}/one users=2 workers=1 --write {runs}/found"],
    )  # fmt: skip
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    told("--make", "--runs", str(tmp_path / "kept"))
    (file,) = files(tmp_path / "reports" / "claims")
    monkeypatch.setattr(claim_inputs, "analysis", lambda name: "rewritten")
    monkeypatch.setattr(claim_files, "analysis", lambda name: "rewritten")
    assert refusal(_clean(file)) == claim_inputs.REWRITTEN
    with monkeypatch.context() as other:
        other.setattr(claim_files, "digest_of", lambda found: digest_of(replace(found, findings=())))
        assert claim_inputs.REWRITTEN in told("--check", code=2)
    (after,) = files(tmp_path / "reports" / "claims")
    assert after.made.analysis == file.made.analysis
    assert "was rewritten, and finds the same" in told("--check")
    (after,) = files(tmp_path / "reports" / "claims")
    assert after.made.analysis == "rewritten"


def test_a_digest_of_findings_sees_figures_and_verdicts_and_not_who_found_them() -> None:
    file = next(file for file in files(ROOT / "reports" / "claims") if file.experiment == "skg_parameters")
    first, *rest = file.findings
    assert isinstance(first.measured, Measured)

    def digest(finding: Finding) -> str:
        return digest_of(replace(file, findings=(finding, *rest)))

    was = digest_of(file)
    assert digest(replace(first, evidence=replace(first.evidence, commit="f" * 40, command="by hand"))) == was
    for other in (
        replace(first, measured=replace(first.measured, value=first.measured.value * (1 + 1e-6))),
        replace(first, words=f"{first.words} Not."),
        replace(first, by_seed=(*first.by_seed, 0.0)),
        replace(first, evidence=replace(first.evidence, users=first.evidence.users + 1)),
    ):
        assert digest(other) != was


def _here(command: str, root: Path) -> None:
    """A command in this process: starting one takes seconds."""
    command = command.replace("--write reports", f"--write {shlex.quote(str(root / 'reports'))}")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output


def test_a_command_that_fails_is_told() -> None:
    with pytest.raises(UsageError, match="ended with exit code 2; mend that"):
        claim_files._carry_out("claims --format nonsense")


def _clean(file: FindingsFile) -> FindingsFile:
    cleaned = tuple(replace(f, evidence=replace(f.evidence, commit="abc")) for f in file.findings)
    return replace(file, findings=cleaned)
