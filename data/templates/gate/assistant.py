"""The assistant that is gated. No change may make it worse."""


class Assistant:
    """Puts the earlier answer to the same request into the prompt."""

    def __init__(self):
        self.memory = {}

    def answer(self, user, time, message, model):
        """Words for one message."""
        request = frozenset(message.lower().strip("?!. ").split())
        earlier = self.memory.get(request)
        words = model(message if earlier is None else f"{earlier}\n\n{message}")
        self.memory[request] = words
        return words
