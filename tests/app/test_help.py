"""`--help` of every command, and `--version`."""

import shlex
from typing import Any

import pytest
import typer

import skg_bench
from skg_bench.app.cli import app
from skg_bench.app.examples import EXAMPLES
from tests.app.test_cli import call
from tests.test_sentences_of_readme import MOST, sentences, words


def commands() -> dict[str, Any]:
    """All commands by their names."""
    root: Any = typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name, command in root.commands.items():
        inner = getattr(command, "commands", {})
        found |= {f"{name} {word}": leaf for word, leaf in inner.items()} or {name: command}
    return found


def test_every_command_has_examples_in_its_help() -> None:
    assert set(commands()) == set(EXAMPLES)
    for name, lines in EXAMPLES.items():
        code, out, _ = call(*name.split(), "--help")
        assert code == 0
        assert call(*name.split(), "-h") == (0, out, "")
        assert max(map(len, out.splitlines())) <= 80
        assert "Examples:" in out
        for line in lines:
            assert f"\n  {line}\n" in out or f"\n    {line}\n" in out


def test_no_sentence_of_a_help_is_longer_than_25_words() -> None:
    texts = {name: [command.help, *(part.help for part in command.params)] for name, command in commands().items()}
    read = [(name, s) for name, some in texts.items() for text in some if text for s in sentences(text)]
    assert len(read) > 100
    assert [(name, sentence) for name, sentence in read if words(sentence) > MOST] == []


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_every_example_is_a_command_line_that_parses(line: str) -> None:
    words = shlex.split(line)
    assert words[0] == "skg-bench"
    names = commands()
    name = " ".join(words[1:3]) if " ".join(words[1:3]) in names else words[1]
    context = names[name].make_context(name, words[1 + len(name.split()) :])
    assert not context.args


def test_the_version_is_printed() -> None:
    assert call("--version") == (0, f"skg-bench {skg_bench.__version__}\n", "")
    code, out, _ = call("--help")
    assert code == 0
    assert "--version" in out
    for group in ((), ("skillbook",), ("data",), ("counterexample",)):
        assert "..." not in call(*group, "--help")[1].partition("Commands:")[2]
    assert "Does an assistant get better because it learns?" in out
