"""Sections of a run that replays a log: what it can say, and what not, as no log knows which answers were right."""

from collections.abc import Mapping
from typing import Any

from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.report.job_sentences import learning_sentences
from skg_bench.analysis.report.sentences import Sentence, code, share_of
from skg_bench.analysis.summary.document import Summary
from skg_bench.core.record import left_out
from skg_bench.core.text import plural
from skg_bench.runfolder.run import Run

ENGLISH = (
    "Messages are compared by a model of English (embedder=minilm). If yours are in another language, trust no share "
    "of answers from memory, and choose another model, such as embedder=sentence_transformer "
    "embedder.model=paraphrase-multilingual-MiniLM-L12-v2."
)
_MINILM = "skg_bench.embedder.minilm."


def logged_headline(summary: Summary, arm: str) -> Sentence:
    """The question that a log leaves open; of the reference, what it does."""
    if arm == summary.reference == summary.never:
        return Sentence(f"{code(arm)} answers nothing from memory: all answers are those of the log.", "plain")
    users = "these pseudo-users" if (summary.log or {})["pseudo_users"] else "its users"
    return Sentence(
        f"Whether {code(arm)} serves {users} better than {code(str(summary.reference))} is not known in this log: it "
        "does not say which answers were right, and nobody was given an answer from memory.",
        "open",
    )


def logged_answers(summary: Summary, arm: str) -> Sentence:
    """The share of requests that an arm would have answered from memory, and how far these answers are known."""
    return Sentence(_answered(summary, arm), "plain")


def logged_findings(summary: Summary, arm: str) -> list[Sentence]:
    """Bounds of an arm's wrong answers, its ratings, and its learning jobs."""
    texts = [text for text in (_saved(summary, arm), _bounds(summary, arm), _rated(summary, arm)) if text]
    return [*(Sentence(text, "plain") for text in texts), *_jobs(summary, arm, caution=False)]


def logged_cautions(summary: Summary) -> list[Sentence]:
    """Limits of the log."""
    log, sentences = (
        summary.log or {},
        [sentence for arm in summary.arms for sentence in _jobs(summary, arm, caution=True)],
    )
    if log["pseudo_users"]:
        sentences.append(
            Sentence(
                "The users are pseudo-users, no persons: dialogues were dealt to them by key. What looks like "
                "somebody's growth is none; such data test reading and satisfaction, never personal growth.",
                "caution",
            )
        )
    left = sum(entry["rows"] for entry in log["left_out"].values())
    if left:
        sentences.append(
            Sentence(
                f"{left:,} of {log['read']:,} rows were left out: {'; '.join(left_out(log['left_out']))}.", "caution"
            )
        )
    return sentences


def language_sentences(run: Run) -> list[Sentence]:
    """A sentence on a replayed log whose messages were compared by a model of one language."""
    of_log = run.manifest.get("log") and not run.manifest.get("imported")
    return [Sentence(ENGLISH, "caution")] if of_log and is_english(run.config.get("embedder")) else []


def is_english(embedder: Mapping[str, Any] | None) -> bool:
    """Is the configured embedder a model of English alone?"""
    return str((embedder or {}).get("_target_")).startswith(_MINILM)


def _jobs(summary: Summary, arm: str, *, caution: bool) -> list[Sentence]:
    return [sentence for sentence in learning_sentences(summary, arm) if (sentence.tone == "caution") == caution]


def facts(log: Mapping[str, Any], turns: int) -> list[tuple[str, str]]:
    """Facts that a reader should know of the log, as (what, words). `turns`: of the run."""
    names = {"intent": "intents", "answer": "answers", "satisfaction": "ratings", "action": "actions",
             "propensity": "propensities", "cost_usd": "costs", "latency_ms": "waiting times",
             "session": "conversations"}  # fmt: skip
    held_columns = [names[column] for column in log["knows"]]
    unsaid = [names[column] for column in ("intent", "answer", "satisfaction", "session") if column not in log["knows"]]
    people, weeks = "pseudo-users, no persons" if log["pseudo_users"] else "users", plural(log["weeks"], "week")
    return [
        ("Log", f"{log['file']}: {log['turns']:,} turns of {log['users']:,} {people} in {weeks}"),
        ("In this run", "all of them" if turns == log["turns"] else f"{turns:,} of them (users and weeks of the run)"),
        ("It holds, beside messages", ", ".join(held_columns) or "nothing"),
        ("It does not say", ", ".join(["which answers were right", *unsaid])),
        ("Days", f"shown as in the log; week 1 begins with Monday {log['first_day']}, which is 2026-01-05 in `time`"),
        *((f"Taken for granted: {what}", words) for what, words in log["assumes"].items()),
        ("Left out", "; ".join(left_out(log["left_out"])) or "no row"),
        *(
            [("Hashed here and in the logs", "messages, answers, users and ids: pseudonyms, not anonymity")]
            if log["redacted"]
            else []
        ),
    ]


def _answered(summary: Summary, arm: str) -> str:
    arm_figures = summary.arms[arm]

    def share(metric: str) -> str | None:
        figure = arm_figures.get(metric)
        return None if figure is None or figure.mean is None else number(figure.mean, "share")

    if not arm_figures["hit_rate"].mean:
        total = summary.totals[arm]
        seen = "" if total["call"] == total["turn"] else " that can be seen"  # words of a class may have no reference
        return f"{code(arm)} would have given no stored answer{seen}."
    hits = share_of(arm_figures["hit_rate"])
    if prompts_alone(summary, arm):
        unknown = "What the model would have said then is not in the log"
        return f"{code(arm)} would have put earlier answers into the model's prompt at {hits} of requests. {unknown}."
    text = f"{code(arm)} would have given a stored answer, right or wrong, to {hits} of requests"
    if other := share("other_intent"):
        text += (
            f", of these {other} with an answer that had been given to another intent: wrong, unless one "
            "answer fits both"
        )
    elif share("same_answer") is None:
        text += "; how many of these wrongly is not known, as the log names no intents and holds no answers"
    if same := share("same_answer"):
        reworded = share("other_answer")
        text += f". In {same} of these it is, word for word, the answer that the log gave"
        text += f", in {reworded} another one that had been given to the same intent" if reworded else ""
    return f"{text}."


def prompts_alone(summary: Summary, arm: str) -> bool:
    """Does an arm use memory in prompts of the model alone, and gives no stored answer?"""
    totals = summary.totals[arm]
    return bool(totals["hit"]) and totals["call"] == totals["turn"]


def _saved(summary: Summary, arm: str) -> str | None:
    """Money that an arm would have saved, by the log's own prices; None: it has none, or nothing to hold it against."""
    saved = summary.arms[arm].get("cost_saved_usd")
    if summary.never in (None, arm) or saved is None or "cost_usd" not in (summary.log or {})["knows"]:
        return None
    totals, alone = summary.totals[arm], summary.totals[str(summary.never)]
    spent = [(total["cost"] or 0.0) + (total["learning"] or 0.0) for total in (totals, alone)]
    text = f"By the log's own prices {code(arm)} would have saved ${spent[1] - spent[0]:,.2f} of ${spent[1]:,.2f}"
    if saved.mean is not None:
        text += f": {number(saved.mean, 'usd', signed=True)} a request of a user"
        spans = {"new": (saved.low_new, saved.high_new), "these": (saved.low, saved.high)}
        for which, (low, high) in spans.items():
            if low is not None and high is not None:
                text += f" (95 % interval for {which} requests {interval(low, high, 'usd', signed=True)})"
                break
    priced, turns = int(totals["priced"] or 0), int(totals["turn"] or 0)
    return f"{text}." if priced == turns else f"{text}. {turns - priced:,} of {turns:,} requests have no price there."


def _bounds(summary: Summary, arm: str) -> str | None:
    """Lower and upper bound of the share of wrong answers from memory, with what each counts."""
    figures = (summary.arms[arm].get(bound) for bound in ("wrong_lower", "wrong_upper"))
    lower, upper = (None if figure is None else figure.mean for figure in figures)
    if lower is None or upper is None or prompts_alone(summary, arm):
        return None  # a lower one alone is the share for another intent, which stands before
    knows = (summary.log or {})["knows"]
    counted = ["they belong to another intent"] * ("intent" in knows)
    counted += ["users rated them a miss"] * ("satisfaction" in knows)
    rated = ", or were rated badly" if "satisfaction" in knows else ""
    where = f"of the served answers of {code(arm)} are wrong"
    least = f"At least {number(lower, 'share')} {where}: {', or '.join(counted)}. " if counted else ""
    most = f"If the log's answers are right, at most {number(upper, 'share')} {'are' if least else where}"
    return f"{least}{most}: all that differ from the log's answer{rated}."


def _rated(summary: Summary, arm: str) -> str:
    n_rated = int(summary.totals[arm]["rated"] or 0)
    if "satisfaction" not in (summary.log or {})["knows"]:
        return "No ratings were read from the log, so nothing was learned from any."
    text = f"Ratings count where an arm gives the answer that was rated: {n_rated:,} under {code(arm)}"
    if summary.never is not None and summary.never != arm:
        text += f", {int(summary.totals[summary.never]['rated'] or 0):,} under {code(summary.never)}"
    rated = summary.arms[arm]["rated_ok"]
    return f"{text}; of {code(arm)}'s {share_of(rated)} say ok." if rated.mean is not None else f"{text}."
