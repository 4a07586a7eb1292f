"""A Python object as an assistant: what an author writes, and how the engine plays it.

All that an author writes is a class:

    class ExactCache:
        def __init__(self): self.memory = {}
        def answer(self, user: str, time: datetime, message: str, model) -> str:     # or async def
            if message not in self.memory: self.memory[message] = model(message)
            return self.memory[message]
        # optional: feedback(self, user, about, kind, value)   save(self) -> bytes   load(self, user, data)
        #           forget(self, user, reference)

* **Objects.** One is made for each user and arm, by calling the class with `assistant.parameters`. What an object
  remembers it keeps in itself: a run in which memory lies anywhere else is refused. With `assistant.shares` (a number,
  or `all`) so many users have one object: an instance. Their messages come in order of time, and `time` is one clock.
* `answer` is called once for each message, in order. `user` is a pseudonym, the same at every turn, `time` what the
  user's clock shows, without a zone. It returns the words that the user is given, a `str`. One that is `async` is
  called for all users of a step at once, on one event loop; it may then await whatever it likes.
* `model(prompt)` asks the arm's model: a plain function, never awaited, which any thread may call until `answer` has
  returned. `prompt` is a text, or chat messages with `content`. The words that it returns end in a reference,
  `[answer 0123456789abcdef]`. Each call is counted and paid; at one message all return the same words. Of a prompt the
  simulated model reads references of earlier answers alone: a message of the user without its answer tells it nothing,
  also in a world of facts, and a reference alone as much as with its words. So a call costs the words of its prompt, as
  parted by white space, and no less than those of the message and of each answer to which the prompt refers: however a
  prompt is written, one memory has one price. `model.embed(text)` is a vector of the run's embedder, as a list of
  numbers: systems that look for what is near then differ in what they do with vectors, and not in their vectors.
* In a world that judges words (`simulator=told`) the model answers the prompt itself, in any words and without a
  reference, and the words that the user is given are judged by what they say.
* Elsewhere, what the words are is seen by the last reference in them (core/assistant.py: `Reply`): of the model's
  answer to this message, of an earlier one of this user's, or without any (nobody can judge it). A reference to none of
  these is a leak, and wrong, wherever it stands: in front of another one, or in a prompt.
* `feedback` is told what users say: `about` are the words that were answered, `kind` and `value` words such as
  `rating` and `ok`, `partial` or `miss`.
* `save` and `load` are the memory as bytes: `load` is called on a new object. A run that was killed goes on from there;
  without them, the users that were at work begin anew. No object is ever pickled.
* `forget` drops one answer: whatever the object keeps of the words that hold `reference`, the text
  `[answer 0123456789abcdef]`. `skg-bench skills RUN --exact` calls it at the end of the turn of that answer, where a
  user is played again without it. An object that gives the answer again all the same is refused.
* Once frozen, an object answers from a copy that is thrown away: from `save` and `load`, else from `copy.deepcopy`.
  `freeze` is refused where neither works. `feedback` is not called.
* A run is known by the text of the class, by what that imports and nobody installed, and by all files of their
  packages. Files beside a single module and modules whose name is computed do not count (core/package.py), and
  neither do variables of the environment and other files that it reads: hand such a choice over as a parameter.
* Whatever an object raises ends the run with its name, arm, user and turn, and the same command goes on from there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from skg_bench.core.grid import SCALE
from skg_bench.core.texts import EmbedTexts

Prompt = str | Sequence[Mapping[str, Any]]  # words, or chat messages with `content`


class Model(Protocol):
    """The arm's model, for one message."""

    def __call__(self, prompt: Prompt) -> str:
        """Words of the model, which end in a reference; each call is counted and metered."""
        ...

    def embed(self, text: str) -> list[float]:
        """Vector of a text by the run's embedder, of about length 1; it costs nothing.

        Raises UsageError where that embedder knows the world's own messages alone.
        """
        ...


class AskedModel:
    """The model for one message, and the prompts with which it was asked."""

    __slots__ = ("_embed", "_over", "_prompts", "_say")

    def __init__(self, say: Callable[[str], str], embed: EmbedTexts) -> None:
        self._say, self._embed, self._over = say, embed, False
        self._prompts: list[str] = []

    def __call__(self, prompt: Prompt) -> str:
        if self._over:
            raise RuntimeError("this model was given for one message, and that is answered; call the one of this call")
        text = prompt if type(prompt) is str else _words(prompt)
        self._prompts.append(text)
        return self._say(text)

    @property
    def prompts(self) -> Sequence[str]:
        """Prompts with which it was asked, in order."""
        return tuple(self._prompts)

    def embed(self, text: str) -> list[float]:
        """Vector of a text."""
        return [float(x) / SCALE for x in self._embed([text])[0]]

    def end(self) -> None:
        """The message is answered."""
        self._over = True


def _words(prompt: Any) -> str:
    """Words of chat messages; parts that are no text have none.

    Raises TypeError for anything else.
    """
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, list | tuple) or not all(isinstance(each, Mapping) for each in prompt):
        raise TypeError(
            f"model was given a {type(prompt).__qualname__}; valid is a text, or a list of chat messages such as "
            "[{'role': 'user', 'content': message}]"
        )
    return "\n".join(filter(None, (_content(each.get("content")) for each in prompt)))


def _content(content: Any) -> str:
    """Words of one chat message: a text, or parts with texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))
