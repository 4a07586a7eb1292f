"""Opik's REST description as a contract: a server that checks each request against it, keeps it, and answers."""

import gzip
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

DESCRIPTION = Path(__file__).parent / "opik" / "openapi.yaml"
METHODS = ("get", "post", "put", "patch", "delete")
Operation = Mapping[str, Any]
Answer = Callable[[str, str, Any, list[str]], tuple[int, Any]]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a bare `=` is a text."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _loader, node: node.value)


class Contract:
    """The routes of the description, and what a request's body may hold."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.unknown: set[str] = set()  # fields that bodies had and the description does not know
        self._plain: set[str] = set()  # items of lists in which nothing is malformed or unknown, whatever their ids
        self._validator = extend(Draft202012Validator, {"items": self._item_errors, "uniqueItems": _repeated})
        self._components = description["components"]
        self._routes = [
            (method, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)), path, operation)
            for path, operations in description["paths"].items()
            for method, operation in operations.items()
            if method in METHODS
        ]
        self._routes.sort(key=lambda route: route[2].count("{"))

    def route(self, method: str, path: str) -> tuple[str, Operation] | None:
        """The route of a path, and its operation."""
        matching = (
            (name, operation) for verb, rx, name, operation in self._routes if verb == method and rx.fullmatch(path)
        )
        return next(matching, None)

    def errors(self, operation: Operation, body: Any) -> list[str]:
        """What is malformed in a body; a field that is null counts as left out."""
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return []
        body = _without_nulls(body)
        self.unknown |= self._unknown_fields(schema, body, "")
        whole = {"$schema": Draft202012Validator.META_SCHEMA["$id"], "components": self._components, **schema}
        errors = self._validator(whole).iter_errors(body)
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:120]}" for error in errors]

    def _item_errors(self, validator: Any, schema: Any, items: Any, _: Any) -> Iterator[ValidationError]:
        """What is malformed in the items of a list. One that was sent before, under whatever ids, is looked at once."""
        if not isinstance(items, list):
            return
        for place, item in enumerate(items):
            key = _key("errors", schema, item)
            if key not in self._plain:
                errors = list(validator.descend(item, schema, path=place))
                if not errors:
                    self._plain.add(key)
                yield from errors

    def _unknown_fields(self, schema: Mapping[str, Any], body: Any, path: str) -> set[str]:
        schema = self._resolved(schema)
        if isinstance(body, list) and "items" in schema:
            return set().union(*(self._unknown_of_item(schema["items"], item, f"{path}[]") for item in body))
        if not isinstance(body, dict) or "properties" not in schema or schema.get("additionalProperties"):
            return set()
        fields, unknown = schema["properties"], {f"{path}.{key}" for key in body if key not in schema["properties"]}
        return unknown.union(
            *(self._unknown_fields(fields[key], body[key], f"{path}.{key}") for key in body if key in fields)
        )

    def _unknown_of_item(self, schema: Mapping[str, Any], item: Any, path: str) -> set[str]:
        if (key := _key("unknown", schema, item)) in self._plain:
            return set()
        unknown = self._unknown_fields(schema, item, path)
        if not unknown:
            self._plain.add(key)
        return unknown

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            target: Any = {"components": self._components}
            for key in schema["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            schema = target
        return schema


def _repeated(_: Any, unique: bool, items: Any, __: Any) -> Iterator[ValidationError]:
    """Whether two items of a list are the same, by their texts: jsonschema compares each with each."""
    if unique and isinstance(items, list) and len({json.dumps(item, sort_keys=True) for item in items}) < len(items):
        yield ValidationError("an item stands there twice")


def _key(kind: str, schema: Any, item: Any) -> str:
    """Text of an item of a list; of ids, which are new with each delivery, the type alone."""
    if isinstance(item, dict):
        item = {key: type(item[key]).__name__ if key.endswith("id") else item[key] for key in item}
    return json.dumps([kind, schema, item])


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


@cache
def contract() -> Contract:
    """The committed description, which is read once, as that takes seconds."""
    return Contract(yaml.load(DESCRIPTION.read_text("utf-8"), _Loader))  # noqa: S506  a safe loader


class Handler(BaseHTTPRequestHandler):
    """One request: unpacked, checked, and answered."""

    protocol_version = "HTTP/1.1"
    server: "ContractServer"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_PUT(self) -> None:
        self._respond()

    def _respond(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        body = json.loads(raw) if raw else None
        method, path = self.command.lower(), self.path.split("?")[0]
        match = self.server.contract.route(method, path)
        errors = ["the description has no such route"] if match is None else []
        if match is not None and body is not None:
            errors = self.server.contract.errors(match[1], body)
        status, answer = self.server.answer(method, path if match is None else match[0], body, errors)
        content = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class ContractServer(ThreadingHTTPServer):
    """Serves on a free port of this machine, in threads of this process, until it is shut down.

    `answer(method, route, body, errors)` gives status and body of the answer to a request.
    """

    def __init__(self, handler: type[Handler], answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.contract, self.answer = contract(), answer
        self.contract.unknown.clear()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that a test cuts is no error."""
