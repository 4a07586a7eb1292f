"""A system under test that passes each request on to its model: python pass_on.py CONFIG, a file of JSON.

Of the standard library alone, as a stand-in for gateways that this project does not install. The other systems here
put a memory before `ask`.
"""

import asyncio
import json
import sys
from pathlib import Path

Answer = dict[str, object]


async def read(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """First line and body of a message of HTTP; a body of chunks is not read, as none is sent here."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return head.split("\r\n")[0], await reader.readexactly(int(fields.get("content-length", "0")))


class PassOn:
    def __init__(self, config: dict[str, object]) -> None:
        self.host, self.port = str(config["upstream"]).split("/")[2].split(":")
        self.config, self.key = config, str(config["key"])
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: bytes) -> bytes:
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(self.host, int(self.port))
        head = f"POST /v1{path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        line, answer = await read(reader)
        self.idle.append((reader, writer))
        if " 200 " not in f"{line} ":
            raise ValueError(f"{line}: {answer.decode()}")
        return answer

    async def ask(self, request: dict[str, object]) -> bytes:
        """The answer to a chat completion; what is sent on has no `user`, as with LiteLLM."""
        kept = {"model": request["model"], "messages": request["messages"]}
        return await self.post("/chat/completions", json.dumps(kept).encode())

    async def respond(self, line: str, body: bytes) -> bytes:
        return await self.ask(json.loads(body)) if line.startswith("POST") else b'{"ready": true}'

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                line, body = await read(reader)
                status = "200 OK"
                try:
                    answer = await self.respond(line, body)
                except (KeyError, ValueError) as error:
                    status, answer = "500 Oh", json.dumps({"error": {"message": str(error)}}).encode()
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
        except asyncio.IncompleteReadError:
            writer.close()


def serve(made: type[PassOn]) -> None:
    async def go() -> None:
        config = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        server = await asyncio.start_server(made(config).serve, "127.0.0.1", int(config["port"]))
        await server.serve_forever()

    asyncio.run(go())


if __name__ == "__main__":
    serve(PassOn)
