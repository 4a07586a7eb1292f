"""Opik's contract server with a memory, with pages, and with ways to fail."""

import json
import threading
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from tests.tracker.contract import ContractServer, Handler

Failure = Literal["refuse", "500", "hang", "busy", "forgetful", "shy", "denied", "deaf"]
_HALF_A_DAY = 12 * 3600 * 1000
BATCH, DELETE = ("post", "/v1/private/traces/batch"), ("post", "/v1/private/traces/delete")


class Server:
    """Traces by id and experiments, as the contract server takes them: what it finds malformed is refused.

    `fail` it, from a batch on: hang up on everybody, answer 500, never answer, say that there were too many requests,
    take and not keep, keep and not show, deny, or keep and die before it is said.
    """

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self.experiments: dict[str, dict[str, Any]] = {}
        self.links: dict[str, dict[str, Any]] = {}  # items of experiments
        self.events: dict[str, dict[str, Any]] = {}  # items of datasets
        self.changes = 0  # of experiments
        self.batches = 0
        self.most = 10_000  # traces of a page that it gives
        self.dated = False  # says by a date when to come again
        self.headers: list[dict[str, str]] = []
        self.complaints: list[str] = []
        self._failure: Failure | None = None
        self._after = 0
        self._query = threading.local()
        self._released = threading.Event()
        outer = self

        class Failing(Handler):
            def do_GET(self) -> None:  # noqa: N802
                outer.headers.append(dict(self.headers))
                outer._query.of = parse_qs(urlsplit(self.path).query)
                if not self.hangs_up():
                    super().do_GET()

            def hangs_up(self) -> bool:
                dead = outer._failure == "deaf" and outer.batches > outer._after
                self.close_connection = self.close_connection or dead or outer._failure == "refuse"
                return self.close_connection

            def do_POST(self) -> None:  # noqa: N802
                outer.headers.append(dict(self.headers))
                if not self.hangs_up():
                    super().do_POST()

            def do_PUT(self) -> None:  # noqa: N802
                if not self.hangs_up():
                    super().do_PUT()

            def send_response(self, code: int, message: str | None = None) -> None:
                if code == 0:
                    self.close_connection = True
                    self.connection.close()
                    raise ConnectionAbortedError
                super().send_response(code, message)
                if code == 429:
                    dated = ("Retry-After", formatdate(time() + 2, usegmt=True))
                    self.send_header(*(dated if outer.dated else ("RateLimit-Reset", "1")))

        self._server = ContractServer(Failing, self._answer)
        self.url = self._server.url

    def fail(self, failure: Failure | None, after: int = 0) -> None:
        """Fail from now on, when `after` more batches were taken; None: work again."""
        self._failure, self._after = failure, self.batches + after

    def stop(self) -> None:
        """Answer whoever still waits, and nobody after that."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, method: str, route: str, body: Any, errors: list[str]) -> tuple[int, Any]:
        failing = self._failure if self.batches >= self._after else None
        if failing == "hang":
            self._released.wait(60)
        if failing in ("500", "denied"):
            return (500, {"message": "out of order"}) if failing == "500" else (401, {"message": self._key()})
        if (method, route) == ("get", "/v1/private/traces"):
            return self._page(shy=failing == "shy")
        if (method, route) == DELETE:
            return self._delete(body, errors)
        if route.startswith(("/v1/private/experiments", "/v1/private/datasets")):
            return self._experiments(method, route.removeprefix("/v1/private/"), body, errors)
        if (method, route) != BATCH:
            return 404, {"message": "no route"}
        if failing == "busy":
            self._failure = None
            return 429, {"message": "too many requests"}
        errors += [f"{trace['id']} is no id of now" for trace in body["traces"] if not _of_now(UUID(trace["id"]))]
        if errors:
            self.complaints += errors
            return 400, {"errors": errors}
        self.batches += 1
        if failing != "forgetful":
            self.traces |= {trace["id"]: trace for trace in body["traces"]}
        return (0 if failing == "deaf" else 204), None

    def _page(self, *, shy: bool) -> tuple[int, Any]:
        parameters = {name: values[0] for name, values in self._query.of.items()}
        size, page = min(int(parameters["size"]), self.most), int(parameters["page"])
        traces = [trace for trace in self.traces.values() if trace["project_name"] == parameters["project_name"]]
        if not traces or shy:
            return 404, {"errors": ["no such project"]}
        content = [
            {key: trace[key] for key in ("id", "thread_id")} for trace in traces[(page - 1) * size : page * size]
        ]
        return 200, {"content": content, "page": page, "size": len(content), "total": len(traces)}

    def _experiments(self, method: str, route: str, body: Any, errors: list[str]) -> tuple[int, Any]:
        """One dataset for each name, which is its id's last part."""
        if errors:
            self.complaints += errors
            return 400, {"errors": errors}
        self.changes += (method, route) not in (("get", "experiments"), ("post", "datasets/retrieve"))
        names = list(dict.fromkeys(event["dataset_name"] for event in self.events.values()))
        match method, route:
            case "post", "datasets/retrieve":
                if body["dataset_name"] not in names:
                    return 404, {"errors": ["no such dataset"]}
                return 200, {"id": _dataset_id(names, body["dataset_name"]), "name": body["dataset_name"]}
            case "put", "datasets/items":
                about = {"dataset_name": body["dataset_name"]}
                self.events |= {item["id"]: {**item, **about} for item in body["items"]}
            case "post", "datasets/delete":
                kept = {name: e for name, e in self.events.items() if e["dataset_name"] != body["dataset_name"]}
                self.events = kept
            case "post", "experiments":
                self.experiments[body["id"]] = body
                return 201, None
            case "get", "experiments":
                wanted = self._query.of["datasetId"][0]
                shown = [
                    {
                        "id": name, "name": each["name"], "dataset_name": each["dataset_name"],
                        "trace_count": len({v["trace_id"] for v in self.links.values() if v["experiment_id"] == name}),
                    }
                    for name, each in self.experiments.items()
                    if _dataset_id(names, each["dataset_name"]) == wanted
                ]  # fmt: skip
                return 200, {"content": shown, "page": 1, "size": len(shown), "total": len(shown)}
            case "post", "experiments/items":
                self.links |= {item["id"]: item for item in body["experiment_items"]}
            case "post", "experiments/delete":
                for name in body["ids"]:
                    del self.experiments[name]
                self.links = {k: v for k, v in self.links.items() if v["experiment_id"] in self.experiments}
            case _:
                return 404, {"message": "no route"}
        return 204, None

    def _delete(self, body: Any, errors: list[str]) -> tuple[int, Any]:
        if errors:
            self.complaints += errors
            return 400, {"errors": errors}
        if self._failure != "forgetful":
            self.traces = {name: trace for name, trace in self.traces.items() if name not in body["ids"]}
        return 204, None

    def _key(self) -> str:
        """What the last request was authorised by."""
        return {name.lower(): value for name, value in self.headers[-1].items()}.get("authorization", "nothing")

    def unknown_fields(self) -> set[str]:
        """Fields that the description does not know."""
        return self._server.contract.unknown


def _dataset_id(names: list[str], name: str) -> str:
    return str(UUID(int=7 << 76 | 2 << 62 | names.index(name))) if name in names else ""


def _of_now(identifier: UUID) -> bool:
    return identifier.version == 7 and abs((identifier.int >> 80) - time() * 1000) < _HALF_A_DAY


def lines(path: Path) -> list[dict[str, Any]]:
    """What an event file holds."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
