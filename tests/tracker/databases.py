"""Databases of MLflow."""

import shutil
from collections.abc import Callable
from pathlib import Path
from warnings import catch_warnings, simplefilter


def put_new(once: Callable[..., Path], file: Path) -> None:
    """Put an empty database there, as the tracker makes it: its forty migrations take 1 s of CPU time, and run once."""

    def make(folder: Path) -> None:
        from skg_bench.tracker.database import prepare_database

        folder.mkdir()
        with catch_warnings():
            simplefilter("ignore")  # MLflow's own
            prepare_database(f"sqlite:///{folder / 'mlflow.db'}")

    shutil.copy(once("mlflow", make) / "mlflow.db", file)
