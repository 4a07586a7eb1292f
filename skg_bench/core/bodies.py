"""Bodies of responses, which a server may never end: they are read piece by piece, up to a limit.

A body that was packed is unpacked here, not by the library that received it: a few kilobytes may become gigabytes in
one call. For the same reason one packing is taken and no other, nor several on top of one another.
"""

import zlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from skg_bench.core.errors import UsageError

LARGEST_BODY = 8 * 2**20  # bytes of a body, after it was unpacked; an answer of a model has some kilobytes
ACCEPTED_ENCODING = {"Accept-Encoding": "gzip"}  # header of a request: how its response may be packed
_EITHER = 32 + zlib.MAX_WBITS  # gzip or zlib, as the first bytes say
_OF_PACKING = ("content-encoding", "content-length", "transfer-encoding")

Response = TypeVar("Response", bound=Any)  # httpx.Response: core does not depend on it


class _Body:
    """Bytes that came so far, unpacked."""

    def __init__(self, response: Any, address: str) -> None:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("", "identity", "gzip", "x-gzip"):
            raise UsageError(f"{address} compresses its answer as {packing[:40]!r}; valid is gzip, or no compression")
        self._address, self._received, self._length, self._parts = address, 0, 0, list[bytes]()
        self._unpack = zlib.decompressobj(_EITHER) if "gzip" in packing else None

    def add(self, raw: bytes) -> None:
        """Take what came next.

        Raises UsageError for more than `LARGEST_BODY`, and for what is no gzip.
        """
        self._received += len(raw)
        try:
            part = raw if self._unpack is None else self._unpack.decompress(raw, LARGEST_BODY - self._length + 1)
        except zlib.error as error:
            raise UsageError(
                f"{self._address} sent gzip that is damaged ({error}); try again, or check the address"
            ) from error
        self._length += len(part)
        self._parts.append(part)
        if max(self._received, self._length) > LARGEST_BODY:
            raise UsageError(
                f"{self._address} answers with more than {LARGEST_BODY:,} bytes, the most that is read; check "
                "the address"
            )

    def whole(self, response: Response) -> Response:
        """The response with this body."""
        headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in _OF_PACKING]
        made: Response = type(response)(
            response.status_code, headers=headers, content=b"".join(self._parts), request=response.request
        )
        return made


def received(response: Response, address: str) -> Response:
    """A response that is being streamed, read whole.

    Raises UsageError, which names `address`, for a body that does not end in time, or is packed otherwise.
    """
    body = _Body(response, address)
    for raw in response.iter_raw():
        body.add(raw)
    return body.whole(response)


async def received_async(response: Response, address: str) -> Response:
    """`received`, for a client that waits for several responses."""
    body = _Body(response, address)
    async for raw in response.aiter_raw():
        body.add(raw)
    return body.whole(response)


def waiting_time(header: str) -> float:
    """Seconds of a header such as Retry-After, which has seconds or a date; 0: it cannot be read."""
    if header.isdecimal():
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
