"""The salt of a run: 128 bits in the key of every draw, so that no arm can compute the draws of the world.

A number is public. `draw` makes one for the run: it lies in a file that only this user can read until the run ends, and
then stands in the manifest. `env` takes it from the environment, and the manifest has its hash alone: for a gate, which
has to meet the same draws again.
"""

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from skg_bench.core.draws import SALT_BITS
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of
from skg_bench.core.temporary import replacing
from skg_bench.runfolder.manifest import MANIFEST, manifest_of

VARIABLE = "SKG_BENCH_SALT"
MAKE_ONE = f"export {VARIABLE}=$(python -c 'import secrets; print(secrets.token_hex(16))')"
_FILE = ".salt"  # in the folder of a run, until it ends
_DIGITS = re.compile(r"(?:0x)?([0-9a-fA-F]{32})")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,32}")


@dataclass(frozen=True)
class Salt:
    """A salt, and how a run came to it."""

    number: int
    origin: Any = 0  # `salt` of the configuration

    @property
    def drawn(self) -> bool:
        """Was it made for one run?"""
        return bool(self.origin == "draw")

    @property
    def data(self) -> dict[str, str]:
        """Part of the salt in the identity of a run where the configuration does not say it."""
        return {"salt": digest(self.number)} if self.origin == "env" and self.number else {}

    def told(self, *, ended: bool) -> dict[str, Any]:
        """Fields of a manifest: hash of the salt; the salt, null while it is to be kept from arms."""
        hidden = (self.drawn and not ended) or bool(self.data)
        return {"salt": None if hidden else f"{self.number:#034x}", "salt_hash": digest(self.number)}


PUBLIC = Salt(0)


def digest(salt: int) -> str:
    """Hash of a salt, 32 hex digits, from which it cannot be computed."""
    return blake2b(b"salt" + salt.to_bytes(SALT_BITS // 8, "little"), digest_size=16).hexdigest()


def given_salt(value: Any) -> Salt:
    """The salt that the configuration, or for `env` the environment, gives; a fresh one for `draw`.

    Raises UsageError for a variable that holds no salt.
    """
    if value == "draw":
        return Salt(secrets.randbits(SALT_BITS), value)
    if value != "env":
        return Salt(int(value, 16) if isinstance(value, str) else value, value)
    if not (text := os.environ.get(VARIABLE, "").strip()):
        return Salt(0, value)
    if not (match := _DIGITS.fullmatch(text)) or not int(match[1], 16):
        raise UsageError(
            f"salt=env: {VARIABLE} holds {len(text)} characters that are no salt; valid are 32 hex digits, not all 0, "
            f"such as of `{MAKE_ONE}`"
        )
    return Salt(int(match[1], 16), value)


def kept_salt(salt: Salt, out: Path) -> Salt:
    """The salt that an earlier attempt at the run in `out` drew, or else this one.

    Raises UsageError where that one is lost.
    """
    if not salt.drawn:
        return salt
    if (file := out / _FILE).exists() and _HEX.fullmatch(text := bytes_of(file).decode("utf-8", "replace").strip()):
        return Salt(int(text, 16), salt.origin)
    before: Mapping[str, Any] = {}
    with suppress(UsageError):  # it is torn, which is said where the run is looked at
        before = manifest_of(out / MANIFEST)
    if before.get("salt"):
        return Salt(int(before["salt"], 16), salt.origin)
    if before.get("incomplete") and "salt_hash" in before:
        raise UsageError(
            f"the salt of {out} was drawn and is lost: {file} is gone, and the manifest names it at the end of a run; "
            "delete the folder and start again"
        )
    return salt


def keep_salt(salt: Salt, out: Path) -> None:
    """Write a drawn salt for later attempts at the run; only this user can read the file."""
    if salt.drawn and not (out / _FILE).exists():
        with replacing(out / _FILE) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(f"{salt.number:#x}\n".encode())


def tell(out: Path) -> None:
    """Remove the file, once the manifest names the salt."""
    (out / _FILE).unlink(missing_ok=True)


def caution(salt: Salt) -> str | None:
    """A line for the user where the configuration asks for a secret salt, and there is none; None: all is well."""
    if salt.origin != "env" or salt.number:
        return None
    return (
        f"{VARIABLE} is not set: the run has the public default salt, from which an arm could compute the draws; "
        f"choose one and keep it out of the repository: {MAKE_ONE}"
    )
