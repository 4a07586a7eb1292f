"""The database of MLflow: a new one is made whole or not at all, and none that exists is migrated.

MLflow makes a database by some forty migrations, which are not transactions: a process that is killed among them leaves
a file that no MLflow opens again. So a new file is made under a name of its process and then linked to its real name.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from time import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from skg_bench.core.errors import UsageError
from skg_bench.tracker.address import check_whole, without_secrets

if TYPE_CHECKING:
    from sqlalchemy import URL

_SHOWN = 100  # characters of an address that may be any text
_A_DAY = 24 * 3600  # seconds after which a file that another machine began has been left behind


def prepare_database(address: str) -> None:
    """Make the database, if it is a file that does not exist; else look whether MLflow can use it as it is.

    Raises UsageError if it cannot. An address of an MLflow server is left alone.
    """
    from mlflow.store.db.db_types import DATABASE_ENGINES, SQLITE
    from sqlalchemy import make_url

    if _engine(address) not in DATABASE_ENGINES:
        return
    url = make_url(address)
    if _engine(address) == SQLITE:
        if not url.database or url.database == ":memory:":
            raise UsageError(
                f"{without_secrets(address)} is a database in memory, which ends with its process; name a file, as "
                "sqlite:///runs/mlflow.db"
            )
        if not Path(url.database).exists():
            if not (folder := Path(url.database).parent).is_dir():
                raise UsageError(
                    f"{without_secrets(address)} names a file in {folder}, and there is no such folder, seen from "
                    f"{Path.cwd()}; make it, or name another file"
                )
            _make(url, Path(url.database))
    _verify(address)


def artifacts(address: str, run: Path) -> str | None:
    """Address of the files of MLflow's runs: beside a database that is a file, beside the folder `run` for
    another database, which holds no files; None: the server says. MLflow itself would take the current folder.
    """
    from mlflow.store.db.db_types import DATABASE_ENGINES, SQLITE
    from sqlalchemy import make_url

    if _engine(address) not in DATABASE_ENGINES:
        return None
    database = make_url(address).database if _engine(address) == SQLITE else None
    beside = _beside(run if database is None else Path(database))
    beside.mkdir(mode=0o700, exist_ok=True)  # pages hold messages
    return beside.as_uri()


def check_noted(address: str) -> None:
    """Hold an address that only a file of the run names to being a database of this machine that is there.

    Any other would be sent the keys of whoever reads the run. Raises UsageError.
    """
    from sqlalchemy import make_url

    variable = "MLFLOW_TRACKING_URI"
    check_whole(address, variable)
    if _engine(address) != "sqlite":
        raise UsageError(f"{address} is no file, and keys are sent only where {variable} says, so it is not asked")
    if not Path(make_url(address).database or "").is_file():
        raise UsageError(f"{address} is not there; was it moved or deleted?")


def check_place(address: str, files: str) -> None:
    """Hold a database that nobody named to keep files beside itself: it may have come with the run, and say any place.

    Raises UsageError; `files`: where it says that those of a run lie.
    """
    from sqlalchemy import make_url

    beside, place = _beside(Path(make_url(address).database or "")), urlsplit(files)
    if place.scheme != "file" or beside not in Path(unquote(place.path)).resolve().parents:
        raise UsageError(
            f"{Path(make_url(address).database or '').name} keeps files not beside itself, but at "
            f"{without_secrets(files)[:_SHOWN]}; if it is yours, name it: tracker.uri={address}"
        )


def _engine(address: str) -> str:
    """`sqlite` of sqlite+pysqlite:///FILE."""
    return address.partition(":")[0].partition("+")[0]


def _beside(file: Path) -> Path:
    return file.resolve().parent / "mlartifacts"


def _make(url: "URL", file: Path) -> None:
    """Make all tables in a file of another name, and give it the real one, unless another process was first."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    for left in _left_behind(file):
        left.unlink(missing_ok=True)
    new = file.with_name(f"{_prefix(file)}{os.getpid()}.{token_hex(4)}")
    try:
        new.touch(mode=0o600, exist_ok=False)  # its names and figures may be secret; pages in it hold messages
        address = url.set(database=str(new)).render_as_string(hide_password=False)
        store = SqlAlchemyStore(address, _beside(file).as_uri())  # type: ignore[no-untyped-call]
        store.engine.dispose()
        _put(new, file)
    finally:
        new.unlink(missing_ok=True)


def _put(new: Path, file: Path) -> None:
    """Name the new file as `file`, and never replace one that is there."""
    try:
        os.link(new, file)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not file.exists():
            new.rename(file)


def _prefix(file: Path) -> str:
    return f".{file.name}.{gethostname()}."


def _left_behind(file: Path) -> Iterator[Path]:
    """Files that processes began and will not finish: they have ended, or began it a day ago on another machine."""
    for leftover in file.parent.glob(f".{file.name}.*"):
        prefix, _, rest = leftover.name.rpartition(".")[0].rpartition(".")
        if not rest.isdecimal():
            continue
        if f"{prefix}." == _prefix(file):
            if not _runs(int(rest)):
                yield leftover
        elif abs(leftover.stat().st_mtime - time()) > _A_DAY:
            yield leftover


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _verify(address: str) -> None:
    """Look at the number of the schema only; MLflow would migrate a database in place when it opens it."""
    from mlflow import __version__
    from mlflow.exceptions import MlflowException
    from mlflow.store.db.utils import _verify_schema, create_sqlalchemy_engine

    engine = create_sqlalchemy_engine(address)  # type: ignore[no-untyped-call]
    try:
        _verify_schema(engine)  # type: ignore[no-untyped-call]
    except MlflowException as error:
        raise UsageError(
            f"{without_secrets(address)} is no complete database of MLflow {__version__}: if it is of another version, "
            "back it up and run mlflow db upgrade; if it was damaged, move it away, and an export makes a new one"
        ) from error
    finally:
        engine.dispose()
