"""What an endpoint makes of a server's bad days: retries, repairs, the time limit, other forms, and refusals."""

import logging
import subprocess
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from skg_bench.asking import sending
from skg_bench.asking.asking import Prompt
from skg_bench.core.bodies import waiting_time
from skg_bench.core.errors import UsageError
from tests.llm.asks import endpoint, free, reflection, reflections, skill_update
from tests.llm.server import Day, Server

KEY = "sk-a-secret-of-somebody-0123456789"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "BACKOFF", 0.01)


# ------------------------------------------------------------------------------------------------ tries and time


@pytest.mark.parametrize("day", ["429", "500", "broken"])
def test_what_a_busy_or_broken_server_fails_at_is_tried_again(day: Day) -> None:
    with Server(day, times=2) as server:
        (completion,) = endpoint(server.address, tries=3).complete([reflection()])
        assert (completion.end, completion.reason) == ("ok", "")
        assert server.requests == 3
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("day", "words"),
    [("429", "HTTP 429: status 429"), ("500", "HTTP 500: status 500"), ("broken", "RemoteProtocolError")],
)
def test_a_prompt_that_fails_at_every_try_is_an_error_that_says_why(day: Day, words: str) -> None:
    with Server() as server:
        model = endpoint(server.address, tries=3)
        model.complete([free()])
        server.day = day
        failed, other = model.complete([reflection(), reflection(1)])
        assert failed.end == other.end == "error"
        assert failed.reason.startswith(f"no answer after 3 tries: {words}")
        assert (failed.text, failed.value, failed.tokens_in, failed.cost_usd) == ("", None, 0, 0.0)
        assert server.requests == 1 + 6


@pytest.mark.parametrize("date", [False, True])
def test_a_server_that_says_when_to_come_again_is_left_alone_until_then(date: bool) -> None:
    after = formatdate(time.time() + 2, usegmt=True) if date else "1"
    with Server("429", times=1, after=after) as server:
        begun = time.perf_counter()
        (completion,) = endpoint(server.address).complete([free()])
    assert completion.end == "ok"
    assert 0.9 <= time.perf_counter() - begun < 4


@pytest.mark.parametrize("after", ["", "soon", "-1", "nan", "Thu, 01 Jan 1970 00:00:00 GMT", "²"])
def test_a_time_that_cannot_be_read_or_is_over_is_no_time(after: str) -> None:
    assert waiting_time(after) == 0


@pytest.mark.req("P20")
@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (reflection(), "Reflection timed out"),
        (skill_update(), "Skill update timed out"),
        (free(), "cheatsheet timed out"),
    ],
)
def test_a_prompt_that_takes_too_long_says_what_timed_out(prompt: Prompt, words: str) -> None:
    with Server(seconds=2) as server:
        begun = time.perf_counter()
        (completion,) = endpoint(server.address, seconds=0.2).complete([prompt])
        assert time.perf_counter() - begun < 1.5
    assert (completion.end, completion.reason, completion.value) == ("timeout", words, None)
    assert 200 <= completion.latency_ms < 1500


@pytest.mark.req("P20")
def test_the_time_limit_is_10_seconds_unless_something_else_is_asked_for() -> None:
    assert endpoint("http://127.0.0.1:1").seconds == 10


@pytest.mark.req("P20")
@pytest.mark.parametrize(("day", "after"), [("429", "60"), ("wrong schema", "0")])
def test_waits_and_a_repair_count_towards_the_time_limit(day: Day, after: str) -> None:
    with Server(after=after) as server:
        model = endpoint(server.address, seconds=1.0)
        model.complete([free()])
        server.day, server.seconds = day, 0.6
        (completion,) = model.complete([reflection()])
        assert completion.end == "timeout"
        assert (completion.tokens_in > 0) == (day == "wrong schema")  # what was paid for the first answer is counted


# ---------------------------------------------------------------------------------------------- answers that do not fit


@pytest.mark.parametrize("day", ["nonsense", "wrong schema"])
def test_an_answer_that_does_not_fit_is_repaired_once_and_both_answers_are_counted(day: Day) -> None:
    with Server() as server:
        model = endpoint(server.address)
        (whole,) = model.complete([reflection()])
        server.day, server.times = day, 2
        (repaired,) = model.complete([reflection()])
    assert (repaired.end, repaired.value) == ("ok", whole.value)
    assert repaired.tokens_in > 2 * whole.tokens_in
    assert repaired.tokens_out > whole.tokens_out
    assert repaired.cost_usd > whole.cost_usd
    first, second = server.bodies[1:]
    assert second["messages"][:2] == first["messages"]
    assistant, user = second["messages"][2:]
    assert assistant["role"] == "assistant"
    assert assistant["content"] in ("Sure! Here you are.", '{"colour": 1}')
    assert user["role"] == "user"
    assert ("is no JSON" if day == "nonsense" else "does not fit its schema") in user["content"]


def test_an_answer_that_does_not_fit_after_its_repair_is_invalid() -> None:
    with Server("wrong schema") as server:
        (completion,) = endpoint(server.address).complete([reflection()])
        assert server.requests == 2
    assert (completion.end, completion.value, completion.text) == ("invalid", None, '{"colour": 1}')
    assert "does not fit its schema" in completion.reason
    assert completion.cost_usd > 0


def test_an_answer_that_was_cut_off_is_invalid_and_not_repaired() -> None:
    with Server("cut") as server:
        (completion,) = endpoint(server.address).complete([reflection()])
        assert server.requests == 1
    assert completion.end == "invalid"
    assert completion.reason.startswith("the answer was cut off at 300 tokens")


@pytest.mark.parametrize("day", ["refused", "filtered", "filtered prompt"])
def test_a_model_or_a_filter_may_refuse(day: Day) -> None:
    with Server(day) as server:
        (completion,) = endpoint(server.address).complete([reflection()])
        assert server.requests == 1
    assert (completion.end, completion.value) == ("refused", None)
    assert "refuses" in completion.reason


# --------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize(
    ("day", "form", "refused"),
    [("good", "json_schema", 0), ("no json_schema", "json_object", 1), ("no response_format", "text", 2)],
)
def test_forms_that_a_server_refuses_are_tried_once_and_the_schema_is_then_said_in_words(
    day: Day, form: str, refused: int
) -> None:
    with Server(day) as server:
        model = endpoint(server.address)
        assert [c.served for c in model.complete([free()])] == [model.model]  # without a schema there is no form
        for _ in range(2):
            answers = model.complete(reflections(20))
            assert {(c.end, c.served) for c in answers} == {("ok", f"{model.model}, {form}")}
        assert server.requests == 1 + 40 + refused
        last = server.bodies[-1]
    assert last.get("response_format", {}).get("type", "text") == form
    assert ("atomicity_score" in last["messages"][0]["content"].partition("JSON schema of answers:")[2]) == (
        refused > 0
    )


# ------------------------------------------------------------------------------------------- what no retry can mend


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("401", r"refuses the key \(HTTP 401\); check the environment variable that curator.llm.key_from names"),
        ("402", r"refuses for want of payment \(HTTP 402\)"),
        ("404", r"has no model curator.llm.model=gpt-4.1-mini or no path /chat/completions \(HTTP 404\)"),
        ("400", r"gives no chat completion for curator.llm.model=gpt-4.1-mini: HTTP 400; it begins: 'status 400"),
        ("redirect", r"redirects to http://elsewhere.invalid/v1, which is not followed: nothing was sent there"),
        (
            "moved",
            r"redirects to http://127.0.0.1:\d+/v2, which is not followed.* set curator.llm.address=http://127.0.0.1:\d+/v2$",
        ),
        ("html", r"gives no chat completion .* it begins: '<html><body>Welcome \[31m to nginx</body></html>'"),
        ("empty", "gives no chat completion"),
        ("error", r"no choices\[0\].message; it begins: 'the model is loading'"),
    ],
)
def test_what_no_retry_can_mend_says_what_to_do(
    day: Day, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with Server(day) as server, caplog.at_level(logging.DEBUG):
        model = endpoint(server.address, key_from="A_KEY")
        with pytest.raises(UsageError, match=words) as error:
            model.complete(reflections(3))
        assert server.requests == 1
        assert server.keys == [f"Bearer {KEY}"]
    assert KEY not in _chain(error.value)
    assert KEY not in caplog.text
    assert KEY not in repr(model)


def _chain(error: BaseException | None) -> str:
    """An error and all that it came from, with what they hold, and what those hold."""
    text = ""
    while error is not None:
        inside = [f"{value!r} {getattr(value, 'headers', {})!s}" for value in vars(error).values()]
        inside += [str(getattr(value, "headers", {}).get("Authorization")) for value in vars(error).values()]
        text += f"{error} {error!r} {inside}"
        error = error.__cause__ or error.__context__
    return text


@pytest.mark.parametrize("day", ["html", "empty", "error", "400"])
def test_a_server_that_has_answered_before_may_fail_at_a_prompt(day: Day) -> None:
    with Server() as server:
        model = endpoint(server.address)
        model.complete([free()])
        server.day = day
        (completion,) = model.complete([free()])
    assert completion.end == "error"
    assert completion.reason.startswith("the answer is no chat completion")


def test_a_key_that_a_server_repeats_stands_in_no_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with Server("500") as server:
        (completion,) = endpoint(server.address, key_from="A_KEY", tries=2).complete([free()])
    assert "you sent Bearer ***" in completion.reason
    assert KEY not in repr(completion)


def test_no_server_is_an_error_at_first_and_a_failed_prompt_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with Server() as server:
        model = endpoint(server.address, tries=2)
        model.complete([free()])
    (completion,) = model.complete([free()])
    assert completion.end == "error"
    for address in (server.address.replace("/v1", "/v3"), "http://nobody.invalid/v1"):
        with pytest.raises(
            UsageError, match=f"no answer came from curator.llm.address={address}: ConnectError.*start that server"
        ) as error:
            endpoint(address, tries=2, key_from="A_KEY").complete(reflections(3))
        assert KEY not in _chain(error.value)


def test_a_certificate_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    certificate = tmp_path / "own.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    try:
        subprocess.run(
            [*make.split(), "-keyout", certificate, "-out", tmp_path / "cert.pem"], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("needs openssl")
    certificate.write_text(certificate.read_text() + (tmp_path / "cert.pem").read_text())
    with Server(certificate=certificate) as server:
        with pytest.raises(UsageError, match=r"the certificate of https://127.* does not fit: self.signed certificate"):
            endpoint(server.address).complete([free()])
        assert server.requests == 0
    with Server() as server, pytest.raises(UsageError, match="makes no TLS connection"):
        endpoint(server.address.replace("http", "https")).complete([free()])


def test_a_proxy_of_the_environment_does_not_get_what_is_meant_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Server() as server, Server() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.address.removesuffix("/v1"))
        assert endpoint(server.address).complete([free()])[0].end == "ok"
        assert (server.requests, proxy.requests) == (1, 0)
