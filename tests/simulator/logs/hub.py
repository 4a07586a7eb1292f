"""A hub on this machine with one data set, as far as the `datasets` library asks."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

NAME, COMMIT, FILE = "some/corpus", "a" * 40, "data/test-00000-of-00001.parquet"
_ABSENT = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}


class Hub:
    """Serves one Parquet file as the data set's split `test`; `paths` are those that were asked for."""

    def __init__(self, content: bytes) -> None:
        self.paths: list[str] = []
        outer = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                outer.paths.append(path)
                file = {"type": "file", "path": FILE, "size": len(content), "oid": "b" * 40}
                folder = {"type": "directory", "path": "data", "size": 0, "oid": "c" * 40}
                about = f"/api/datasets/{NAME}"
                if path in (about, f"{about}/revision/{COMMIT}"):
                    self._say(200, json.dumps({"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": FILE}]}).encode())
                elif path.startswith(f"{about}/tree/{COMMIT}"):
                    self._say(200, json.dumps([file if path.endswith("/data") else folder]).encode())
                elif path == f"/datasets/{NAME}/resolve/{COMMIT}/{FILE}":
                    first, last = self.headers.get("range", f"bytes=0-{len(content) - 1}")[6:].split("-")
                    part = content[int(first) : int(last or len(content) - 1) + 1]
                    place = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
                    self._say(206, part, {"ETag": '"x"', "X-Repo-Commit": COMMIT, "Content-Range": place})
                else:
                    self._say(404, b"{}", _ABSENT)

            def _say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()
