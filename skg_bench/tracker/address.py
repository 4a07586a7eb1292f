"""Addresses of servers: where they come from, and what may not stand in them."""

import os
import re
from urllib.parse import urlsplit

from skg_bench.core.errors import UsageError

_USER = re.compile(r"(?<=://)[^/@\s]+@")
_SECRET = re.compile(r"(MLFLOW|OPIK)_\w*(KEY|PASSWORD|SECRET|TOKEN)\w*")


def check(key: str, address: str | None, instead: str) -> None:
    """An address from the configuration, which ends up in manifests, carries no user and no password.

    Raises UsageError; `instead` says which variables of the environment are for them.
    """
    if address is not None and (not address or "@" in urlsplit(address).netloc):
        raise UsageError(
            f"{key}={without_secrets(address)!r} must be an address without user and password, as manifests hold it; "
            f"give those in the environment: {instead}"
        )


def without_secrets(text: str) -> str:
    """A text that may be shown: no user in addresses, no value of a secret variable of the environment."""
    for name, value in os.environ.items():
        if len(value) > 3 and _SECRET.fullmatch(name):
            text = text.replace(value, "***")
    return _USER.sub("***@", text)
