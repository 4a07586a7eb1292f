"""Arrow schemas of a run directory, version 13. Columns marked `truth` are never shown to an arm.

Version 2 added `cause` and `event` to the turns, `born` to the updates; version 3 made feedback rows of a kind;
version 4 added to the updates what skills say; version 5 added learning jobs, and to the turns what these cost;
version 6 added to the turns their outcome, to the updates the turn that was learned from;
version 7 added to learning jobs what other jobs wrote meanwhile; version 8 added to the turns what a replayed log says
of them, columns that are null where users are simulated; version 9 made shards a fixed partition that carries digests
(runfolder/shards.py); version 10 has columns of an outcome only where the domain has one (core/domain.py);
version 11 has the words of the domain in the manifest (runfolder/telling.py); version 12 counts the money of a replayed
log; version 13 has conversations of a log, and what was said in worlds that judge words. Where a run replays a log,
truth may be null: not known. Columns of decisions and skillbooks are null for an assistant that fills none
(core/assistant.py). `skill` is -1 there, and not null, since every reader takes it as whole numbers: that such an
assistant answered itself is what `fallback_to_llm` says.
"""

from collections.abc import Sequence

import pyarrow as pa

from skg_bench.core.batch import TAG_RATINGS
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.domain import OutcomeField
from skg_bench.core.feedback import FEEDBACK_KINDS
from skg_bench.core.learning_jobs import RESULTS
from skg_bench.core.types import CAUSES

_SINCE = f"what has passed since Monday {FIRST_MONDAY:%Y-%m-%d} 00:00, local time of week 0"
SCHEMA_VERSION = 13
_WORD = pa.dictionary(pa.int32(), pa.string())
_STORED = {"words": _WORD, "bool": pa.bool_(), "int": pa.int32(), "float": pa.float64()}


def _field(name: str, kind: pa.DataType, what: str, *, nullable: bool = False, truth: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable, {"what": what, "truth": "yes" if truth else "no"})


def _schema(*fields: pa.Field) -> pa.Schema:
    return pa.schema(fields, {"skg_bench_schema": str(SCHEMA_VERSION)})


def _of_outcome(each: OutcomeField) -> pa.Field:
    unit = f", {each.unit}" if each.unit else ""
    return _field(each.name, _STORED[each.stored], f"{each.says}{unit}", nullable=True, truth=each.truth)


REPLAYED_COLUMNS = (
    _field(
        "logged_user", _WORD, "of a replayed log: who asked, as the log names them; a hash if redacted", nullable=True
    ),
    _field("logged_id", pa.string(), "the turn's id in the log; a hash if redacted", nullable=True),
    _field("logged_row", pa.int64(), "line of the log, or row where it is no text; the first is 1", nullable=True),
    _field("logged_time", pa.timestamp("ms"), "when it was, by the user's clock", nullable=True),
    _field("logged_answer", _WORD, "what was answered then; a hash if redacted", nullable=True),
    _field("logged_cost_usd", pa.float64(), "what that cost, USD", nullable=True),
    _field("logged_latency_ms", pa.float64(), "how long the user waited for it, milliseconds", nullable=True),
    _field(
        "stored_answer",
        _WORD,
        "the stored answer that was returned, in the words of the log; a hash if redacted",
        nullable=True,
    ),
    _field("same_answer", pa.bool_(), "the stored answer is the same text as that of the log", nullable=True),
    _field(
        "same_intent",
        pa.bool_(),
        "the stored answer had been given to the same intent; null: not known, or they share some active ones",
        nullable=True,
        truth=True,
    ),
    _field(
        "asked_again",
        pa.bool_(),
        "the user's next message of the same conversation asks the same; null: the log names no conversation or answer",
        nullable=True,
    ),
)
"""What a log that is replayed says of its turns, the last columns of the turn log."""


WORDS_COLUMN = _field("said", _WORD, "what was said, in words; a hash if redacted; null: nothing came", nullable=True)
"""Column of runs in whose world answers are words, behind the message."""


def turns(top_k: int, outcome: Sequence[OutcomeField] = (), *, in_words: bool = False) -> pa.Schema:
    """One row a turn; the names of the SKG paper's signal table (section 2.4) come first. `outcome` and `in_words`: of
    the domain.
    """
    scores = pa.list_(pa.float32(), top_k)
    return _schema(
        _field("user_msg_id", pa.string(), "u<user>-t<turn>"),
        _field("message", _WORD, "text of the message"),
        *([WORDS_COLUMN] if in_words else []),
        _field(
            "max_sim",
            pa.float32(),
            "largest cosine to any example of the user's active skills, 0 if there are none",
            nullable=True,
        ),
        _field("matched_skill", _WORD, "name of the skill that answered; null: the LLM did", nullable=True),
        _field(
            "skill_score",
            pa.float32(),
            "combined score of the chosen skill; on fallback of the best candidate. Of an assistant in words: "
            "cosine of the message to that whose answer came back, or stood in the prompt; null: none did",
            nullable=True,
        ),
        _field("fallback_to_llm", pa.bool_(), "the LLM answered"),
        _field("user_satisfaction", _WORD, "ok, partial, miss as known with the turn; null: not said", nullable=True),
        _field("skill_learned", pa.bool_(), "a skill was added or renewed from this turn", nullable=True),
        _field("arm", _WORD, "name of the arm"),
        _field("seed", pa.int64(), ""),
        _field("user", pa.int32(), ""),
        _field("turn", pa.int32(), "0-based place of the event among the user's, in order of time"),
        _field("event", pa.int32(), "the event's own number; differs from `turn` if events were permuted or left out"),
        _field("time", pa.timestamp("ms"), _SINCE),
        _field(
            "skill",
            pa.int32(),
            "id in the user's book, -1: the LLM answered, or an assistant without skills",
        ),
        _field("source_turn", pa.int32(), "turn whose stored answer was returned, -1: none"),
        _field("propensity", pa.float64(), "probability of this choice, at the decision"),
        _field("explored", pa.bool_(), "the choice was random"),
        _field(
            "serving",
            _WORD,
            "llm, stored, prompted, procedure, procedure_failed (nothing came back, the LLM answered), "
            "silent (nothing was said), leaked (the words were an answer that this user was never given)",
        ),
        _field("offer", _WORD, "reaction to an offer to capture: accepted, badly_named, declined", nullable=True),
        _field("agrees", pa.bool_(), "a judge: the LLM said what a skill would; null: not compared", nullable=True),
        *(_of_outcome(each) for each in outcome if not each.truth),
        _field("tokens_in", pa.int32(), ""),
        _field("tokens_out", pa.int32(), ""),
        _field("cost_usd", pa.float64(), "metered, USD; null: a log with prices has none of this turn", nullable=True),
        _field("latency_ms", pa.float64(), "simulated or the log's, milliseconds; null: as there", nullable=True),
        _field("learning_tokens_in", pa.int32(), "of the learning jobs of the turn; not in `tokens_in`"),
        _field("learning_tokens_out", pa.int32(), ""),
        _field("learning_cost_usd", pa.float64(), "metered, USD; not in `cost_usd`"),
        _field("book_size", pa.int32(), "active skills after the turn", nullable=True),
        _field("book_version", pa.int32(), "version of the skillbook after the turn", nullable=True),
        _field("book_hash", pa.binary(16), "state hash of the skillbook after the turn", nullable=True),
        _field("shortlist", pa.list_(pa.int32(), top_k), "skill ids, best first, -1 beyond the end", nullable=True),
        _field("similarity", scores, "signal 1 of the shortlist", nullable=True),
        _field("preference", scores, "signal 2 of the shortlist", nullable=True),
        _field("score", scores, "signal 3 of the shortlist; NaN: no signal", nullable=True),
        _field("combined", scores, "weighted mean of the signals", nullable=True),
        _field(
            "skill_correct",
            pa.bool_(),
            "on a hit: the answer was right; else, or not known: null",
            nullable=True,
            truth=True,
        ),
        _field("answer_correct", pa.bool_(), "the answer was right; null: not known", nullable=True, truth=True),
        _field(
            "cause",
            _WORD,
            f"why no right skill answered, see assistant/pipeline/cause.py: {', '.join(CAUSES)}; null: not known",
            nullable=True,
            truth=True,
        ),
        _field("intent", _WORD, "null: a one-off", nullable=True, truth=True),
        _field("request_type", _WORD, "null: a one-off", nullable=True, truth=True),
        _field(
            "answerable",
            pa.int32(),
            "earlier answers of this user that still hold now; null: not known",
            nullable=True,
            truth=True,
        ),
        _field(
            "used_up",
            pa.bool_(),
            "a repeat forced by the corpus: all wordings were said, or a one-off again",
            truth=True,
        ),
        *(_of_outcome(each) for each in outcome if each.truth),
        *REPLAYED_COLUMNS,
    )


UPDATES = _schema(
    _field("arm", _WORD, ""),
    _field("user", pa.int32(), ""),
    _field("turn", pa.int32(), "turn at which the operation was applied"),
    _field("time", pa.timestamp("ms"), ""),
    _field("op", _WORD, "ADD, UPDATE, TAG, REMOVE"),
    _field("skill", pa.int32(), "id of the skill in the user's book"),
    _field("name", _WORD, "name given (ADD)", nullable=True),
    _field("message", _WORD, "example added (ADD, UPDATE)", nullable=True),
    _field(
        "source_turn",
        pa.int32(),
        "turn whose answer is stored (ADD, UPDATE), -1: none is",
    ),
    _field("rating", _WORD, f"rating recorded, or taken back (TAG): {', '.join(TAG_RATINGS)}", nullable=True),
    _field("uses", pa.int32(), "uses recorded (TAG)"),
    _field("after", pa.int32(), "skill that answered the turn before (ADD, UPDATE, TAG with a use), -1: none"),
    _field("born", pa.timestamp("ms"), "time of the turn whose answer is stored (ADD, UPDATE)", nullable=True),
    _field("section", _WORD, "of what the skill says from now on (ADD, UPDATE); null: as before", nullable=True),
    _field("issue", _WORD, "the situation, or all that the skill says", nullable=True),
    _field("insight", _WORD, "what to do about the issue", nullable=True),
    _field("keywords", _WORD, "words in lower case, with blanks between them", nullable=True),
    _field("reason", _WORD, "why the curator did it"),
    _field("about", pa.int32(), "turn that it was learned from, -1: none"),
    _field("book_version", pa.int32(), "version after the batch"),
    _field("book_hash", pa.binary(16), "state hash after the batch"),
)

LEARNING_LOG = _schema(
    _field("arm", _WORD, ""),
    _field("user", pa.int32(), ""),
    _field("turn", pa.int32(), "turn at which the job began"),
    _field("about", pa.int32(), "turn that was learned from"),
    _field("channel", _WORD, f"feedback that began the job: {', '.join(FEEDBACK_KINDS)}"),
    _field("value", _WORD, "and what it said; null: nothing, as the capture began the job", nullable=True),
    _field("start", pa.timestamp("ms"), ""),
    _field("end", pa.timestamp("ms"), "start and the latency of all calls: when it wrote, if jobs take time"),
    _field("version_read", pa.int32(), "of the skillbook that the model was shown"),
    _field("version_written", pa.int32(), "of the skillbook with the operations, -1: there were none"),
    _field("result", _WORD, ", ".join(RESULTS)),
    _field("operations", pa.int32(), "admitted"),
    _field("refused", pa.int32(), "operations that were proposed and not admitted"),
    _field("refusals", _WORD, "what was not admitted and why, as JSON", nullable=True),
    _field("tokens_in", pa.int32(), "of all calls, cached ones included"),
    _field("tokens_cached", pa.int32(), ""),
    _field("tokens_out", pa.int32(), ""),
    _field("cost_usd", pa.float64(), "metered, USD"),
    _field("latency_ms", pa.float64(), "of all calls, one after the other"),
    _field("reflection", _WORD, "what the model learned from the turn", nullable=True),
    _field("reason", _WORD, "why nothing came", nullable=True),
    _field("served", _WORD, "the model as the server names it, and the form of its answers", nullable=True),
    _field(
        "meanwhile",
        pa.int32(),
        "operations of the user's other jobs that were applied between start and end, 0: no conflict; this and what "
        "follows is null where jobs take no time",
        nullable=True,
    ),
    _field("merged", pa.int32(), "ADDs of what was added meanwhile, now TAGs", nullable=True),
    _field("aside", pa.int32(), "UPDATEs of what was updated meanwhile, not applied", nullable=True),
    _field("misdirected", pa.int32(), "operations on what was removed meanwhile", nullable=True),
    _field("duplicated", pa.int32(), "ADDs of what was added meanwhile, applied all the same", nullable=True),
    _field("overwritten", pa.int32(), "operations of other jobs that are lost", nullable=True),
)


FEEDBACK = _schema(
    _field("arm", _WORD, ""),
    _field("user", pa.int32(), ""),
    _field("turn", pa.int32(), "the turn that it is about"),
    _field("time", pa.timestamp("ms"), "time of that turn"),
    _field("known_at", pa.timestamp("ms"), "when it became known"),
    _field("skill", pa.int32(), "the skill that answered, -1: the LLM did, or an assistant without skills"),
    _field("kind", _WORD, f"channel: {', '.join(FEEDBACK_KINDS)}; and those of the domain"),
    _field("value", _WORD, f"what was said: {'; '.join(', '.join(levels) for levels in FEEDBACK_KINDS.values())}"),
)
