"""A system with a bad day: python bad_day.py CONFIG, with field `day`; it comes with the request of number `at`."""

import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.assistant.systems.pass_on import PassOn, read, serve

RAW = {
    "html": b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n<html>Welcome!</html>",
    "half": b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices": [{"mes',
    "500": b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops",
    "429": b"HTTP/1.1 429 Slow down\r\nContent-Length: 5\r\n\r\nlater",
    "stream": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\ndata: {"choices"',
}


class BadDay(PassOn):
    number = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        day, answer = str(self.config["day"]), b"{}"
        try:
            while True:
                line, body = await read(reader)
                request = json.loads(body or b"{}")
                self.number += line.startswith("POST")
                if line.startswith("POST") and self.number > int(str(self.config.get("at", 0))):
                    if day in RAW:
                        writer.write(RAW[day])
                        break
                    match day:
                        case "dies":
                            sys.stderr.write(f"out of luck, with {self.key}\n")
                            sys.stderr.flush()
                            os._exit(3)
                        case "hangs":
                            await asyncio.sleep(3600)
                        case "never asks":
                            answer = json.dumps({"choices": [{"message": {"content": "I know."}}]}).encode()
                        case "asks twice":
                            await self.ask(request)
                            answer = await self.ask(request)
                        case "own memory":  # in a file that its next instance finds
                            kept = Path(str(self.config["file"]))
                            memory = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
                            words = str(request["messages"]) + str(request["user"])
                            answer = memory.setdefault(words, (await self.ask(request)).decode()).encode()
                            kept.write_text(json.dumps(memory), "utf-8")
                        case "guesses":
                            said = json.loads(await self.ask(request))["choices"][0]["message"]["content"]
                            answer = json.dumps({"choices": [{"message": {"content": said[:-5] + "0000]"}}]}).encode()
                elif line.startswith("POST"):
                    answer = await self.ask(request)
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
        except asyncio.IncompleteReadError:
            pass
        writer.close()


if __name__ == "__main__":
    serve(BadDay)
