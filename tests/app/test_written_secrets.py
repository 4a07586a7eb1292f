"""A secret that is written into a configuration is refused wherever it stands, and is shown nowhere."""

import json
from pathlib import Path

import pytest

from skg_bench.app.compose import compose
from skg_bench.app.written_secrets import check_secrets
from skg_bench.core.errors import UsageError
from tests.app.lab import forget, installed, write
from tests.app.test_cli import refused

NAMES = (
    "api_key", "apiKey", "APIKey", "apikey", "X-API-Key", "OPENAI_API_KEY", "api_key_2", "token", "accessToken",
    "hf_token", "secret", "clientSecret", "secret_key", "password", "dbPassword", "Authorization",
)  # fmt: skip
NO_SECRETS = {
    "max_tokens": 5, "tokens": "a b", "token_limit": 9, "tokenizer": "word", "eos_token": "</s>", "max_token": 7,
    "usd_per_token": 1, "key_from": "MY_KEY", "api_key_from": "MY_KEY", "secretary": "Ann", "key": "name",
    "password": None, "token": "", "secret": False, "user_token": "{user}", "api_key": "{key}",
    "note": "a task-list-of-sk-learn, with Bearer {key}", "text": "The bearer of good news asks for more.",
    "column": "token", "path": "data/disk-0123456789abcdef0123",
}  # fmt: skip
LOOKS = (
    "sk-0123456789abcdef", "sk-proj-ab_cd-0123456789abcdef", "--key=sk-0123456789abcdef", "Bearer abcdefgh",
    "ghp_0123456789abcdef", "AKIA0123456789ABCDEF", "xoxb-1234-5678-abcd",
)  # fmt: skip
VALUE = "hunter2-and-more"


def reason(value: object) -> str:
    with pytest.raises(UsageError) as error:
        check_secrets("assistant.parameters", value, "arm 'mine': ")
    return str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_as_a_secret_is_refused_with_its_place_and_without_its_value(name: str) -> None:
    for value in (VALUE, [VALUE], 271828):
        text = reason({"config": {"llm": {name: value}}})
        assert text.startswith(f"arm 'mine': assistant.parameters.config.llm.{name}")
        assert "is named as a secret is" in text
        assert "read it from the environment" in text
        assert VALUE not in text
        assert "271828" not in text


@pytest.mark.parametrize("text", LOOKS)
def test_what_looks_like_a_key_is_refused_whatever_its_name(text: str) -> None:
    message = reason({"headers": ["plain", f"X: {text}"]})
    assert message.startswith("arm 'mine': assistant.parameters.headers.1 holds what looks like a key")
    assert text not in message


def test_names_and_texts_that_only_remind_of_secrets_are_taken() -> None:
    check_secrets("assistant.parameters", NO_SECRETS)
    check_secrets("arms.token", ["policy=never"])
    check_secrets("arms", {"secret": ["policy=never"], "password": []})


@pytest.mark.parametrize(
    "words",
    [
        ["assistant=python", f"+assistant.parameters.api_key={VALUE}"],
        ["assistant=python", f"assistant.parameters={{api_key: {VALUE}}}"],
        ["assistant=endpoint", f"assistant.body={{metadata: {{api_key: {VALUE}}}}}"],
        ["assistant=endpoint", f"assistant.frozen={{api_key: {VALUE}}}"],
        ["assistant=endpoint", f"assistant.files={{api_key: {VALUE}}}"],
        ["assistant=endpoint", "assistant.command=[serve,--key,sk-0123456789abcdef]"],
    ],
)
def test_a_secret_in_free_words_of_a_component_ends_the_command(words: list[str], elsewhere: Path) -> None:
    arm = f"+arms.mine={json.dumps(words)}"
    for given, where in (([arm], "arm 'mine': assistant."), (words, "assistant.")):
        message = refused("run", "users=1", "weeks=1", "out=run", *given)
        assert where in message
        assert "read it from the environment" in message
        assert VALUE not in message
        assert "0123456789abcdef" not in message
    assert not list(elsewhere.iterdir())


def test_a_secret_in_a_yaml_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(tmp_path, monkeypatch):
        added = tmp_path / "site" / "lab_parts" / "conf"
        write(
            added / "reranker" / "asks.yaml", f"_target_: lab_parts.things.Part\nrate: 0.5\nnames: {{api_key: {VALUE}}}"
        )
        forget()
        with pytest.raises(UsageError, match=r"reranker\.names\.api_key is named as a secret is"):
            compose(["reranker=asks"])
