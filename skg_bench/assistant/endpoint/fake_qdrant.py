"""Stand-in for Qdrant in memory, with the six calls of LiteLLM, beside a command that finds it.

`python -m skg_bench.assistant.endpoint.fake_qdrant COMMAND...` listens on a free port of 127.0.0.1, and runs the
command with QDRANT_API_BASE and a random QDRANT_API_KEY set. Cosines are exact, where Qdrant's own index of bits is
not.
"""

import asyncio
import json
import os
import secrets
import sys
from typing import Any

import numpy as np

from skg_bench.asking.http_server import LOOPBACK, HttpReply, HttpRequest, LocalServer, json_reply
from skg_bench.core.grid import F64


class FakeQdrant:
    """A collection, with a book of vectors and payloads for each value of the key by which requests filter."""

    def __init__(self, key: str) -> None:
        self._key, self._made = key, False
        self._books: dict[str, tuple[list[F64], list[Any]]] = {}

    async def handle(self, request: HttpRequest) -> HttpReply:
        """Answers a request of the client of LiteLLM."""
        if not secrets.compare_digest(request.headers.get("api-key", "").encode(), self._key.encode()):
            return json_reply({"status": {"error": "the key is another one"}}, 401)
        body = json.loads(request.body or b"{}")
        match request.method, request.path.split("/")[3:]:
            case "GET", ["exists"]:
                return json_reply({"result": {"exists": self._made}})
            case "PUT", ["points"]:
                for point in body["points"]:
                    vectors, payloads = self._books.setdefault(point["payload"]["litellm_cache_key"], ([], []))
                    vectors.append(_unit(point["vector"]))
                    payloads.append(point["payload"])
            case "POST", ["points", "search"]:
                return json_reply({"result": self._nearest(body)})
            case "PUT", []:
                self._made = True
        return json_reply({"result": True, "status": "ok"})  # of a description, and of an index of payloads, too

    def _nearest(self, body: Any) -> list[Any]:
        vectors, payloads = self._books.get(body["filter"]["must"][0]["match"]["value"], ([], []))
        if not vectors:
            return []
        cosines = np.stack(vectors) @ _unit(body["vector"])
        best = int(cosines.argmax())
        return [{"id": best, "score": float(cosines[best]), "payload": payloads[best]}]


def _unit(vector: list[float]) -> F64:
    made = np.array(vector)
    unit: F64 = made / np.linalg.norm(made)
    return unit


async def run_beside(command: list[str]) -> int:
    """Exit code of a command that finds the stand-in by its environment."""
    key = secrets.token_hex(24)
    server = LocalServer(FakeQdrant(key).handle)
    address = f"http://{LOOPBACK}:{await server.listen()}"
    seen = {**os.environ, "QDRANT_API_BASE": address, "QDRANT_API_KEY": key}
    process = await asyncio.create_subprocess_exec(*command, env=seen)
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run_beside(sys.argv[1:])))
