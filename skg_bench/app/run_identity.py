"""Identity of a run: what makes two runs the same, and the manifest that says so."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skg_bench.app.packages import Package, packages
from skg_bench.core.foreign import bytes_of
from skg_bench.core.package import VERSION, beyond_package
from skg_bench.core.reach import NamesBeside
from skg_bench.core.temporary import replace_whole
from skg_bench.runfolder.manifest import counted_of, identity_of
from skg_bench.runfolder.run import flat

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "hydra-core")
_UNREAD = tuple(  # of the checkout, what no run reads; prompts are pages too, and lie in the package
    f":(exclude,top,glob){part}" for part in ("reports/**", "docs/**", "tests/**", "*.md", "experiments/**/*.md")
)
_NOT_CODE = ("_conf", "_data", "_experiments", "__pycache__")  # resolved into configuration and digests, or caches


def identity(config: Mapping[str, Any], compositions: Mapping[str, Any], data: Mapping[str, str]) -> str:
    """Hash (64 hex digits) of the resolved configuration, of data and models, and of the code."""
    return identity_of(described(config, compositions, data))


def described(config: Mapping[str, Any], compositions: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, Any]:
    """Description of these for a manifest, so that the identity follows from the manifest alone."""
    whole = {"config": config, "compositions": compositions, "data": dict(data), "code": code_digest()}
    return {**whole, "beside": sorted(_beside(whole))}


def _beside(node: Any, place: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Places of parameters of components that change how a run is made and not what comes out, which a class names in
    `beside`: the address of a server, or a budget.
    """
    if isinstance(node, list):
        for at, inner in enumerate(node):
            yield from _beside(inner, (*place, str(at)))
    if isinstance(node, Mapping):
        module, _, name = str(node.get("_target_", "")).rpartition(".")
        made = vars(sys.modules[module]).get(name) if module in sys.modules else None
        names = made.beside if isinstance(made, NamesBeside) else ()
        for key, value in node.items():
            if key in names:
                yield [*place, key]
            else:
                yield from _beside(value, (*place, key))


@cache
def code_digest() -> str:
    """Hash of the files of this package and of the packages that add components, and of what these import."""
    digest = hashlib.sha256()
    for package in packages():
        for file in sorted(_code(package.root)):
            digest.update(f"{package.name}/{file.relative_to(package.root)}\0".encode())
            digest.update(hashlib.sha256(bytes_of(file)).digest())
        digest.update(beyond_package(package.name).encode())
    return digest.hexdigest()


def _code(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _NOT_CODE]
        yield from (Path(folder) / name for name in names if not name.endswith((".pyc", ".so")))


def identity_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """`key: old value -> new value` for all that is in the identity of either manifest and differs."""
    before, after = flat(_counted(old)), flat(_counted(new))
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return [f"{key}: {_shown(before, key)} -> {_shown(after, key)}" for key in sorted(keys)]


def _counted(manifest: Mapping[str, Any]) -> dict[str, Any]:
    content = {key: manifest.get(key) or {} for key in ("config", "compositions", "data", "code")}
    counted = counted_of({**content, "beside": manifest.get("beside", [])})
    config: dict[str, Any] = counted.pop("config")
    return {**config, **counted}


def _shown(values: Mapping[str, Any], key: str) -> str:
    if key not in values:
        return "absent"
    text = json.dumps(values[key], ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."


def provenance() -> dict[str, Any]:
    """Commit, hash of uncommitted changes (null: none), versions; what a reader needs to make the same bits again.

    `packages` says the same of each package that adds components.
    """
    commit, dirty = _commit()
    added = {package.name: package_state(package) for package in packages()[1:]}
    mine = {"commit": commit, "dirty": dirty, "versions": versions(), "machine": platform.machine()}
    return {**mine, **({"packages": added} if added else {})}


def package_state(package: Package) -> dict[str, str | None]:
    """Commit and hash of uncommitted changes of an added package, null where git does not know it; its version."""
    known: dict[str, str | None] = {"version": package.version, "commit": None, "dirty": None}
    if not _git(_folder(package), "ls-files", "--", package.root.name if package.root.is_file() else "."):
        return known
    commit = (_git(_folder(package), "rev-parse", "HEAD") or b"").decode().strip() or None
    changed = _changed_files(package)
    state = hashlib.sha256()
    for file in changed:
        state.update(f"{file}\0".encode())
        state.update(bytes_of(Path(file)) if Path(file).is_file() else b"")
    return {**known, "commit": commit, "dirty": state.hexdigest()[:16] if changed else None}


def commits_between(name: str, old: str | None, new: str | None) -> int | None:
    """Commits from `old` to `new` that touch a package, in the repository in which its files lie; None: not known."""
    package = next((package for package in packages() if package.name == name), None)
    if package is None or not old or not new:
        return None
    place = package.root.name if package.root.is_file() else "."
    counted = _git(_folder(package), "rev-list", "--count", f"{old}..{new}", "--", place)
    return int(counted) if counted else None


def _folder(package: Package) -> Path:
    return package.root.parent if package.root.is_file() else package.root


def _changed_files(package: Package) -> list[str]:
    """Files of an added package that are not as in the commit of its checkout, or in none."""
    folder = _folder(package)
    top = _git(folder, "rev-parse", "--show-toplevel")
    place = package.root.name if package.root.is_file() else "."
    if top is None or not _git(folder, "ls-files", "--", place):
        return []
    status = _git(folder, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z", "--", place) or b""
    names = [line[3:].decode() for line in status.split(b"\0") if line]
    return [str(Path(top.decode().strip()) / name) for name in names if "__pycache__" not in Path(name).parts]


def versions() -> dict[str, str]:
    """Versions of all that the bits of a run depend on."""
    return {"python": platform.python_version(), "skg-bench": VERSION, **_library_versions()}


@cache
def _library_versions() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}


def _commit() -> tuple[str | None, str | None]:
    """Commit of the checkout that the package lies in; (null, null) for an installed package."""
    package_root = packages()[0].root
    if _git(package_root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    commit, diff = _git(package_root, "rev-parse", "HEAD"), _git(package_root, "diff", "HEAD", "--", "..", *_UNREAD)
    return (commit or b"").decode().strip() or None, hashlib.sha256(diff).hexdigest()[:16] if diff else None


def uncommitted() -> list[str]:
    """Files of the package's checkout, and of the packages that add components, that are not as in their commit, or in
    none; an installed package has no such files.
    """
    package_root, added = packages()[0].root, [file for package in packages()[1:] for file in _changed_files(package)]
    top = _git(package_root, "rev-parse", "--show-toplevel")
    if top is None or _git(package_root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return added
    root = Path(top.decode().strip())
    status = _git(root, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z") or b""
    return [*(str(root / line[3:].decode()) for line in status.split(b"\0") if line), *added]


def _git(folder: Path, *words: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False, timeout=10)  # noqa: S603, S607
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def write_json(path: Path, value: Any) -> None:
    """Write a json file whole or not at all."""
    replace_whole(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
