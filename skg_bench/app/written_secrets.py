"""Secrets in the words of a configuration, which stand in manifests and on pages: none may be written there."""

import re
from collections.abc import Mapping

from skg_bench.core.errors import UsageError

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of a name such as api_key, apiKey or X-API-Key
_NAMED = re.compile(r"(^|_)((api|access|private|secret)_key|apikey|authorization|passwd|password|secret|token)$")
_OF_TEXT = re.compile(r"(^|_)(bos|cls|eos|mask|max|min|pad|per|sep|stop|unk)_token$")  # a token of a text is no secret
_FILLED = re.compile(r"\{\w+\}")  # {key} and {user} are filled in when the run is under way
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(sk-[\w-]*[A-Za-z0-9]{16}|Bearer\s+[\w.~+/-]{8}|gh[a-z]_[A-Za-z0-9]{16}|github_pat_\w{16}|"
    r"AKIA[A-Z0-9]{16}|xox[a-z]-[\w-]{8})",
    re.ASCII,
)


def check_secrets(path: str, value: object, where: str = "") -> None:
    """No value at `path` or inside is named as a secret is, or looks like a key. Overrides of arms are left to those
    who read them; their names are free.

    Raises UsageError with the place, and never with the value.
    """
    if path.partition(".")[0] != "arms":
        _check(path, path.rpartition(".")[2], value, where)


def _check(path: str, name: str, value: object, where: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check(f"{path}.{key}", str(key), inner, where)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _check(f"{path}.{place}", name, inner, where)
    elif isinstance(value, str | int) and ((named := _named(name, value)) or _KEY.search(str(value))):
        raise UsageError(
            f"{where}{path} {'is named as a secret is' if named else 'holds what looks like a key'}, and is not shown "
            "here, as manifests and pages show what a configuration says. Leave it out, and read it from the "
            "environment: in a class by os.environ, with launcher.variables=[NAME] so that workers see it, or by a "
            "parameter such as key_from that names the variable. If it is no secret, give it another name"
        )


def _named(name: str, value: str | int) -> bool:
    """Does a name say that its value is a secret, and is there one?"""
    words = "_".join(_WORDS.findall(name)).lower()
    if isinstance(value, bool) or value == "" or _FILLED.fullmatch(str(value)):
        return False
    return bool(_NAMED.search(words) and not _OF_TEXT.search(words))
