"""Asking a model: what a prompt costs the asking process beside the server's own time, 64 under way at once."""

import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.asking.asking import Prompt
from skg_bench.asking.prompts import load_prompt
from skg_bench.curator.shared.learning_job import LearningJob
from skg_bench.curator.shared.peer_jobs import PeerJobs, PeerSettings
from skg_bench.llm.endpoint import Endpoint
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted
from skg_bench.skillbook.skillbook import Skillbook

PROMPTS, AT_ONCE = 1000, 64
MARK, GATEWAY_MARK = 3.0, 4.0  # ms of core time
PLAYED = 1000  # requests a second
SECONDS = 0.05  # that the server takes for an answer
_NEEDS = ("question", "answer", "feedback", "skills_used", "skillbook")
_LEARNED = {"section": "answers", "content": "Give this answer again.", "atomicity_score": 0.9}
_ANSWER = {"analysis": "good", "helpful_skill_ids": [], "harmful_skill_ids": [], "new_learnings": [_LEARNED]}


@contextmanager
def server() -> Iterator[str]:
    """Address of a server in a process of its own, whose time does not count, that gives one answer to all."""
    parent, child = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(child,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{parent.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def _serve(child: Connection) -> None:
    message = {"role": "assistant", "content": json.dumps(_ANSWER)}
    usage = {"prompt_tokens": 400, "completion_tokens": 60}
    content = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()
    response = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    )

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                await asyncio.sleep(SECONDS)
                writer.write(response)
        except asyncio.IncompleteReadError:  # the client has hung up
            writer.close()

    async def serve() -> None:
        listener = await asyncio.start_server(serve_one, "127.0.0.1", 0, backlog=2 * AT_ONCE)
        child.send(listener.sockets[0].getsockname()[1])
        await listener.serve_forever()

    asyncio.run(serve())


def reflections(count: int) -> list[Prompt]:
    """Prompts of so many users."""
    file = load_prompt("reflector", None, _NEEDS)
    data = {"answer": "a sunny day", "feedback": {"rating": "ok"}, "skills_used": [], "skillbook": ""}
    return [file.ask({**data, "question": f"What is it like outside, {i}?"}, draw=i, limit=300) for i in range(count)]


def by_endpoint(address: str, prompts: Sequence[Prompt]) -> None:
    """As the package does it, answers checked against their schema."""
    model = Endpoint(
        address=address, model="none", key_from=None, temperature=0.0, top_p=1.0, seconds=60.0, in_flight=AT_ONCE,
        tries=1, usd_per_million_in=1.0, usd_per_million_cached=None, usd_per_million_out=1.0, sends_recorded=False,
    )  # fmt: skip
    ends = {completion.end for completion in model.complete(prompts)}
    if ends != {"ok"}:
        raise RuntimeError(f"what is timed does not work: {sorted(ends)}")


def by_httpx(address: str, prompts: Sequence[Prompt], clients: int) -> None:
    """Requests alone, by one client or by one for each connection."""
    import httpx

    bodies = iter([json.dumps({"messages": prompt.messages}).encode() for prompt in prompts])
    context = httpx.create_ssl_context()

    async def post(client: httpx.AsyncClient) -> None:
        for body in bodies:
            response = await client.post(f"{address}/chat/completions", content=body)
            response.json()

    async def post_all() -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        every = [httpx.AsyncClient(verify=context, limits=limits, timeout=60) for _ in range(clients)]
        await asyncio.gather(*(post(every[i % clients]) for i in range(AT_ONCE)))
        for client in every:
            await client.aclose()

    asyncio.run(post_all())


def costs(count: int = PROMPTS) -> tuple[float, float, float]:
    """Milliseconds of core time a prompt: by the endpoint, by httpx with a client for each connection, and with one
    client; in turn, the best of three.
    """
    prompts = reflections(count)
    ways: list[Callable[[str, Sequence[Prompt]], None]] = [
        by_endpoint,
        lambda address, part: by_httpx(address, part, AT_ONCE),
        lambda address, part: by_httpx(address, part, 1),
    ]
    spent: list[list[float]] = [[] for _ in ways]
    with server() as address:
        for way in ways:
            way(address, prompts[:AT_ONCE])  # imports and, for the endpoint, connections
        for _ in range(3):
            for way, times in zip(ways, spent, strict=True):
                begun = time.process_time()
                way(address, prompts)
                times.append(1000 * (time.process_time() - begun) / count)
    ours, apart, pooled = (min(times) for times in spent)
    return ours, apart, pooled


def through_gateway(count: int = PROMPTS, repeats: int = 3) -> tuple[float, float]:
    """Milliseconds of core time that a request of another process costs this one, if its answer is recorded, and such
    requests a second; the best of some jobs.
    """
    script = str(Path(__file__).with_name("asking_peer.py"))
    settings = PeerSettings(
        [sys.executable, script, str(count), str(AT_ONCE)], "asks", None, 60.0, 60.0, count, 300, "v2"
    )
    job = LearningJob(
        "What is it like?", "", {"rating": "ok"}, None, (), Skillbook(), 0, 0, recorded=False, redacted=False
    )
    spent, took = [], []
    with TemporaryDirectory() as folder:
        jobs = PeerJobs(settings, RecordedModel(Scripted("learner", 1.0, 1.0, 1.0), "both", folder))
        for _ in range(1 + repeats):  # the first one records
            core, begun = time.process_time(), time.perf_counter()
            answered = jobs.proposal(job).reflection
            if answered != count:
                raise RuntimeError(f"{answered} of {count} requests were answered")
            spent.append(1000 * (time.process_time() - core) / count)
            took.append(count / (time.perf_counter() - begun))
        jobs.close()
    return min(spent[1:]), max(took[1:])


def rows(count: int = PROMPTS) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    ours, apart, pooled = costs(count)
    name = f"prompt to an endpoint and back, {AT_ONCE} under way, core time"
    yield name, f"{ours:.2f} ms", f"{MARK:.2f}", f"{ours / MARK:.2f}x"
    yield "  httpx alone, a client for each connection", f"{apart:.2f} ms", "", f"{ours / apart:.2f}x of it"
    yield "  httpx alone, one client", f"{pooled:.2f} ms", "", f"{ours / pooled:.2f}x of it"
    spent, played = through_gateway(count)
    name = f"request of 12 kB through the gateway and played, {AT_ONCE} under way, core time"
    yield name, f"{spent:.2f} ms", f"{GATEWAY_MARK:.2f}", f"{spent / GATEWAY_MARK:.2f}x"
    yield "  so many a second, of one other process", f"{played:,.0f} asks/s", f"{PLAYED:,}", f"{played / PLAYED:.2f}x"
