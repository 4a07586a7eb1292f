"""A system with an exact cache: python exact.py CONFIG, with fields `limit`, `all` and `by`.

`limit`: how many answers it remembers, for all users together (0: all of them). `all`: it gives any user's answers.
`by`: field of a request by which it keeps users apart, `user` unless it is given.
`kept`: a folder in which it keeps them. GET and POST of /memory give and take all that it remembers.
Rules of Redis stand-ins: the answer to a message that comes again is the first one; the oldest leaves first.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.assistant.systems.pass_on import PassOn, serve


class Exact(PassOn):
    def __init__(self, config: dict[str, object]) -> None:
        super().__init__(config)
        self.memory: dict[tuple[str, str], bytes] = {}
        self.limit = int(str(config.get("limit", 0)))
        self.file = Path(str(config["kept"]), "answers.json") if "kept" in config else None
        if self.file is not None and self.file.exists():
            self.put(self.file.read_bytes())

    def given(self) -> bytes:
        return json.dumps([[*key, answer.decode()] for key, answer in self.memory.items()]).encode()

    def put(self, data: bytes) -> None:
        self.memory = {(user, words): answer.encode() for user, words, answer in json.loads(data)}

    async def respond(self, line: str, body: bytes) -> bytes:
        match line.split()[:2]:
            case ["GET", "/memory"]:
                return self.given()
            case ["POST", "/memory"]:
                self.put(body)
                return b"{}"
        return await super().respond(line, body)

    async def ask(self, request: dict[str, object]) -> bytes:
        key = (
            "" if self.config.get("all") else str(request.get(str(self.config.get("by", "user")))),
            str(request["messages"]),
        )
        if key not in self.memory:
            answer = await super().ask(request)
            if request.get("store") is False:
                return answer
            self.memory[key] = answer
            if self.limit and len(self.memory) > self.limit:
                del self.memory[next(iter(self.memory))]
            if self.file is not None:
                self.file.parent.mkdir(exist_ok=True)
                self.file.write_bytes(self.given())
        return self.memory[key]


if __name__ == "__main__":
    serve(Exact)
