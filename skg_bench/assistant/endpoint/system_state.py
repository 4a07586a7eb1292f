"""Memory of a system as bytes: what it gives at one address and takes at another, or files in a folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skg_bench.asking.http_client import LocalClient
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of
from skg_bench.core.temporary import replace_whole

Kept = Mapping[str, bytes]  # by the name of a file; of a system that is asked: its body, without a name


@dataclass(frozen=True, slots=True)
class StateByRequests:
    """GET at `save` gives the memory of all users, POST at `load` puts it in place of what the system remembers."""

    save: str
    load: str

    async def saved(self, client: LocalClient, headers: Mapping[str, str]) -> Kept:
        """The memory. Raises UsageError where the system does not give it."""
        response = await client.request("GET", self.save, b"", headers)
        _check(response.status, f"GET {self.save}", "state.save")
        return {"": response.body}

    async def load_into(self, client: LocalClient, headers: Mapping[str, str], kept: Kept) -> None:
        """Gives the memory back. Raises UsageError where the system does not take it."""
        response = await client.request("POST", self.load, kept[""], headers)
        _check(response.status, f"POST {self.load}", "state.load")


@dataclass(frozen=True, slots=True)
class StateByFolder:
    """Files below a folder of the system, which reads them when it starts, and writes each change at once."""

    folder: str

    def saved(self, system: Path) -> Kept:
        """Content of all files by their names, of a system with this folder."""
        root = system / self.folder
        return {file.relative_to(root).as_posix(): bytes_of(file) for file in sorted(root.rglob("*")) if file.is_file()}

    def load_into(self, system: Path, kept: Kept) -> None:
        """Writes the files, before the system starts. Raises UsageError for a name that leads out of the folder."""
        root = (system / self.folder).resolve()
        for name, content in kept.items():
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise UsageError(f"a file {name!r} of a system's memory leads out of its folder; run again, elsewhere")
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(path, content)


SystemState = StateByRequests | StateByFolder | None


def system_state(given: Mapping[str, str]) -> SystemState:
    """How the memory of a system is copied; nothing is given: it is not.

    Raises UsageError for a value that says neither of both ways.
    """
    if not given:
        return None
    if set(given) == {"folder"} and _inside(given["folder"]):
        return StateByFolder(given["folder"])
    if set(given) == {"save", "load"} and all(path.startswith("/") for path in given.values()):
        return StateByRequests(given["save"], given["load"])
    raise UsageError(
        f"assistant.state={dict(given)} must be {{folder: memory}}, a folder below that of the system, or "
        "{save: /memory, load: /memory}, two paths of the system, or {}, which is none"
    )


def _inside(folder: str) -> bool:
    return bool(folder) and not Path(folder).is_absolute() and ".." not in Path(folder).parts


def _check(status: int, what: str, key: str) -> None:
    if not 200 <= status < 300:
        raise UsageError(
            f"the system answered {what} with HTTP {status}; assistant.{key} must be a path that it serves"
        )
