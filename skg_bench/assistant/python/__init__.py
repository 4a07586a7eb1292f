"""A Python object as an assistant: what an author writes, and how the engine plays it.

All that an author writes is a class:

    class ExactCache:
        def __init__(self): self.memory = {}
        def answer(self, user: str, time: datetime, message: str, model) -> str:     # or async def
            if message not in self.memory: self.memory[message] = model(message)
            return self.memory[message]
        # optional: feedback(self, user, about, kind, value)   save(self) -> bytes   load(self, user, data)

* **Objects.** One is made for each user and arm, by calling the class with `assistant.parameters`. What an object
  remembers it keeps in itself: a run in which memory lies anywhere else is refused.
* `answer` is called once for each message, in order. `user` is a pseudonym, the same at every turn, `time` what the
  user's clock shows, without a zone. It returns the words that the user is given, a `str`. One that is `async` is
  called for all users of a step at once, on one event loop; it may then await whatever it likes.
* `model(prompt)` asks the arm's model: a plain function, never awaited, which any thread may call until `answer` has
  returned. `prompt` is a text, or chat messages with `content`. The words that it returns end in a reference,
  `[answer 0123456789abcdef]`. Each call is counted and paid, at the length of its prompt; at one message all return the
  same words.
* What the words are is seen by the last reference in them (core/assistant.py: `Reply`): of the model's answer to this
  message, of an earlier one of this user's, of none of these (a leak), or without any (nobody can judge it).
* `feedback` is told what users say: `about` are the words that were answered, `kind` and `value` words such as
  `rating` and `ok`, `partial` or `miss`.
* `save` and `load` are the memory as bytes: `load` is called on a new object. A run that was killed goes on from there;
  without them, the users that were at work begin anew. No object is ever pickled.
* Once frozen, an object answers from a copy that is thrown away: from `save` and `load`, else from `copy.deepcopy`.
  `freeze` is refused where neither works. `feedback` is not called.
* Whatever an object raises ends the run with its name, arm, user and turn, and the same command goes on from there.
"""

from skg_bench.assistant.python.asked import Model, Prompt
from skg_bench.assistant.python.component import Python
from skg_bench.assistant.python.outside import ObjectSource, Outside

__all__ = ["Model", "ObjectSource", "Outside", "Prompt", "Python"]
