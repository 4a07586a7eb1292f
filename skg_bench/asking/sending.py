"""Sending one request to a server, with retries."""

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skg_bench.asking.refusals import PATH, check_response, no_tls, payable, server_reason
from skg_bench.core.bodies import ACCEPTED_ENCODING, received_async, waiting_time
from skg_bench.core.errors import UsageError, install_hint

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

BACKOFF = 0.25  # [s] that the first wait takes at most; each later one twice as much, to 8 s. Our choice


class NoAnswerError(Exception):
    """No answer came, and another try may bring one."""

    def __init__(self, words: str, *, after: float = 0.0) -> None:
        super().__init__(words)
        self.after = after  # seconds that the server asks to wait


class NoServerError(NoAnswerError):
    """Not even a response came."""


@dataclass(slots=True)
class Contact:
    """State that this process shares among the asks of a server's model."""

    answered: bool = False
    form: int = 0  # in wire.FORMS: the first that the server has not refused
    form_taken: bool = False  # an answer came in this form


@dataclass(frozen=True, slots=True)
class ChatServer:
    """Server to which a prompt goes, and how often it is tried."""

    address: str
    model: str
    key: str | None = field(repr=False)
    tries: int
    connecting: float  # [s] that making a connection may take
    troubles: list[Exception] = field(default_factory=list)  # of all tries

    async def post(self, content: bytes) -> "httpx.Response":
        """The response to a body: success, or an error that this very request has brought about.

        Raises NoAnswerError when all tries have failed, and UsageError for what no retry can mend.
        """
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.tries),
            wait=_wait,
            retry=retry_if_exception_type(NoAnswerError),
            reraise=True,
        )
        return await retrying(self._post_once, content)

    async def _post_once(self, content: bytes) -> "httpx.Response":
        response = await self._response(content)
        status = response.status_code
        if (status in (408, 409, 429) or status >= 500) and not payable(response):
            words = f"HTTP {status}: {server_reason(response, self.key)}".removesuffix(": ")
            after = waiting_time(response.headers.get("Retry-After", ""))
            self.troubles.append(NoAnswerError(words, after=after))
            raise self.troubles[-1]
        check_response(response, self.address, self.model, self.key)
        return response

    async def _response(self, content: bytes) -> "httpx.Response":
        import httpx

        headers = {"Content-Type": "application/json", **ACCEPTED_ENCODING}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        timeout = httpx.Timeout(None, connect=self.connecting)
        idle = _IDLE.setdefault((os.getpid(), self.address), [])
        client = idle.pop() if idle else _client(self.address)
        try:
            asking = client.stream("POST", self.address + PATH, content=content, headers=headers, timeout=timeout)
            async with asking as response:
                return await received_async(response, self.address)
        except (httpx.RequestError, UnicodeError) as error:  # UnicodeError: of hosts that cannot have a name
            self.troubles.append(_no_server(self.address, error))
        finally:
            idle.append(client)
        raise self.troubles[-1]  # out here, as httpx's error has the request, and with it the key


_CONTACTS: dict[tuple[int, str, str], Contact] = {}  # by process id too: a forked child begins anew
_IDLE: "dict[tuple[int, str], list[httpx.AsyncClient]]" = {}  # clients that wait for work, with their connections
_TLS: dict[int, ssl.SSLContext] = {}


def is_loopback(address: str) -> bool:
    """Is this the address of a server on this machine?"""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_libraries() -> None:
    """Raises UsageError where what a request needs is not installed."""
    try:
        import httpx  # noqa: F401
        import jsonschema  # noqa: F401
        import tenacity  # noqa: F401
    except ImportError as error:
        raise UsageError(f"curator.llm=endpoint needs {error.name}: {install_hint('llm')}") from error


def contact(address: str, model: str) -> Contact:
    """State shared among the asks of a model."""
    return _CONTACTS.setdefault((os.getpid(), address, model), Contact())


def _client(address: str) -> "httpx.AsyncClient":
    """A client for one request at a time. One client of 64 connections looks at all of them several times a request: a
    prompt then took 6.9 ms of the processor, and takes 1.7 (httpcore 1.0.9).
    """
    import httpx

    try:
        if (context := _TLS.get(os.getpid())) is None:  # 20 ms
            context = _TLS[os.getpid()] = httpx.create_ssl_context()
        # Some networks reach the world by HTTPS_PROXY only. HTTP_PROXY must not get what is meant for this machine.
        transport = httpx.AsyncHTTPTransport(verify=context) if is_loopback(address) else None
        return httpx.AsyncClient(verify=context, transport=transport, follow_redirects=False)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        raise UsageError(
            "the proxy or the certificates that the environment names (HTTPS_PROXY, SSL_CERT_FILE, ...) cannot be "
            f"used: {error}; correct these variables, or unset them"
        ) from error


def _no_server(address: str, error: Exception) -> Exception:
    """Error of a request without a response: UsageError where no connection can be made safe, else NoServerError."""
    import httpx

    for cause in _causes(error) if isinstance(error, httpx.ConnectError) else ():
        if isinstance(cause, ssl.SSLError):
            return no_tls(address, cause)
    return NoServerError(f"{type(error).__name__}: {error}".removesuffix(": "))


def _wait(state: "RetryCallState") -> float:
    """Exponential, with full jitter, and no less than the server asks for."""
    from tenacity import wait_random_exponential

    trouble = state.outcome.exception() if state.outcome else None
    after = trouble.after if isinstance(trouble, NoAnswerError) else 0.0
    return max(after, wait_random_exponential(multiplier=BACKOFF, max=8)(state))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
