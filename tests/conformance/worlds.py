"""Small worlds for components that need more than the dense one: a log in each format, a corpus of a few messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.simulator.answers import corpus
from skg_bench.skillbook import agentropy
from skg_bench.skillbook.skillbook import Skillbook
from tests.laws import world
from tests.simulator.logs.logs import turn, write_csv, write_lines
from tests.simulator.logs.published import banking77
from tests.simulator.logs.test_clinc150 import corpus as clinc150_files

USERS, TURNS = 5, 30
MONDAY = datetime(2024, 3, 4, 9)
COLUMNS = "simulator.columns={intent: intent, answer: answer, satisfaction: satisfaction}"
Overrides = Sequence[str]
EVEN = (  # everybody asks about as often as the others: a run takes as many steps as its busiest user has turns
    "simulator.messages_per_day=4", "simulator.volume_spread=0.05", "simulator.day_spread=0.05",
    "simulator.active_low=1", "simulator.weekend_activity=1",
)  # fmt: skip
DENSE = (*world.DENSE, *EVEN)
SIMULATED = (f"users={USERS}", *DENSE)
OTHER_CORPUS = tuple(text for text in SIMULATED if not text.startswith("simulator.corpus="))
LOGGED = (
    "embedder=corpus_minilm", "curator.offer_after=answer", "policy.threshold=0.4", "refit_every=5", "seed=7",
)  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """A log: some users ask for a few things of the built-in corpus, again and again, and rate some answers."""
    rng, known, log = np.random.default_rng(7), corpus.load_corpus(), []
    for i in range(USERS * TURNS):
        kind = int(rng.integers(0, 6)) * 40
        message = known.messages[rng.choice(known.wordings[kind][: known.n_wordings[kind]])]
        time = MONDAY + timedelta(hours=5 * (i // USERS), minutes=i % USERS)
        rating = ("", "ok", "ok", "partial", "miss")[int(rng.integers(0, 5))]
        intent, answer = known.intents[known.intent[kind]], known.answers[kind]
        more = {"intent": intent, "answer": answer, "satisfaction": rating}
        log.append(turn(f"user {i % USERS}", time.isoformat(), message, **more))
    return log


def recorded(folder: Path) -> Overrides:
    """A table."""
    return (*LOGGED, f"simulator.path={write_csv(folder / 'log.csv', rows())}", COLUMNS)


def sgd(folder: Path) -> Overrides:
    """Dialogues of two messages."""
    dialogues = []
    for i, row in enumerate(rows()):
        state = {"service": "A_1", "state": {"active_intent": row["intent"]}}
        request = {"speaker": "USER", "utterance": row["message"], "frames": [state]}
        answer = {"speaker": "SYSTEM", "utterance": row["answer"], "frames": []}
        dialogues.append({"dialogue_id": f"1_{i:05d}", "turns": [request, answer]})
    (folder / "dialogues_001.json").write_text(json.dumps(dialogues), "utf-8")
    return (*LOGGED, f"simulator.path={folder}", f"simulator.dialogues_per_user={TURNS}")


def uss(folder: Path) -> Overrides:
    """The same with scores."""
    scores = {"": "3,3,3", "ok": "5,4,5", "partial": "3,3,3", "miss": "1,2,1"}
    dialogues = [
        f"USER\t{row['message']}\tREQUEST\t3,3,3\nSYSTEM\t{row['answer']}\tOFFER\t\n"
        f"USER\t{row['message']}\tINFORM\t{scores[row['satisfaction']]}\n"
        for row in rows()
    ]
    (folder / "SGD.txt").write_text("\n".join(dialogues), "utf-8")
    return (*LOGGED, f"simulator.path={folder / 'SGD.txt'}", f"simulator.dialogues_per_user={TURNS}")


def wildchat(folder: Path) -> Overrides:
    """Conversations of two messages."""
    lines = [
        {
            "hashed_ip": row["user"], "timestamp": row["time"], "conversation_hash": str(i),
            "conversation": [{"role": "user", "content": row["message"]},
                             {"role": "assistant", "content": row["answer"]}],
        }
        for i, row in enumerate(rows())
    ]  # fmt: skip
    return (*LOGGED, f"simulator.path={write_lines(folder / 'chats.jsonl', lines)}")


def agentropy_folders(folder: Path) -> Overrides:
    """A folder for each user, with signals and no skill yet."""
    log = rows()
    for user in range(USERS):
        signals = [
            {
                "user_msg_id": str(i), "message": row["message"], "max_sim": 0.0, "matched_skill": None,
                "skill_score": None, "fallback_to_llm": True, "user_satisfaction": row["satisfaction"] or None,
                "skill_learned": None, "time": row["time"], "answer": row["answer"],
            }
            for i, row in enumerate(log[user::USERS])
        ]  # fmt: skip
        index = agentropy.AgentropyIndex(Skillbook((), 0), (), np.zeros((0, 8), np.float32), tuple(signals))
        agentropy.write_agentropy(folder / f"user-{user}", index, MONDAY)
    return (*LOGGED, f"simulator.path={folder}")


def clinc150(folder: Path) -> Overrides:
    """A few messages in its format."""
    clinc150_files(folder)
    files = (f"simulator.corpus.file={folder / 'said.json'}", f"simulator.corpus.table={folder / 'table.yaml'}")
    return (*OTHER_CORPUS, *files, "simulator.corpus.split=train", "simulator.corpus.values=2", "embedder=hashing")


def labelled(folder: Path) -> Overrides:
    """A few intents, as such corpora are published."""
    return (*OTHER_CORPUS, f"simulator.corpus.path={banking77(folder)}", "embedder=hashing")


def conversations(folder: Path) -> Overrides:
    """Conversations of two messages, of nobody."""
    path = Path(wildchat(folder)[-1].partition("=")[2])
    return (*LOGGED, f"simulator.path={path}", f"simulator.dialogues_per_user={TURNS}")


def shoppers(_folder: Path) -> Overrides:
    """Some who buy often."""
    return (f"users={USERS}", "weeks=2", "simulator.triggers_per_week=15", "serving=prompted", "seeds=rookie", "seed=7")


def fact_users(_folder: Path) -> Overrides:
    """Some who ask much, and tell much of what only they know."""
    dense = tuple(text.replace("simulator.", "simulator.users.") for text in DENSE)
    return (f"users={USERS}", *dense, "simulator.asks_for_two=1", "simulator.facts_change=0.5", "embedder=hashing")


def clinc150_fact_users(folder: Path) -> Overrides:
    """A few messages in CLINC150's format, of users who tell nothing: its facts are about other intents."""
    here = (text.replace("simulator.", "simulator.users.") for text in clinc150(folder))
    return (*here, "simulator.known_by=world")


def tellers(_folder: Path) -> Overrides:
    """Some who tell much, change it, and ask often."""
    return (f"users={USERS}", "weeks=2", "simulator.asks_per_week=10", "simulator.changes=0.8", "seed=7")


def tasks(folder: Path) -> Overrides:
    """A log whose answers are references, each asked again."""
    table = [{key: row[key] for key in ("user", "time", "message", "intent", "answer")} for row in rows()]
    table = [{**row, "answer": f"reference {row['answer']}"} for row in table]
    columns = "simulator.columns={intent: intent, answer: answer}"
    return (*LOGGED, f"simulator.path={write_csv(folder / 'tasks.csv', table)}", columns)


def solvers(_folder: Path) -> Overrides:
    """Some with tasks of a few families."""
    families = "simulator.families=[gcd, lcm, products, chain_sum, count_bits, coin_flip, caesar_cipher, dice]"
    size = ("simulator.groups=2", "simulator.times=4", "simulator.accepts=1")
    return (f"users={USERS}", "weeks=2", families, *size, *LOGGED[1:])


IN_WORDS = ("simulator=told", *tellers(Path()))


SIMULATORS: Mapping[str, Callable[[Path], Overrides]] = {
    "recorded": recorded, "sgd": sgd, "uss": uss, "wildchat": wildchat, "agentropy": agentropy_folders,
    "clinc150": clinc150, "labelled": labelled, "conversations": conversations, "guardian": shoppers,
    "facts": fact_users, "facts_clinc150": clinc150_fact_users, "told": tellers, "tasks": tasks, "gym": solvers,
}  # fmt: skip
EMBEDDED = "simulator=recorded"  # has 240 messages: models take long
EMBEDDED_ALONE = {"guardian_minilm": "simulator=guardian"}  # vectors of one world's messages
DENSER: Mapping[tuple[str, str], Overrides] = {  # what makes a component do something within a week
    ("curator", "budget"): ("curator.capacity=2",),
    ("curator", "facts_clinc150"): ("curator.corpus=null",),  # that of the run
    ("curator", "metered"): ("curator.tokens=3000", "curator.turns=20"),
    ("policy", "exp4"): ("policy.rate=1",),
    ("policy", "interleave"): ("policy.first.threshold=0.3",),
    ("policy", "matched_random"): ("policy.rate=0.3",),
    ("policy", "vcache"): ("policy.delta=0.3", "policy.least=1"),
    ("policy", "llm_chooser"): ("curator=reflecting", "serving=prompted"),  # skills say something
    ("policy", "epsilon_threshold"): ("policy.epsilon=0.3",),
}
