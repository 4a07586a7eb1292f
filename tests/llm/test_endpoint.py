"""An endpoint against a server on this machine: what it sends, what comes back, and how many requests are under way."""

import asyncio
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from skg_bench.asking.asking import Completion, Streaming, TextModel
from skg_bench.asking.exchange import Exchange
from skg_bench.core.errors import UsageError
from skg_bench.llm.endpoint import Endpoint
from tests.llm.asks import endpoint, free, reflection, reflections, skill_update
from tests.llm.server import Server


def test_answers_come_in_the_order_of_the_prompts_with_their_tokens_and_costs() -> None:
    with Server() as server:
        model: TextModel = endpoint(server.address)
        completions = model.complete([*reflections(20), skill_update()])
    assert [c.end for c in completions] == ["ok"] * 21
    for n, completion in enumerate(completions[:20]):
        assert f"'question {n}'" in completion.value["new_learnings"][0]["content"]
        fresh = completion.tokens_in - completion.tokens_cached
        assert completion.tokens_cached == completion.tokens_in // 2 > 0
        cost = (fresh * 0.4 + completion.tokens_cached * 0.1 + completion.tokens_out * 1.6) / 1e6
        assert completion.cost_usd == pytest.approx(cost, rel=1e-12)
    assert completions[20].value == {"update": None}
    assert server.requests == 21


def test_tokens_are_estimated_and_cost_nothing_where_the_server_counts_none_and_prices_are_unknown() -> None:
    unknown = {f"usd_per_million_{name}": None for name in ("in", "cached", "out")}
    with Server("no usage") as server:
        model = endpoint(server.address, **unknown)
        (completion,) = model.complete([free("x" * 31)])
    assert model.prices is None
    assert (completion.tokens_in, completion.tokens_cached) == (40 // 4, 0)
    assert completion.tokens_out == len(completion.text) // 4
    assert completion.cost_usd == 0


def test_cached_tokens_without_a_price_cost_as_much_as_others() -> None:
    prices = endpoint("http://127.0.0.1:1", usd_per_million_cached=None).prices
    assert prices is not None
    assert prices.cost(10, 10, 0) == prices.cost(10, 0, 0)


def test_a_request_has_what_decides_the_answer_and_a_seed_where_there_is_something_to_draw() -> None:
    prompt = reflection(draw=2**62 + 5)
    with Server() as server:
        endpoint(server.address, model="small", top_p=0.9).complete([prompt])
        endpoint(server.address, model="small", temperature=0.7).complete([prompt, replace(prompt, draw=2**62 + 6)])
        endpoint(server.address).complete([free()])
    cold, warm, other, plain = server.bodies
    assert {name: cold[name] for name in ("model", "temperature", "top_p", "max_tokens")} == {
        "model": "small", "temperature": 0.0, "top_p": 0.9, "max_tokens": 300,
    }  # fmt: skip
    assert cold["messages"] == prompt.messages
    assert cold["response_format"]["json_schema"]["schema"] == prompt.schema
    assert "seed" not in cold
    assert "response_format" not in plain
    assert 0 <= warm["seed"] < 2**31
    assert warm["seed"] != other["seed"]


def test_as_many_requests_as_allowed_are_under_way_and_no_more_on_connections_that_are_kept() -> None:
    with Server(seconds=0.1) as server:  # time for one more
        model = endpoint(server.address)
        model.complete([free()])
        server.together = 64
        completions = model.complete([free(str(n)) for n in range(130)])
        assert {c.end for c in completions} == {"ok"}
        assert server.most_at_once == 64
        assert server.connections == 64
    with Server(seconds=0.02) as server:
        model = endpoint(server.address, in_flight=3)
        model.complete([free()])
        server.together = 3
        model.complete([free(str(n)) for n in range(12)])
        assert server.most_at_once == 3


def test_the_first_prompt_goes_alone_until_the_server_has_answered_once() -> None:
    with Server("401") as server:
        with pytest.raises(UsageError):
            endpoint(server.address).complete(reflections(30))
        assert server.requests == 1


def test_latency_is_the_time_on_the_endpoint_without_the_wait_for_a_place() -> None:
    with Server(seconds=0.1) as server:
        completions = endpoint(server.address, in_flight=1).complete([free(str(n)) for n in range(5)])
    assert all(100 <= c.latency_ms < 400 for c in completions)  # five in a row take 500


def test_each_hands_over_answers_as_they_arrive_in_the_callers_thread() -> None:
    arrivals: list[tuple[int, float, int]] = []
    with Server() as server:
        model = endpoint(server.address, in_flight=2)
        assert isinstance(model, Streaming)
        model.complete([free()])
        server.seconds = 0.1
        begun = time.perf_counter()

        def done(answers: Mapping[int, Completion]) -> None:
            assert {completion.end for completion in answers.values()} == {"ok"}
            arrivals.extend((place, time.perf_counter() - begun, threading.get_ident()) for place in answers)

        model.each([free(str(n)) for n in range(6)], done)
    assert sorted(place for place, _, _ in arrivals) == list(range(6))
    assert arrivals[-1][1] - arrivals[0][1] >= 0.15  # two at once
    assert {thread for _, _, thread in arrivals} == {threading.get_ident()}


def test_when_a_prompt_raises_nothing_more_is_sent() -> None:
    places: list[int] = []
    with Server() as server:
        model = endpoint(server.address, in_flight=4)
        model.complete([free()])
        server.seconds = 0.15

        def done(answers: Mapping[int, Completion]) -> None:
            places.extend(answers)
            server.day = "401"  # for requests that begin from now on

        with pytest.raises(UsageError, match="refuses the key"):
            model.each([free(str(n)) for n in range(40)], done)
        sent = server.requests
        assert 1 <= sent - 1 - len(places) <= 4  # all others were handed over
        time.sleep(0.3)
        assert server.requests == sent < 20


def test_an_answer_that_was_paid_for_is_handed_over_although_another_prompt_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Exchange.completion

    async def completion(exchange: Exchange, seconds: float) -> Completion:
        if exchange.prompt.user == "3":
            raise UsageError("no more")
        return await whole(exchange, seconds)

    places: list[int] = []
    with Server() as server:
        model = endpoint(server.address, in_flight=8)
        model.complete([free()])
        server.seconds = 0.1
        monkeypatch.setattr(Exchange, "completion", completion)
        with pytest.raises(UsageError, match="no more"):
            model.each([free(str(n)) for n in range(30)], places.extend)
    assert sorted(places) == [0, 1, 2]  # those after it had not begun


def test_an_interrupt_of_the_caller_sends_nothing_more() -> None:
    def done(_: Mapping[int, Completion]) -> None:
        raise KeyboardInterrupt

    with Server(seconds=0.05) as server:
        model = endpoint(server.address, in_flight=2)
        with pytest.raises(KeyboardInterrupt):
            model.each([free(str(n)) for n in range(50)], done)
        time.sleep(0.3)
        assert server.requests <= 4


def test_a_notebook_that_runs_a_loop_of_its_own_can_ask() -> None:
    async def cell() -> list[Completion]:
        return endpoint(server.address).complete([free()])

    with Server() as server:
        assert [c.end for c in asyncio.run(cell())] == ["ok"]


def test_several_threads_can_ask_at_once() -> None:
    ends: list[str] = []
    with Server(seconds=0.02) as server:
        model = endpoint(server.address)
        work = [
            threading.Thread(target=lambda: ends.extend(c.end for c in model.complete([free(), free("b")])))
            for _ in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert ends == ["ok"] * 16


def _answered(model: Endpoint) -> str:
    return model.complete([free()])[0].end


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_a_worker_process_asks_by_itself(way: str) -> None:
    with Server() as server:
        model = endpoint(server.address)
        assert _answered(model) == "ok"  # so that this process has a loop and a connection
        with multiprocessing.get_context(way).Pool(1) as pool:
            assert pool.apply_async(_answered, (model,)).get(timeout=30) == "ok"


def test_the_module_is_cheap_to_import_and_a_process_that_has_asked_ends_quietly() -> None:
    cheap = (
        "import skg_bench.llm.endpoint, sys; print([m for m in ('httpx', 'tenacity', 'asyncio') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", cheap], text=True) == "[]\n"
    with Server() as server:
        ask = (
            f"from tests.llm.asks import endpoint, free\nprint(endpoint({server.address!r}).complete([free()])[0].end)"
        )
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_an_endpoint_is_a_value() -> None:
    with Server() as server:
        model = endpoint(server.address)
        model.complete([free()])
        assert pickle.loads(pickle.dumps(model)) == model == endpoint(server.address)  # noqa: S301
    assert set(model.beside) == {"address", "key_from", "in_flight", "sends_recorded"}


def test_no_prompt_asks_nothing() -> None:
    assert endpoint("http://127.0.0.1:1").complete([]) == []
