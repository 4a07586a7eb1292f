"""Opik (extra `opik`), over its REST interface and without its SDK.

The package `opik` cannot take its place (2.2.122, measured in docs/trackers.md). Its client has reported a flush
without losses when a server that refused held nothing; its generated REST client, which has ids and time-outs, takes
35 times the processor time. A few requests are all that is needed here. What the server shows when it is asked counts
as delivered, and nothing else. Experiments are whole, or made anew.

Opik takes ids of version 7 only, and may refuse those whose time is more than half a day off. So the time in an id is
the last full six hours, and its last 62 bits are the event's key: a delivery repeated within these hours repeats its
ids, which Opik takes for the same traces; at any time the keys of what is there tell what is missing.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from json import dumps, loads
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit
from uuid import UUID

from skg_bench.core.bodies import ACCEPTED_ENCODING, received, waiting_time
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import lines_of
from skg_bench.core.reach import Reach, Reaches
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink, Stage
from skg_bench.tracker import events
from skg_bench.tracker.address import check_address, check_whole, without_secrets
from skg_bench.tracker.opik_experiments import MOST_PARTS, WINDOW, arm_experiments, identifier, requests, traced_turns

if TYPE_CHECKING:
    import httpx

_BATCH = MOST_PARTS
_KEY = (1 << 62) - 1
_UNSEEN = '["input","output","metadata"]'  # not wanted back
_LOOKS = (0.0, 0.5, 1.0, 2.0)  # seconds before each look for what was delivered
_HERE = ("localhost", "127.0.0.1", "::1")
_WAITS = ("ratelimit-reset", "retry-after")  # headers that say how long to wait
_PATIENCE = 60.0  # seconds to wait at most when a server says `too many requests`


class UndeliveredError(Exception):
    """A server did not take, or does not show, what it was given."""


@dataclass(frozen=True)
class Opik:
    """A trace for each turn and each learning step of some users, in `events.jsonl` and on a server of Opik's.

    There is also an experiment for each arm, once the run has figures.

    Keys come from the environment only: OPIK_API_KEY, OPIK_WORKSPACE.
    """

    url: str | None
    users: int | None
    texts: events.Texts | None

    name: ClassVar[str] = "opik"
    parameter: ClassVar[str] = "url"
    variables: ClassVar[Sequence[str]] = ("OPIK_",)
    reads: ClassVar[Sequence[Stage]] = ("tables",)
    reaches: ClassVar[Reaches] = {"url": Reach(("network",))}

    def __post_init__(self) -> None:
        if find_spec("httpx") is None:
            raise UsageError(f"tracker=opik needs httpx: {install_hint('opik')}")
        check_address("tracker.url", self.url, "OPIK_API_KEY")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise UsageError(f"tracker.url={self.url!r} must begin with http:// or https://")
        if self.users is not None and self.users < 1:
            raise UsageError(f"tracker.users={self.users} must be at least 1, or null for all")

    @property
    def sinks(self) -> Sequence[Sink]:
        """Itself."""
        return (self,)

    def address(self, run: Path) -> str | None:
        return self.url or os.environ.get("OPIK_URL_OVERRIDE")

    def local(self, run: Path) -> bool:
        return False

    def open(self, run: Path) -> None:
        """Import what takes a while."""
        import httpx  # noqa: F401

    def deliver(self, run: Run, progress: Callable[[int, int], None]) -> str:
        """Write the event file and send what the server does not have."""
        path, total = events.write_events(run, self.users, self.texts)
        progress(0, total)
        url = self.address(run.path)
        if not url:
            raise UndeliveredError(f"no server is named, by tracker.url or OPIK_URL_OVERRIDE; all is in {path}")
        project = _project(run)
        with _client(url) as client:
            keys = {key for key, _ in _lines(path)}
            left, taken = keys - _shown(client, project).keys(), 0
            missing = _missing(path, left, project)
            while bodies := list(islice(missing, _BATCH)):
                _send(client, bodies)
                taken += len(bodies)
                progress(total - len(left) + taken, total)
            shown = _look(client, project, keys, progress)
            experiments = _deliver_experiments(client, run, path, shown)
        return f"{total:,} traces in project {project} at {url} ({taken:,} of them new){experiments}"

    def forget(self, run: Run, user: int, noted: str | None = None) -> str:
        """Delete the traces of a user, under all arms, and look whether they are gone."""
        if noted is not None:
            _check_noted(noted)
        url, project = noted or self.address(run.path), _project(run)
        if not url:
            raise UndeliveredError(f"{events.EVENTS_FILE} holds traces, and OPIK_URL_OVERRIDE names no server")
        threads = {f"{arm}/u{user}" for arm in run.arms}
        with _client(url, keys=noted is None) as client:
            ids = _of_threads(client, project, threads)
            for first in range(0, len(ids), _BATCH):
                _change(client, "POST", "traces/delete", {"ids": ids[first : first + _BATCH]})
            removed = _remove_experiments(client, project)
            place = f" tracker.url={noted}" if noted else ""
            export = f"skg-bench export opik {run.path}{place}"
            again = f"; {removed} experiments, again without them: {export}" if removed else ""
            for seconds in _LOOKS:
                sleep(seconds)
                if not (left := len(_of_threads(client, project, threads))):
                    return f"{len(ids):,} traces deleted of project {project} at {url}{again}"
        raise UndeliveredError(f"the server still shows {left:,} of {len(ids):,} traces that it was to delete")


def _project(run: Run) -> str:
    return f"{run.config['experiment']}-{str(run.manifest['identity'])[:8]}"


def _check_noted(address: str) -> None:
    """Hold an address that only a file of the run names to being a server of this machine, which is asked without keys.

    Raises UsageError.
    """
    variable = "OPIK_URL_OVERRIDE"
    check_whole(address, variable)
    if not address.startswith(("http://", "https://")) or urlsplit(address).hostname not in _HERE:
        raise UsageError(
            f"{address} is not on this machine, and other servers are asked only where {variable} names them"
        )


def _client(url: str, *, keys: bool = True) -> "httpx.Client":
    """A client of the server; without `keys` it is sent nothing of the environment."""
    import httpx

    workspace = os.environ.get("OPIK_WORKSPACE") if keys else None
    headers = {"Comet-Workspace": workspace or "default", **ACCEPTED_ENCODING}
    if keys and (api_key := os.environ.get("OPIK_API_KEY")):
        headers["Authorization"] = api_key
    patience = httpx.Timeout(30, connect=5)  # seconds
    place = f"{url.rstrip('/')}/v1/private/"
    return httpx.Client(base_url=place, headers=headers, timeout=patience, trust_env=keys)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Key and text of each event."""
    for _, line in lines_of(path):
        text = (line or b"").decode()
        yield int(text[8:24], 16), text  # {"key":"16 hex digits", ...


def _missing(path: Path, left: set[int], project: str) -> Iterator[dict[str, Any]]:
    """Bodies of the events whose keys are left, with ids, in the order of the file."""
    begins = int(time() * 1000) // WINDOW * WINDOW
    for number, (key, line) in enumerate(_lines(path)):
        if key in left:
            yield {"id": identifier(begins, number, key), "project_name": project, **loads(line)["trace"]}


def _send(client: "httpx.Client", traces: list[dict[str, Any]]) -> None:
    _change(client, "POST", "traces/batch", {"traces": traces})


def _change(client: "httpx.Client", method: str, path: str, body: Mapping[str, Any]) -> None:
    """Send a request that writes; again if the server answers that there were too many requests."""
    while True:
        answer = _sent(client, method, path, body)
        wait = next(filter(None, (waiting_time(answer.headers.get(name, "")) for name in _WAITS)), 0.0)
        if answer.status_code != 429 or not 0 < wait <= _PATIENCE:
            break
        sleep(wait)
    _refuse(answer)


def _sent(client: "httpx.Client", method: str, path: str, body: Mapping[str, Any]) -> "httpx.Response":
    content = dumps(body, ensure_ascii=False).encode()
    return _answer(client, method, path, content=content, headers={"Content-Type": "application/json"})


def _answer(client: "httpx.Client", method: str, path: str, **options: Any) -> "httpx.Response":
    """A response, of which no more is read than a server of Opik's has to say."""
    with client.stream(method, path, **options) as response:
        return received(response, str(client.base_url))


def _shown(client: "httpx.Client", project: str) -> dict[int, str]:
    """Ids of the project's traces on the server, by key."""
    return {UUID(trace["id"]).int & _KEY: trace["id"] for trace in _traces(client, project)}


def _deliver_experiments(client: "httpx.Client", run: Run, path: Path, traces: dict[int, str]) -> str:
    """Write the experiments of a run that has figures, anew if they are incomplete. Returns a report of one line."""
    if not (run.path / "summary.json").is_file():
        return ""
    project, turns = _project(run), traced_turns(path)
    counts = Counter(turn.arm for turn in turns)
    wanted = {body["name"]: counts[arm] for arm, body in arm_experiments(run, project).items()}
    new = _experiments(client, project) != wanted
    if new:
        _remove_experiments(client, project)
        for request in requests(run, project, turns, traces, int(time() * 1000) // WINDOW * WINDOW):
            _change(client, request.method, request.path, request.body)
    for seconds in _LOOKS:
        sleep(seconds)
        if _experiments(client, project) == wanted:
            return f", {len(wanted)} experiments"
    raise UndeliveredError("the server took the experiments of all arms, but does not show them whole")


def _dataset(client: "httpx.Client", project: str) -> str | None:
    """Id of the dataset of the run's events; None: there is none."""
    answer = _sent(client, "POST", "datasets/retrieve", {"dataset_name": project})
    if answer.status_code == 404:
        return None
    _refuse(answer)
    return str(answer.json()["id"])


def _experiments(client: "httpx.Client", project: str) -> dict[str, int]:
    """Number of traces of each experiment of the run, by name."""
    dataset = _dataset(client, project)
    listed = _pages(client, "experiments", {"datasetId": dataset}) if dataset else ()
    return {str(each["name"]): int(each.get("trace_count") or 0) for each in listed}


def _remove_experiments(client: "httpx.Client", project: str) -> int:
    """Remove the experiments of the run and their dataset; returns how many there were."""
    dataset = _dataset(client, project)
    if dataset is None:
        return 0
    if ids := [each["id"] for each in _pages(client, "experiments", {"datasetId": dataset})]:
        _change(client, "POST", "experiments/delete", {"ids": ids})
    _change(client, "POST", "datasets/delete", {"dataset_name": project})
    return len(ids)


def _of_threads(client: "httpx.Client", project: str, threads: set[str]) -> list[str]:
    """Ids of the traces of some threads."""
    return [str(UUID(trace["id"])) for trace in _traces(client, project) if trace.get("thread_id") in threads]


def _traces(client: "httpx.Client", project: str) -> Iterator[dict[str, Any]]:
    """Traces of the project on the server, without what they say."""
    return _pages(client, "traces", {"project_name": project, "truncate": True, "exclude": _UNSEEN})


def _pages(client: "httpx.Client", path: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All that the server lists there, page by page."""
    received, page = 0, 1
    while True:
        answer = _answer(client, "GET", path, params={**query, "page": page, "size": _BATCH})
        if answer.status_code == 404:  # no such project yet
            return
        _refuse(answer)
        try:
            read = answer.json()
            content, total = read["content"], int(read["total"])
            _ = [UUID(each["id"]) for each in content]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UndeliveredError(f"{answer.url.host} answers as no Opik does; its address ends in /api") from error
        yield from content
        received, page = received + len(content), page + 1
        if not content or received >= total:
            return


def _look(client: "httpx.Client", project: str, keys: set[int], progress: Callable[[int, int], None]) -> dict[int, str]:
    """Ids of the traces by key, once the server lists all of them, which may take a moment."""
    for seconds in _LOOKS:
        sleep(seconds)
        shown = _shown(client, project)
        seen = len(keys & shown.keys())
        progress(seen, len(keys))
        if seen == len(keys):
            return shown
    raise UndeliveredError(f"the server took all of them, but shows {seen:,} of {len(keys):,}")


def _refuse(answer: "httpx.Response") -> None:
    if not answer.is_success:
        hint = "; is OPIK_API_KEY set?" if answer.status_code in (401, 403) else ""
        body = without_secrets(answer.text)[:200]
        raise UndeliveredError(f"{answer.url.host} answered {answer.status_code} {body}{hint}")
