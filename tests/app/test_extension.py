"""A reranker added by one file and one yaml: the README's own example, in a temporary package."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app.compose import compose
from skg_bench.app.packages import packages
from skg_bench.core.errors import UsageError
from tests.app.lab import declare, forget, write
from tests.app.test_cli import call

README = Path(__file__).resolve().parents[2] / "README.md"


def example() -> dict[str, str]:
    """Code blocks of the README that name their file in the first line."""
    blocks = re.findall(r"```(?:python|yaml|toml)\n# (\S+)\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
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
def test_the_readmes_reranker_is_listed_and_runs_as_an_arm(mine: Path) -> None:
    assert set(example()) == {"mine/freshness.py", "mine/conf/reranker/freshness.yaml", "pyproject.toml"}
    code, out, _ = call("list", "reranker")
    assert code == 0
    assert re.search(r"freshness +Prefers what was used lately", out)
    arms = "arms={skg: [], fresh: [reranker=freshness, reranker.weight=2.5], never: [policy=never]}"
    run = skg_bench.run(["users=2", "weeks=1", arms])
    assert run.turns("fresh", ["turn"]).num_rows > 0
    assert run.manifest["compositions"]["fresh"]["reranker"] == {"_target_": "mine.freshness.Freshness", "weight": 2.5}


def test_the_code_of_an_added_package_is_in_the_identity(mine: Path) -> None:
    from skg_bench.app.run_identity import code_digest

    code_digest.cache_clear()
    before = code_digest()
    (mine / "mine" / "freshness.py").write_text("# changed", "utf-8")
    code_digest.cache_clear()
    assert code_digest() != before
    code_digest.cache_clear()


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
