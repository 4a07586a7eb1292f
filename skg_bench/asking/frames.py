"""Files of zstd frames, one after the other. The last is torn where a process was killed while it wrote."""

from collections.abc import Iterator

import pyarrow as pa

_MAGIC = b"\x28\xb5\x2f\xfd"
_LARGEST = 2**26  # bytes that a frame unpacks to: answers of one batch, each of some kilobytes
_PIECE = 2**16  # bytes: pyarrow keeps for ever what it made room for in a `read` that fails
_RLE = 1  # kind of a block that holds one byte, to be repeated


def frame(data: bytes) -> bytes:
    """`data` as one whole frame."""
    compressed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return compressed


def whole(data: bytes) -> Iterator[tuple[int, bytes]]:
    """End of each whole frame, and what is in it. A torn frame at the end is left out.

    Raises ValueError, after the frames before, where there is no frame, or a damaged one.
    """
    start = 0
    while start < len(data):
        end = _end(data, start)
        if end is None:
            if data.find(_MAGIC, start + 1) >= 0:  # others follow: it was damaged later
                raise ValueError(f"the frame at byte {start:,} is torn, and others follow it")
            return
        try:
            content = _unpacked(data[start:end])
        except OSError as error:
            raise ValueError(f"the frame at byte {start:,} is damaged ({error})") from error
        if len(content) > _LARGEST:
            raise ValueError(f"the frame at byte {start:,} unpacks to more than {_LARGEST:,} bytes")
        yield end, content
        start = end


def _unpacked(data: bytes) -> bytes:
    """Content of a frame, or the first bytes beyond `_LARGEST` of it.

    Raises OSError where it is damaged.
    """
    pieces, length = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while length <= _LARGEST and (piece := stream.read(_PIECE)):
            pieces.append(piece)
            length += len(piece)
    return b"".join(pieces)


def _end(data: bytes, start: int) -> int | None:
    """End of the frame that begins at `start`; None: after the data. See RFC 8878, section 3.1.1."""
    if not _MAGIC.startswith(data[start : start + 4]):
        raise ValueError(f"there is no zstd frame at byte {start:,}")
    if len(data) < start + 5:
        return None
    descriptor = data[start + 4]
    single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
    size = (single, 2, 4, 8)[descriptor >> 6]
    at = start + 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size
    last = 0
    while not last:
        if len(data) < at + 3:
            return None
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind = header & 1, header >> 1 & 3
        at += 3 + (1 if kind == _RLE else header >> 3)
    at += 4 * checksum
    return at if at <= len(data) else None
