"""Prompts as files: `ROLE.md` with what the file is for, the words of the system, the schema of answers, and a request.

    ---
    role: reflector
    version: 1
    data: question, answer, feedback, skillbook
    ---
    What the model is and does.

    ```schema
    {"type": "object", ...}
    ```

    # Request
    What is asked, and where the data stand: {{data}}

A schema `null` takes any text. Data are one JSON block. What users, shops and skills say enters prompts there and
nowhere else.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from skg_bench.asking.asking import Prompt
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import raw_bytes

PROMPTS = Path(__file__).parents[1] / "prompts"
_FILE = re.compile(
    r"---\n(?P<front>.*?)\n---\n(?P<system>.*?)\n```schema\n(?P<schema>.*?)\n```\n+# Request\n(?P<request>.*)",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_BLOCK = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
_FRONT = ("role", "version", "data")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt, whose data are filled in for each ask."""

    role: str
    version: str
    data: tuple[str, ...]  # names of the fields of the JSON block
    system: str
    request: str  # with {{data}} where the block stands
    schema: Mapping[str, Any] | None  # None: any text will do
    digest: str  # of the file

    def ask(
        self, data: Mapping[str, Any], draw: int, limit: int, *, recorded: bool = False, redacted: bool = False
    ) -> Prompt:
        """The prompt with these data, a value for each name in `self.data`. See Prompt for the others."""
        return Prompt(self.role, self.system, self.filled(data), self.schema, draw, limit, recorded, redacted)

    def filled(self, data: Mapping[str, Any]) -> str:
        """The request with these data, a value for each name in `self.data`."""
        return _PLACEHOLDER.sub(lambda _: json_block({name: data[name] for name in self.data}), self.request)


def json_block(data: Mapping[str, Any]) -> str:
    """Data as the JSON block of a prompt. Backticks are escaped, so that no text in it can end the block."""
    written = _indented(data, "\n").replace("`", "\\u0060")
    return f"```json\n{written}\n```"


def _indented(value: Any, line: str) -> str:
    """JSON as `json.dumps` writes it with indent=1 and ensure_ascii=False, whose own encoder is slow with an indent.
    `line` begins a line on the level of the value.
    """
    text, inner = encode_basestring, f"{line} "
    match value:
        case str():
            return text(value)
        case dict() if value:
            pairs = [
                f"{text(key)}: {text(each) if type(each) is str else _indented(each, inner)}"  # most values are texts
                for key, each in value.items()
            ]
            return f"{{{inner}{f',{inner}'.join(pairs)}{line}}}"
        case list() | tuple() if value:
            return f"[{inner}{f',{inner}'.join([_indented(each, inner) for each in value])}{line}]"
        case None:
            return "null"
        case list() | tuple():
            return "[]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def data_of(prompt: Prompt) -> dict[str, Any]:
    """The data of a prompt.

    Raises ValueError for a prompt without a JSON block.
    """
    match = _BLOCK.search(prompt.user)
    if match is None:
        raise ValueError(f"the prompt of role {prompt.role!r} has no JSON block")
    data: dict[str, Any] = json.loads(match[1])
    return data


@cache
def load_prompt(role: str, folder: str | None, needs: tuple[str, ...]) -> PromptFile:
    """The prompt of a role, from `folder` or, where it is None, from the package; `needs` are the data that the role is
    given.

    Raises UsageError for a file that is missing or of another form, of another role, with a placeholder beside
    `{{data}}` or none, with data that the role does not have, and with a schema that is no JSON object.
    """
    path = (PROMPTS if folder is None else Path(folder)) / f"{role}.md"
    try:
        text = raw_bytes(path).decode()
    except FileNotFoundError as error:
        raise UsageError(f"there is no prompt file {path}; roles need a file each, named ROLE.md") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the prompt file {path} cannot be read: {error}") from error
    match = _FILE.fullmatch(text.replace("\r\n", "\n"))
    if match is None:
        raise UsageError(
            f"{path} is no prompt file: it needs front matter between two lines ---, a block ```schema ... ```, and "
            f"then a line '# Request'; {PROMPTS / f'{role}.md'} is an example"
        )
    front = _front(path, match["front"])
    if front["role"] != role:
        raise UsageError(f"{path} has role: {front['role']}; its name asks for {role}")
    data = tuple(name.strip() for name in front["data"].split(",") if name.strip())
    if unknown := [name for name in data if name not in needs]:
        raise UsageError(f"{path} has data: {unknown[0]!r}; the role {role} is given {', '.join(needs)}")
    placeholders = _PLACEHOLDER.findall(match["request"])
    if _PLACEHOLDER.search(match["system"]) or placeholders != ["data"]:
        wrong = [f"{{{{{name}}}}}" for name in _PLACEHOLDER.findall(match["system"])]
        wrong += [f"{{{{{name}}}}}" for name in placeholders if name != "data"]
        reason = f"unknown placeholder {wrong[0]}" if wrong else f"{len(placeholders)} times {{{{data}}}}"
        raise UsageError(
            f"{path}: {reason}; valid is {{{{data}}}}, once, below '# Request': data stand in one JSON block"
        )
    return PromptFile(
        role, front["version"], data, match["system"].strip(), match["request"].strip(), _schema(path, match["schema"]),
        sha256(text.encode()).hexdigest(),
    )  # fmt: skip


def _front(path: Path, text: str) -> dict[str, str]:
    front = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon or key not in _FRONT or not value.strip():
            raise UsageError(f"{path}: front matter {line!r}; valid lines are {', '.join(f'{k}: ...' for k in _FRONT)}")
        front[key] = value.strip()
    if missing := [key for key in _FRONT if key not in front]:
        raise UsageError(f"{path}: front matter lacks {', '.join(missing)}")
    return front


def _schema(path: Path, text: str) -> dict[str, Any] | None:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: its schema is no JSON: {error}") from error
    if not isinstance(schema, dict | None):
        raise UsageError(f"{path}: its schema must be a JSON object, or null where any text will do")
    return schema
