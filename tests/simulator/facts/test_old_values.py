"""Without facts and persistent errors, the world of facts is that of answers, bit for bit."""

from pathlib import Path

from tests.laws.world import LOGS, rows, unlike
from tests.simulator.facts.fact_runs import OLD, SHARED, carried_out, habits

USERS = 8
ARMS = {
    "never": ["policy=never", "curator=none"],
    "skg": [],
    "prompted": ["serving=prompted", "curator=everything"],
    "procedure": ["serving=procedure", "named_by=intent"],
    "vcache": ["policy=vcache", "policy.delta=0.3", "policy.least=1"],
    "donor": ["fork=skg@10", "book=donor", "curator=none"],
    "oracle": ["router=oracle", "policy=always", "curator=oracle"],
}


def test_old_values_give_the_same_bits_as_the_world_of_answers(tmp_path: Path) -> None:
    mine, theirs = (habits(prefix, messages_per_day=3) for prefix in ("simulator", "simulator.users"))
    answers = carried_out(tmp_path / "answers", ARMS, f"users={USERS}", *SHARED, *mine)
    facts = carried_out(tmp_path / "facts", ARMS, "simulator=facts", *OLD, f"users={USERS}", *SHARED, *theirs)
    compared = 0
    for arm in ARMS:
        for log in LOGS:
            before, now = rows(answers, log, arm, range(USERS)), rows(facts, log, arm, range(USERS))
            assert set(before.column_names) <= set(now.column_names)
            assert unlike(before, now) == [], f"{arm} {log}"
            compared += before.num_rows * before.num_columns
    assert compared > 50_000


def test_facts_and_persistence_change_what_models_get_right(tmp_path: Path) -> None:
    arms = {"never": ARMS["never"]}
    run = carried_out(tmp_path, arms, "simulator=facts", f"users={USERS}", *SHARED, *habits("simulator.users"))
    turns = rows(run, "turns", "never", range(USERS)).to_pandas()
    told = turns[turns.need == "told"]
    assert len(told) >= 10
    assert told.answer_correct.mean() <= 0.1
    assert turns[turns.known_by == "telling"].answer_correct.all()
