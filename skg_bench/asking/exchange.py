"""One prompt and its completion: the answer, a repair where it does not fit, and all that can go wrong."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skg_bench.asking.asking import Completion, End, Prices, Prompt, timed_out
from skg_bench.asking.estimated_tokens import ESTIMATED, warn_of_estimates
from skg_bench.asking.refusals import server_reason
from skg_bench.asking.sending import ChatServer, Contact, NoAnswerError, NoServerError
from skg_bench.asking.structured import structured_answer
from skg_bench.asking.wire import FORMS, ChatAnswer, Message, chat_answer, response_format, with_schema
from skg_bench.core.errors import UsageError


@dataclass(slots=True)
class Exchange:
    """A prompt on its way."""

    prompt: Prompt
    server: ChatServer
    contact: Contact
    options: Mapping[str, Any]  # fields of the request that are those of every prompt
    prices: Prices | None
    answers: list[ChatAnswer] = field(default_factory=list)

    async def completion(self, seconds: float) -> Completion:
        """Result of the prompt within so many seconds, retries and repair included.

        Raises UsageError for what no retry can mend.
        """
        import asyncio

        begun = time.perf_counter()
        value = None
        try:
            async with asyncio.timeout(seconds):
                end, value, reason = await self._outcome()
        except TimeoutError:
            self._check_reached()
            end, reason = "timeout", timed_out(self.prompt.role)
        except NoAnswerError as trouble:
            self._check_reached()
            end, reason = "error", f"no answer after {self.server.tries} tries: {trouble}"
        latency = 1000 * (time.perf_counter() - begun)
        text = self.answers[-1].text if self.answers else ""
        tokens_in = sum(answer.tokens_in for answer in self.answers)
        cached = sum(answer.tokens_cached for answer in self.answers)
        tokens_out = sum(answer.tokens_out for answer in self.answers)
        cost = self.prices.cost(tokens_in, cached, tokens_out) if self.prices else 0.0
        served = self._served() if self.answers else ""
        return Completion(text, value, end, tokens_in, cached, tokens_out, cost, latency, reason, served)

    def _served(self) -> str:
        model = self.answers[-1].model
        parts = [model] if self.prompt.schema is None else [model, FORMS[self.contact.form]]
        if any(answer.estimated for answer in self.answers):
            parts.append(ESTIMATED)
            warn_of_estimates(self.server.model)
        return ", ".join(parts)

    async def _outcome(self) -> tuple[End, Any, str]:
        """How it ended, the value, and the reason."""
        wrong, repair = "", list[Message]()
        for _ in range(2):
            failure = await self._ask(repair)
            if failure is not None:
                return failure
            answer = self.answers[-1]
            if answer.refused:
                return "refused", None, "the model or a filter of the server refuses to answer"
            value, wrong = structured_answer(answer.text, self.prompt.schema)
            if not wrong:
                return "ok", value, ""
            if answer.cut:  # and so would its repair be
                return "invalid", None, f"the answer was cut off at {self.prompt.limit} tokens: {wrong}"
            order = f"{wrong}. Answer again, with one JSON object of the schema and nothing else."
            repair = [{"role": "assistant", "content": answer.text}, {"role": "user", "content": order}]
        return "invalid", None, f"after a repair as well: {wrong}"

    async def _ask(self, repair: Sequence[Message]) -> tuple[End, None, str] | None:
        """Put an answer to `answers`, or say how it failed."""
        schema = self.prompt.schema
        while True:
            messages: list[Message] = [*self.prompt.messages, *repair]
            form, formatted = self.contact.form, {}
            if schema is not None:
                messages = with_schema(messages, schema, FORMS[form])
                formatted = response_format(self.prompt.role, schema, FORMS[form])
            fields = {**(self.prompt.raw or {}), **self.options, "messages": messages}
            body = {**fields, "max_tokens": self.prompt.limit, **formatted}
            response = await self.server.post(json.dumps(body).encode())
            if response.status_code in (400, 422):
                if formatted and ("response_format" in response.text or FORMS[form] in response.text):
                    self.contact.form = max(self.contact.form, form + 1)
                    continue
                if "content_filter" in response.text:
                    return "refused", None, f"a filter refuses the prompt: {server_reason(response, self.server.key)}"
            try:
                if not response.is_success:
                    raise ValueError(f"HTTP {response.status_code}")  # noqa: TRY301  as an answer that cannot be read
                self.answers.append(chat_answer(response.content, messages, whole=self.prompt.raw is not None))
            except ValueError as error:
                words = f"{error}; it begins: {server_reason(response, self.server.key)!r}"
                if self.contact.answered:
                    return "error", None, f"the answer is no chat completion: {words}"
                raise UsageError(
                    f"{self.server.address} gives no chat completion for curator.llm.model={self.server.model}: "
                    f"{words}. curator.llm.address must be that of an OpenAI-compatible server, and its model must "
                    "take temperature, top_p, seed and max_tokens"
                ) from None
            self.contact.answered = True
            self.contact.form_taken |= schema is not None
            return None

    def _check_reached(self) -> None:
        """Raises UsageError where there has never been an answer and no server can be reached."""
        trouble = self.server.troubles[-1] if self.server.troubles else None
        if isinstance(trouble, NoServerError) and not self.contact.answered:
            raise UsageError(
                f"no answer came from curator.llm.address={self.server.address}: {trouble}; start that server, or "
                "correct the address"
            ) from None
