"""Children start clean: no module of the current folder, named variables only, and all is put back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skg_bench.core import processes


def test_a_child_sees_named_variables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PYTHONPATH", "PYTHONSTARTUP", "MY_KEY", "OPIK_API_KEY", "XX_A"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    alone = processes.environment()
    assert "canary" not in alone.values()
    assert alone["PATH"] == os.environ["PATH"]
    assert (alone["OPENBLAS_CORETYPE"], alone["PYTHONSAFEPATH"]) == ("Haswell", "1")
    told = processes.environment(["MY_KEY", "OPIK_"])
    assert told.keys() - alone.keys() == {"MY_KEY", "OPIK_API_KEY"}


def test_no_variable_of_each_child_is_a_secret() -> None:
    assert not [name for name in processes.NAMED if any(word in name for word in ("_KEY", "_TOKEN", "SECRET", "PASS"))]


def test_the_current_folder_is_last_where_a_child_looks_for_modules_and_never_unnamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    (tmp_path / "link").symlink_to(here)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "link"), str(other)])
    with processes.starting():
        assert sys.path == [str(other), str(tmp_path / "link")]
    assert sys.path == ["", str(tmp_path / "link"), str(other)]


def test_what_a_start_changes_is_put_back_also_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "canary")
    before, words = dict(os.environ), sys.argv
    with pytest.raises(OSError, match="no process"), processes.starting(OMP_NUM_THREADS="7"):  # noqa: PT012
        assert "MY_KEY" not in os.environ
        assert os.environ["OMP_NUM_THREADS"] == "7"
        assert sys.argv == words[:1]
        raise OSError("no process")
    assert dict(os.environ) == before
    assert sys.argv is words


def test_pandas_is_loaded_when_somebody_wants_it_and_its_series_are_what_they_are_in_any_process() -> None:
    """By itself pyarrow imports it to see whether what it is given is a Series, as the first process shows."""
    code = """
import sys
from skg_bench.core import processes
if sys.argv[1:]:
    processes.load_pandas_late()
if "first" in sys.argv:
    import pandas
import pyarrow as pa
table = pa.table({"a": pa.array(["x", None]), "b": [1, 2]})
print("pandas" in sys.modules, end=" ")
if "wanted" in sys.argv:
    print(table.to_pandas().shape, end=" ")
import pandas as pd
print(pa.array(pd.Series([1.0, float("nan")])).null_count, *(type(x.__spec__.loader).__name__ for x in (pd, pa)))
"""
    loaders = "1 SourceFileLoader SourceFileLoader\n"
    late = {("late",): "False ", ("late", "wanted"): "False (2, 2) ", ("late", "first"): "True "}
    for words, says in {(): "True ", **late}.items():
        out = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout
        assert out == says + loaders
