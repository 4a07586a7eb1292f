"""What an endpoint may be made of, what it sends to whom, and that a key stands nowhere."""

import pickle
import sys
from typing import Any

import pytest

from skg_bench.asking import sending
from skg_bench.core.errors import UsageError
from tests.llm.asks import endpoint, free, reflection
from tests.llm.server import Server

HERE = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    "address",
    ["", "api.openai.com/v1", "ftp://host/v1", "http://", "http://host/v1/", "http://host:x/v1", "http://[1",
     "https://host/v1/chat/completions", "http://a host/v1", "http://höst/v1", "http://host/v 1", "http://ho\nst/v1"],
)  # fmt: skip
def test_an_address_is_what_stands_before_the_path(address: str) -> None:
    with pytest.raises(
        UsageError, match=r"curator.llm.address=.*must be what stands before /chat/completions, such as http://"
    ):
        endpoint(address)


@pytest.mark.parametrize(
    "address", ["https://me:hidden@host/v1", "https://host/v1?key=hidden", "https://host/v1#hidden"]
)
def test_an_address_that_may_hold_a_secret_is_not_shown(address: str) -> None:
    with pytest.raises(UsageError, match="where secrets stand") as error:
        endpoint(address)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("key", ["sk-hidden-0123", "gsk_hidden0123", "", "A KEY"])
def test_a_key_in_the_place_of_its_name_is_not_shown(key: str) -> None:
    with pytest.raises(UsageError, match=r"curator.llm\.key_from must be the name of an environment variable") as error:
        endpoint(HERE, key_from=key)
    assert not key or key not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [{"model": ""}, {"temperature": -0.1}, {"temperature": 2.1}, {"top_p": 0}, {"top_p": 1.1}, {"seconds": 0},
     {"seconds": float("nan")}, {"in_flight": 0}, {"tries": 0}, {"usd_per_million_in": None},
     {"usd_per_million_out": -1.0}, {"usd_per_million_cached": float("inf")}],
)  # fmt: skip
def test_other_values_out_of_range_are_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=rf"llm\.{next(iter(change))}"):
        endpoint(HERE, **change)


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "is not set; put the key of http://127.0.0.1:1/v1 there"), (" ", "is not set"), ("sk-ä", "odd characters"),
     ("sk-a\nb", "odd characters")],
)  # fmt: skip
def test_a_key_that_is_missing_or_cannot_be_one_is_named_by_its_variable(
    value: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("A_KEY", value)
    with pytest.raises(UsageError, match=rf"A_KEY.*{words}") as error:
        endpoint(HERE, key_from="A_KEY").complete([free()])
    assert "sk-" not in str(error.value)


def test_a_key_is_read_when_it_is_needed_and_travels_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as server:
        model = endpoint(server.address, key_from="A_KEY")
        monkeypatch.setenv("A_KEY", "sk-first\n")
        (completion,) = model.complete([free()])
        monkeypatch.setenv("A_KEY", "sk-second")
        model.complete([free()])
    assert server.keys == ["Bearer sk-first", "Bearer sk-second"]
    assert b"sk-" not in pickle.dumps(model)
    assert "sk-" not in f"{model!r} {completion!r} {server.bodies}"


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server")
    with Server() as server:
        endpoint(server.address).complete([free()])
    assert server.keys == [None]


@pytest.mark.parametrize(
    "address", ["https://api.example.invalid/v1", "http://192.168.0.7:8000/v1", "http://127.example.invalid/v1"]
)
def test_messages_of_people_go_to_no_other_machine_unless_that_is_allowed(address: str) -> None:
    prompts = [free(), reflection(recorded=True)]
    with pytest.raises(UsageError, match=r"which people wrote, .*llm.sends_recorded=true"):
        endpoint(address).complete(prompts)
    if address.startswith("https"):
        with pytest.raises(UsageError, match="no answer came from"):
            endpoint(address, sends_recorded=True, tries=1).complete(prompts)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_on_this_machine_may_have_messages_of_people(host: str) -> None:
    with Server() as server:
        model = endpoint(server.address.replace("127.0.0.1", host))
        assert model.complete([reflection(recorded=True)])[0].end == "ok"


@pytest.mark.parametrize("library", ["httpx", "tenacity", "jsonschema"])
def test_a_library_that_is_not_installed_is_named_with_the_way_to_install_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=rf"curator.llm=endpoint needs {library}: .*\[llm\]"):
        endpoint(HERE).complete([free()])


@pytest.mark.parametrize(
    ("variable", "value"),
    [("HTTPS_PROXY", "ftp://proxy"), ("SSL_CERT_FILE", "/nowhere/certificates.pem")],
)
def test_proxies_and_certificates_that_cannot_be_used_are_named(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in ("_TLS", "_IDLE"):
        monkeypatch.setattr(sending, kept, {})
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        UsageError, match=r"that the environment names \(HTTPS_PROXY, SSL_CERT_FILE, \.\.\.\) cannot be"
    ):
        endpoint("https://elsewhere.invalid/v1").complete([free()])


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.invalid"])
def test_a_host_that_cannot_have_a_name_is_a_server_that_does_not_answer(host: str) -> None:
    with pytest.raises(UsageError, match="no answer came from"):
        endpoint(f"http://{host}/v1", tries=1).complete([free()])


def test_a_schema_that_is_none_is_refused_before_anything_is_sent() -> None:
    with Server() as server:
        with pytest.raises(UsageError, match=r"role 'reflector' is no JSON schema at \$\.type: 'strng' is not valid"):
            endpoint(server.address).complete([reflection(schema={"type": "strng"})])
        assert server.requests == 0
