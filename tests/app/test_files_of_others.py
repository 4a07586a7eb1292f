"""Files that come from somebody else, cases and runs, choose among components and do nothing else."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.trust import COMMAND_LINE, FromFile, naming_file
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.embedder.sentence_transformer import SentenceTransformer
from skg_bench.runfolder.run import Run
from tests.app.lab import declare, forget, write
from tests.app.test_cli import call, refused
from tests.runs import changed as rewritten

CASE = Path(__file__).resolve().parents[1] / "regressions" / "low_threshold.json"
FIND, WRITE = "skg_bench.core.package._find", "skg_bench.analysis.summary.replace_text"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of an installed package that adds components."""
    write(tmp_path / "site" / "victim" / "__init__.py", "")
    (tmp_path / "site" / "victim" / "conf").mkdir()
    declare(tmp_path / "site", "victim")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    forget()
    yield tmp_path / "site" / "victim"
    for name in [name for name in sys.modules if name.split(".")[0] == "victim"]:
        del sys.modules[name]
    forget()


def writes(path: Path, text: str) -> dict[str, Any]:
    """A node that writes a file where it is made, by functions of this package."""
    return {"_target_": WRITE, "path": {"_target_": FIND, "name": str(path)}, "text": text}


def changed(nodes: dict[str, Any], values: Mapping[str, Mapping[str, Any]]) -> None:
    """Set values in the nodes of seams; a node with a `_target_` replaces the one that is there."""
    for seam, given in values.items():
        nodes[seam] = dict(given) if "_target_" in given else {**nodes[seam], **given}


def case(tmp_path: Path, **place: Mapping[str, Any]) -> Path:
    """A case file with other values in the components of its place."""
    read = json.loads(CASE.read_text("utf-8"))
    changed(read["place"], place)
    path = tmp_path / "case.json"
    path.write_text(json.dumps(read), "utf-8")
    return path


def foreign(run: Run, tmp_path: Path, **config: Mapping[str, Any]) -> Path:
    """A copy of a run with other values in the components of its manifest."""
    copied = tmp_path / "run"
    shutil.copytree(run.path, copied)
    manifest = json.loads((copied / "manifest.json").read_text("utf-8"))
    changed(manifest["config"], config)
    return rewritten(Run(copied), config=manifest["config"]).path


def test_a_case_cannot_write_a_module_into_a_package_and_run_it(plugin: Path, tmp_path: Path) -> None:
    module, ran = plugin / "written.py", tmp_path / "ran"
    code = f"import subprocess\nsubprocess.run(['touch', {str(ran)!r}])\nclass Command:\n    pass\n"
    command = {"_target_": "victim.written.Command"}
    first = case(tmp_path, simulator={"corpus": writes(module, code)}, embedder=command)
    call("counterexample", "replay", str(first))
    assert not module.exists()
    assert not ran.exists()
    error = refused("counterexample", "replay", str(first))
    assert f"{first}: simulator.corpus._target_='{WRITE}' is refused" in error
    module.write_text(code, "utf-8")
    error = refused("counterexample", "replay", str(case(tmp_path, embedder=command)))
    assert f"{first}: embedder._target_='victim.written.Command' is refused" in error
    assert not ran.exists()


def test_a_manifest_cannot_write_a_file(tiny_run: Run, tmp_path: Path) -> None:
    written = tmp_path / "written"
    evil = foreign(tiny_run, tmp_path, simulator={"corpus": writes(written, "x")})
    code, _, error = call("skillbook", "convert", str(evil), "--arm", "skg", "--out", str(tmp_path / "out"))
    assert not written.exists()
    assert code == 2
    assert f"{evil}: simulator.corpus._target_='{WRITE}' is refused" in error


@pytest.mark.parametrize(
    ("said", "told"), [("arm 'low': of no use", "a: arm 'low': of no use"), ("a: of no use", "a: of no use")]
)
def test_a_file_is_named_once_however_short_its_name(said: str, told: str) -> None:
    with pytest.raises(UsageError) as error, naming_file(FromFile("a", trusted=False)), naming_file(COMMAND_LINE):
        raise UsageError(said)
    assert str(error.value) == told


def test_an_interpolation_in_a_case_makes_no_component(tmp_path: Path) -> None:
    written = tmp_path / "written"
    node = f"{{_target_: {WRITE}, path: {{_target_: {FIND}, name: '{written}'}}, text: x}}"
    call("counterexample", "replay", str(case(tmp_path, simulator={"corpus": f"${{oc.create:{node}}}"})))
    assert not written.exists()


def test_an_interpolation_in_a_case_reads_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPIK_API_KEY", "hidden-key")
    error = refused("counterexample", "replay", str(case(tmp_path, embedder={"path": "${oc.env:OPIK_API_KEY}"})))
    assert "hidden-key" not in error


def test_a_composition_of_a_case_cannot_name_a_folder_of_yamls_of_its_own(tmp_path: Path) -> None:
    written = tmp_path / "written"
    write(tmp_path / "conf" / "any.yaml", f"_target_: {WRITE}\npath: {{_target_: {FIND}, name: {written}}}\ntext: x\n")
    read = json.loads(case(tmp_path).read_text("utf-8"))
    seam = "/".join([".."] * 20) + str(tmp_path / "conf")
    read["sides"]["arm"]["compositions"]["low"][seam] = writes(written, "x")
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(read), "utf-8")
    assert "is refused" in refused("counterexample", "replay", str(path))
    assert not written.exists()


# ------------------------------------------------------------------------------------- code that a model brings along

JINA = {
    "_target_": "skg_bench.embedder.sentence_transformer.SentenceTransformer", "model": "somebody/model",
    "revision": None, "task": None, "dimensions": None, "max_tokens": None, "device": "cpu", "trust_remote_code": True,
}  # fmt: skip
REFUSED = (
    "sets embedder.model='somebody/model', which reads files of this machine and reaches an address of the network"
)
TOLD = "trusted by --trust:\n  embedder.model='somebody/model' reads files"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each model that was opened was trusted; none is opened in fact."""
    seen: list[bool] = []

    def embed(self: SentenceTransformer, texts: Sequence[str], progress: object = None) -> I16:
        seen.append(self.trust_remote_code)
        return Precomputed(None).embed(texts)

    monkeypatch.setattr(SentenceTransformer, "embed", embed)
    monkeypatch.setattr(SentenceTransformer, "digest", "as written")
    return seen


def test_a_case_runs_a_models_own_code_only_where_the_command_says_so(tmp_path: Path, loaded: list[bool]) -> None:
    words = ["counterexample", "replay", str(case(tmp_path, embedder=JINA))]
    error = refused(*words)
    assert REFUSED in error
    assert "(and 1 more such value)" in error
    assert "then add --trust" in error
    assert loaded == []
    code, _, told = call(*words, "--trust")
    assert code == 0
    assert TOLD in told
    assert "embedder.trust_remote_code=True runs code with your rights" in told
    assert set(loaded) == {True}


def test_what_is_hidden_where_no_component_takes_it_is_refused_too(tmp_path: Path) -> None:
    read = json.loads(CASE.read_text("utf-8"))
    read["sides"]["reference"]["compositions"]["skg"]["router"]["deep"] = [{"inner": {"trust_remote_code": "yes"}}]
    path = tmp_path / "case.json"
    path.write_text(json.dumps(read), "utf-8")
    assert "router.deep=[{'inner': {'trust_remote_code': 'yes'}}], which may reach" in refused(
        "counterexample", "replay", str(path)
    )


def test_a_manifest_runs_a_models_own_code_only_where_the_command_says_so(
    tiny_run: Run, tmp_path: Path, loaded: list[bool]
) -> None:
    run = str(foreign(tiny_run, tmp_path, embedder=JINA))
    for words in (
        ["skillbook", "convert", run, "--arm", "skg", "--out", str(tmp_path / "out"), "--user", "0"],
        ["counterexample", "find", run, "--arm", "skg"],
    ):
        assert REFUSED in refused(*words)
        assert loaded == []
        code, _, told = call(*words, "--trust")
        assert code == 0
        assert TOLD in told
        assert set(loaded) == {True}
        loaded.clear()


def test_a_run_of_ones_own_words_needs_no_flag(tmp_path: Path, loaded: list[bool]) -> None:
    words = ["embedder=sentence_transformer", "embedder.trust_remote_code=true", f"out={tmp_path / 'run'}"]
    assert call("run", "users=1", "weeks=1", "arms={skg: []}", "reference=skg", *words)[0] == 0
    assert set(loaded) == {True}


# -------------------------------------------------------------------------------------------------- the environment


def test_a_secret_of_the_environment_cannot_be_asked_for_in_an_override(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPIK_API_KEY", "hidden-key")
    error = refused("run", "users=1", "weeks=1", "question=${oc.env:OPIK_API_KEY}")
    assert "question='${oc.env:OPIK_API_KEY}' is refused" in error
    assert "hidden-key" not in error
    assert not list(elsewhere.iterdir())
