"""A small HTTP/1.1 server for this machine alone: bodies are read whole, and each request has one handler."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11

from skg_bench.core.bodies import LARGEST_BODY

LOOPBACK = "127.0.0.1"  # the only address that anything here listens on
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that came whole."""

    method: str
    path: str  # without what follows a question mark
    headers: Mapping[str, str]  # by their names in small letters
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response; more than one part is sent as a stream of chunks."""

    status: int
    parts: Sequence[bytes]
    kind: str = "application/json"
    headers: Sequence[tuple[str, str]] = field(default=())


def json_reply(value: Any, status: int = 200) -> HttpReply:
    """A response with a value as JSON."""
    return HttpReply(status, (json.dumps(value).encode(),))


Handler = Callable[[HttpRequest], Awaitable[HttpReply]]


class LocalServer:
    """Serves on a port of 127.0.0.1 from `listen` to `close`, on the event loop of who opens it."""

    def __init__(self, handler: Handler) -> None:
        self._handler, self._peers = handler, set[_Peer]()
        self._server: asyncio.Server | None = None

    async def listen(self, port: int = 0) -> int:
        """Begin to listen; 0: on a free port. Returns the port. Raises OSError where it cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Peer(self._handler, self._peers), LOOPBACK, port, backlog=1024)
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    def close(self) -> None:
        """Take no more connections, and hang up on those that there are."""
        if self._server is not None:
            self._server.close()
        for peer in list(self._peers):
            peer.hang_up()


class _Peer(asyncio.Protocol):
    """A connection: one request after the other."""

    def __init__(self, handler: Handler, peers: "set[_Peer]") -> None:
        self._handler, self._peers = handler, peers
        self._connection = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  what create_server gives to a Protocol
        self._transport = transport
        self._peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.discard(self)
        if self._task is not None:
            self._task.cancel()

    def hang_up(self) -> None:
        """Close without waiting for what is under way."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._connection.receive_data(data)
        self._read()

    def eof_received(self) -> None:
        self._connection.receive_data(b"")
        self._read()

    def _read(self) -> None:
        try:
            while (event := self._connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.ConnectionClosed):
                    self._transport.close()
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)
            return
        if self._connection.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def _take(self, event: Any) -> None:
        match event:
            case h11.Request():
                self._request, self._body = event, bytearray()
            case h11.Data(data=data):
                self._body += data
                if len(self._body) > LARGEST_BODY:
                    raise h11.RemoteProtocolError("too long", error_status_hint=413)
            case h11.EndOfMessage() if self._request is not None:
                self._task = asyncio.get_running_loop().create_task(self._respond(self._request, bytes(self._body)))

    def _refuse(self, status: int) -> None:
        if self._connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(h11.Response(status_code=status, headers=[("Content-Length", "0"), ("Connection", "close")]))
        self._transport.close()

    async def _respond(self, request: h11.Request, body: bytes) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        path = request.target.decode("latin-1").partition("?")[0]
        try:
            reply = await self._handler(HttpRequest(request.method.decode("latin-1"), path, headers, body))
        except Exception:  # noqa: BLE001  logged, and said to who asked
            _LOG.exception("a request to %s failed", path)
            reply = json_reply({"error": {"message": "the gateway failed; its log says why"}}, 500)
        if self._transport.is_closing():
            return
        whole = len(reply.parts) == 1
        framing = ("Content-Length", str(len(reply.parts[0]))) if whole else ("Transfer-Encoding", "chunked")
        named = [("Content-Type", reply.kind), framing, *reply.headers]
        self._send(
            h11.Response(status_code=reply.status, headers=named),
            *(h11.Data(data=part) for part in reply.parts),
            h11.EndOfMessage(),
        )
        if self._connection.our_state is h11.MUST_CLOSE:
            self._transport.close()
            return
        self._connection.start_next_cycle()
        self._read()

    def _send(self, *events: Any) -> None:
        self._transport.write(b"".join(self._connection.send(event) or b"" for event in events))
