"""Addresses of servers: where they come from, and what may not stand in them."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from skg_bench.core.errors import UsageError

_USER = re.compile(r"""(?<=://)[^/\s"'<>][^\s"'<>]*@""")
_QUERY = re.compile(r"""(://[^\s"'<>?#]*[?#])[^\s"'<>]+""")
_FILE = ("sqlite", "file")  # addresses of files, whose names may have an @
_RELATIVE = re.compile(r"(sqlite(?:\+\w+)?:///)([^/:].*)")  # to the working directory; :memory: is none
_HIDDEN = "***"
_SECRET = re.compile(r"(MLFLOW|OPIK)_\w*(KEY|PASSWORD|SECRET|TOKEN)\w*")


def check_address(key: str, address: str | None, instead: str) -> None:
    """An address from the configuration, which ends up in manifests and on pages, carries no user, password, query or
    fragment: tokens stand in any of them.

    Raises UsageError; `instead` says which variables of the environment are for them.
    """
    if address is None:
        return
    named = "@" in (urlsplit(address).netloc if address.startswith(_FILE) else address)
    if not address or named or "?" in address or "#" in address:
        raise UsageError(
            f"{key}={without_secrets(address)!r} must be an address without user, password, query (?...) and fragment "
            f"(#...), as manifests and pages hold it; give those in the environment: {instead}"
        )


def without_secrets(text: str) -> str:
    """A text that may be shown: no user, query or fragment in addresses, no value of a secret variable of the
    environment.
    """
    for name, value in os.environ.items():
        if len(value) > 3 and _SECRET.fullmatch(name):
            text = text.replace(value, "***")
    return _QUERY.sub(r"\1***", _USER.sub("***@", text))


def noted_address(address: str) -> str:
    """An address as the run folder notes it: without secrets, and the same from any working directory.

    Whatever stands before an @ is dropped, as a password may hold any character.
    """
    scheme, mark, rest = address.partition("://")
    if "@" in rest and not address.startswith(_FILE):
        before, _, host = rest.rpartition("@")
        rest = _HIDDEN if set("?#") & set(before) else f"{_HIDDEN}@{host}"
    if relative := _RELATIVE.fullmatch(address):
        scheme, mark, rest = relative[1].partition(":")[0], "://", f"/{Path(relative[2]).absolute()}"
    return without_secrets(f"{scheme}{mark}{rest}")


def check_whole(address: str, variable: str) -> None:
    """Hold a noted address to being the whole one, from which no secret was taken.

    Raises UsageError; `variable` of the environment can name the whole one.
    """
    if _HIDDEN in address:
        raise UsageError(f"{address} is noted without its secrets, so it is not asked; only {variable} can name it")
