"""The gateway: what it takes, whose request it is, and that nobody else is served."""

import asyncio
import base64
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from skg_bench.asking.chat_requests import ChatRequest, chat_reply
from skg_bench.asking.gateway import Gateway
from skg_bench.asking.http_client import BrokenExchangeError, LocalClient
from skg_bench.asking.http_server import HttpReply, HttpRequest, LocalServer
from skg_bench.asking.recorded_asks import Ask
from skg_bench.asking.wire import ChatChoice, in_chat
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16
from tests.llm.asks import endpoint
from tests.llm.server import Server


def embed(texts: Sequence[str]) -> I16:
    if "unknown" in texts:
        raise UsageError("1 of 1 texts have no vector")
    return np.array([[4000 if i == len(text) % 3 else 0 for i in range(3)] for text in texts], np.int16)


async def echo(request: ChatRequest) -> ChatChoice:
    return in_chat(f"Answer to {request.last_words}")


def body(words: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": words}], **more}).encode()


def with_gateway(use: Callable[[Gateway, LocalClient, dict[str, str]], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        gateway = Gateway(embed)
        await gateway.listen()
        client = LocalClient(gateway.address)
        try:
            return await use(gateway, client, {"Authorization": f"Bearer {gateway.key}"})
        finally:
            client.close()
            gateway.close()

    return asyncio.run(go())


def test_a_request_is_answered_by_the_model_of_its_message_and_kept_raw() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async with gateway.call("ann", "add milk", echo) as call:
            tools = [{"type": "function", "function": {"name": "f"}}]
            answer = await client.request("POST", "/chat/completions", body("add milk", tools=tools, seed=3), key)
        said = json.loads(answer.body)
        assert (answer.status, said["choices"][0]["message"]["content"]) == (200, "Answer to add milk")
        assert said["choices"][0]["finish_reason"] == "stop"
        assert call.requests[0].body["tools"] == tools

    with_gateway(use)


def test_a_key_is_of_what_decides_the_answer_in_any_order_of_fields_and_not_of_who_asks_or_how_it_is_sent() -> None:
    def key(raw: bytes) -> bytes:
        return ChatRequest.of(raw).key

    swapped = json.dumps({"seed": 1, **json.loads(body("a"))}).encode()
    assert key(body("a", seed=1)) == key(swapped) == key(body("a", seed=1, stream=True, user="ann"))
    others = [body("b"), body("a"), body("a", seed=2), body("a", seed=1, tools=[]), body("a", seed=1, tool_choice="x")]
    assert len({key(body("a", seed=1)), *map(key, others)}) == 6


def test_a_stream_says_the_same_in_events() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        words = "add milk, " * 12
        more = {"stream": True, "stream_options": {"include_usage": True}}
        async with gateway.call("ann", words, echo):
            answer = await client.request("POST", "/chat/completions", body(words, **more), key)
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in answer.body.decode().split("\n\n") if line]
        assert lines.pop() == "[DONE]"
        events = [json.loads(line) for line in lines]
        said = "".join(event["choices"][0]["delta"].get("content", "") for event in events if event["choices"])
        assert said == f"Answer to {words}"
        assert events[-1]["usage"]["completion_tokens"] > 0
        assert len(events) > 5

    with_gateway(use)


@pytest.mark.parametrize("packed", [False, True])
def test_vectors_are_those_of_the_embedder(packed: bool) -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        request = {"model": "m", "input": ["a", "bb"], **({"encoding_format": "base64"} if packed else {})}
        answer = await client.request("POST", "/embeddings", json.dumps(request).encode(), key)
        rows = [row["embedding"] for row in json.loads(answer.body)["data"]]
        if packed:
            rows = [np.frombuffer(base64.b64decode(row), "<f4").tolist() for row in rows]
        assert rows == [[0, 1, 0], [0, 0, 1]]
        answer = await client.request("POST", "/embeddings", b'{"input": "unknown"}', key)
        assert answer.status == 400
        assert "no vector" in str(gateway.trouble)

    with_gateway(use)


def test_others_are_refused_and_nothing_but_this_machine_can_connect() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        chat = "/chat/completions"
        async with gateway.call("ann", "add milk", echo) as call:
            wrong = {"Authorization": "Bearer sk-1234"}
            statuses = [
                (await client.request("POST", chat, body("add milk"))).status,
                (await client.request("POST", chat, body("add milk"), wrong)).status,
                (await client.request("GET", "/nothing", b"", key)).status,
                (await client.request("POST", chat, b"{", key)).status,
                (await client.request("POST", chat, b'{"messages": []}', key)).status,
                (await client.request("POST", chat, body("add milk", seed=float("nan")), key)).status,
                (await client.request("POST", "/embeddings", b'{"input": [1, 2]}', key)).status,
            ]
            assert statuses == [401, 401, 404, 400, 400, 400, 400]
            assert call.requests == []
            models = await client.request("GET", "/models", b"", key)
            assert json.loads(models.body)["data"][0]["id"] == "skg-bench"
        port = int(gateway.address.split(":")[2].split("/")[0])
        name = socket.gethostbyname(socket.gethostname())
        if not name.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((name, port), timeout=2)

    with_gateway(use)


async def _named(name: str, request: ChatRequest) -> ChatChoice:
    return in_chat(name)


def test_whose_request_it_is_is_known_by_user_or_by_words_and_else_refused() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async def asked(words: str, **more: Any) -> tuple[int, str]:
            answer = await client.request("POST", "/chat/completions", body(words, **more), key)
            said = json.loads(answer.body)
            return answer.status, said["choices"][0]["message"]["content"] if answer.status == 200 else ""

        def model(name: str) -> Callable[[ChatRequest], Awaitable[ChatChoice]]:
            return lambda request: _named(name, request)

        assert (await asked("add milk"))[0] == 409
        async with (
            gateway.call("ann", "add milk", model("ann")),
            gateway.call("bob", "please add milk", model("bob")),
            gateway.call("eve", "call Anna", model("eve")),
        ):
            assert await asked("add milk") == (200, "ann")
            assert await asked("please add milk") == (200, "bob")
            assert await asked("You remember: add tea.\nRequest: please add milk") == (200, "bob")
            assert await asked("call Anna", user="bob") == (200, "eve")  # the words say more than a name
            assert await asked("rewritten by an agent", user="eve") == (200, "eve")
            assert (await asked("rewritten by an agent"))[0] == 409
            assert (await asked("add milk? call Anna?"))[0] == 409
        assert len(gateway.unclear) == 3

    with_gateway(use)


def test_what_is_asked_for_a_user_after_the_answer_is_charged_to_nobody_else() -> None:
    """Once, the one message under way paid for it, and was given what another user's memory says."""
    first, second = (f"user-{number:016x}" for number in (1, 2))

    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async with gateway.call(second, "yes", echo) as call:
            for words in ("Summarise: yes", "yes"):
                answer = await client.request("POST", "/chat/completions", body(words, user=first), key)
                assert answer.status == 409
            answer = await client.request("POST", "/chat/completions", body("rewritten", user="agent"), key)
            assert (answer.status, len(call.requests)) == (200, 1)
        assert set(gateway.unclear) == {f"a request came for {first}, whose message is answered"}

    with_gateway(use)


def test_two_messages_of_the_same_words_are_never_under_way_at_once() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        most: dict[str, int] = {}
        now: dict[str, int] = {}

        async def one(user: str, words: str) -> str:
            async with gateway.call(user, words, lambda request: _named(user, request)):
                now[words] = now.get(words, 0) + 1
                most[words] = max(most.get(words, 0), now[words])
                answer = await client.request("POST", "/chat/completions", body(words), key)
                now[words] -= 1
                return str(json.loads(answer.body)["choices"][0]["message"]["content"])

        pairs = [(f"user {i}", f"words {i % 4}") for i in range(40)]
        assert await asyncio.gather(*(one(*pair) for pair in pairs)) == [user for user, _ in pairs]
        assert set(most.values()) == {1}
        assert gateway.unclear == []

    with_gateway(use)


def test_an_error_of_the_model_is_kept_for_who_answers_the_message() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async def broken(request: ChatRequest) -> ChatChoice:
            raise UsageError("the budget is spent")

        async with gateway.call("ann", "add milk", broken) as call:
            assert (await client.request("POST", "/chat/completions", body("add milk"), key)).status == 500
        assert str(call.trouble) == "the budget is spent"

    with_gateway(use)


def test_a_client_of_another_kind_is_served_over_one_connection_and_many() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async with httpx.AsyncClient(headers=key, base_url=gateway.address, trust_env=False) as other:

            async def one(i: int) -> str:
                async with gateway.call(str(i), f"words {i}", echo):
                    answer = await other.post("/chat/completions", content=_pieces(body(f"words {i}")))
                    return str(answer.json()["choices"][0]["message"]["content"])

            said = [await one(0), *await asyncio.gather(*map(one, range(1, 30)))]
            assert said == [f"Answer to words {i}" for i in range(30)]

    with_gateway(use)


async def _pieces(whole: bytes) -> Any:
    for at in range(0, len(whole), 10):
        yield whole[at : at + 10]


@pytest.mark.parametrize(
    ("sends", "why"),
    [
        (b"", "before the answer was whole"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "before the answer was whole"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "before the answer was whole"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP response"),
    ],
)
def test_half_a_response_and_none_are_told(sends: bytes, why: str) -> None:
    async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sends)
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(bad, "127.0.0.1", 0)
        client = LocalClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(BrokenExchangeError, match=why):
            await client.request("GET", "/")
        server.close()
        with pytest.raises(BrokenExchangeError, match="no connection"):
            await client.request("GET", "/")

    asyncio.run(go())


def test_a_port_that_is_taken_is_named() -> None:
    async def go() -> None:
        first, second = Gateway(embed), Gateway(embed)
        await first.listen()
        port = int(first.address.split(":")[2].split("/")[0])
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
            await second.listen(port)
        first.close()

    asyncio.run(go())


def test_what_is_no_http_or_too_long_is_refused_and_the_server_goes_on() -> None:
    seen: list[str] = []

    async def handler(request: HttpRequest) -> HttpReply:
        seen.append(request.path)
        if request.path == "/raise":
            raise KeyError("no")
        return HttpReply(200, (request.body,))

    async def raw(port: int, words: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(words)
        answer = b""
        with suppress(ConnectionResetError):  # of a server that has not read all of it
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 10)
        writer.close()
        return answer

    async def go() -> None:
        server = LocalServer(handler)
        port = await server.listen()
        assert (await raw(port, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert (await raw(port, b"GET / HTTP/1.1\r\nA: " + b"x" * 10**6)).startswith(b"HTTP/1.1 431")
        long = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000
        assert await raw(port, long) in (b"HTTP/1.1 413 \r\n", b"")
        assert seen == []
        client = LocalClient(f"http://127.0.0.1:{port}")
        assert (await client.request("GET", "/raise")).status == 500
        assert (await client.request("POST", "/", b"fine")).body == b"fine"
        client.close()
        server.close()

    asyncio.run(go())


CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"what": "milk"}'}}


def test_a_request_below_a_job_is_answered_by_the_job_while_it_is_open_and_by_nobody_else() -> None:
    async def use(gateway: Gateway, client: LocalClient, key: dict[str, str]) -> None:
        async def job(request: ChatRequest) -> HttpReply:
            return chat_reply(request, ChatChoice({"tool_calls": [CALL]}, "tool_calls"), (7, 3))

        async def asked(path: str, content: bytes, headers: dict[str, str] = key) -> int:
            return (await client.request("POST", path, content, headers)).status

        address = gateway.open_job("17", job)
        path = address.removeprefix(gateway.address) + "/chat/completions"
        answer = await client.request("POST", path, body("add milk", tools=[]), key)
        said = json.loads(answer.body)
        assert said["choices"][0]["message"] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
        assert said["choices"][0]["finish_reason"] == "tool_calls"
        assert said["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        streamed = (await client.request("POST", path, body("add milk", stream=True), key)).body.decode()
        events = [json.loads(event[6:]) for event in streamed.split("\n\n") if event.startswith("data: {")]
        deltas = [event["choices"][0]["delta"] for event in events]
        assert [delta["tool_calls"] for delta in deltas if "tool_calls" in delta] == [[{"index": 0, **CALL}]]
        assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
        assert await asked(path, body("a"), {"Authorization": "Bearer sk-other"}) == 401
        assert await asked("/18/chat/completions", body("a")) == 404
        assert await asked(path, b"[") == 400
        with suppress(BrokenExchangeError):  # it may hang up before all of it is sent
            assert await asked(path, body("a" * 10 * 2**20)) == 413
        gateway.end_job("17")
        assert await asked(path, body("a")) == 404

    with_gateway(use)


def test_a_raw_prompt_has_what_decides_the_answer_but_for_what_the_run_decides() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    more = {"tools": tools, "tool_choice": "auto", "response_format": {"type": "json_object"}, "seed": 4}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "add milk"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ]
    fields = {**more, "messages": messages, "temperature": 1, "max_tokens": 50, "user": "ann", "stream": True}
    prompt = ChatRequest.of(json.dumps({"model": "m", **fields}).encode()).prompt(1, 99, recorded=True, redacted=False)
    assert prompt.raw == {**more, "messages": messages}
    assert (prompt.limit, prompt.draw, prompt.recorded, prompt.schema) == (50, 1, True, None)
    assert prompt.user == 'add milk\n\n{"what": "milk"}'  # what a reader of a recording looks for
    settings = {"model": "m", "temperature": 0.0, "top_p": 1.0}

    def key(**changes: Any) -> bytes:
        request = ChatRequest.of(json.dumps({"model": "m", **fields, **changes}).encode())
        return Ask(request.prompt(2, 99, recorded=False, redacted=False), settings).key

    assert key() == key(temperature=0, stream=False, model="other", user="bob")
    others: list[dict[str, Any]] = [
        {"tools": []},
        {"seed": 5},
        {"tool_choice": "none"},
        {"response_format": None},
        {"messages": messages[:1]},
    ]
    assert len({key(), *(key(**each) for each in others)}) == 6


def test_tools_reach_the_server_of_an_endpoint_and_their_calls_come_back() -> None:
    request = ChatRequest.of(body("add milk", tools=[{"type": "function"}], seed=9, temperature=2))
    prompt = replace(request.prompt(1, 80, recorded=False, redacted=False), draw=5)
    message = {"role": "assistant", "content": None, "tool_calls": [CALL], "annotations": []}
    given = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3}}
    with Server() as server:
        server.response = lambda *_: (200, {}, json.dumps(given).encode())  # type: ignore[method-assign]
        (answer,) = endpoint(server.address).complete([prompt])
    assert ChatChoice.of(answer.text) == ChatChoice({"tool_calls": [CALL]}, "tool_calls")
    assert (answer.end, answer.tokens_in) == ("ok", 3)
    (sent,) = server.bodies
    assert (sent["tools"], sent["seed"], sent["temperature"], sent["max_tokens"]) == ([{"type": "function"}], 9, 0, 80)
