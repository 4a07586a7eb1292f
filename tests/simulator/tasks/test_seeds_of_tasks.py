"""Somebody else's folder of skills on tasks of one's own: with it, without it, and with its bodies exchanged."""

from pathlib import Path

import pytest

from tests.simulator.tasks.test_tasks import CODES, played

SERVED = "serving=prompted, policy.threshold=0.6, curator=none, reranker=identity, signals.preference=0"


def skill(folder: Path, name: str, door: str, body: str) -> None:
    (folder / name).mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: What is the key of door {door}?\n---\n{body}\n"
    (folder / name / "SKILL.md").write_text(text, "utf-8")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two skills, and the same two with exchanged bodies."""
    bodies = [f"The key of door {place}0 is {CODES[place]}." for place in (0, 1)]
    for name, mine in (("real", bodies), ("sham", bodies[::-1])):
        for place, body in enumerate(mine):
            skill(tmp_path / name, f"door-{place}", f"{place}0", body)
    return tmp_path / "real", tmp_path / "sham"


def test_a_folder_of_skills_helps_where_it_says_what_is_asked_and_its_sham_does_not(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    real, sham = folders
    arms = f"arms={{real: [seeds={real}, {SERVED}], sham: [seeds={sham}, {SERVED}], without: [{SERVED}]}}"
    run = played(tmp_path, arms, "reference=without")
    right = {}
    for arm in run.arms:
        turns = run.turns(arm).to_pandas()
        turns = turns[turns["message"].isin([f"What is the key of door {place}0?" for place in (0, 1)])]
        assert len(turns) == 4
        right[arm] = int(turns["answer_correct"].sum())
        assert set(turns["serving"]) == ({"llm"} if arm == "without" else {"prompted"})
        if arm != "without":  # the description is what is routed on
            assert (turns["matched_skill"].astype(str).str[-1] == turns["message"].str[-3]).all()
    assert right == {"real": 4, "sham": 0, "without": 0}
