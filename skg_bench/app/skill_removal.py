"""`skg-bench skills --remove`: skillbooks without the worst skills, and the batches that remove them, with reasons."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from skg_bench.app.progress import console
from skg_bench.app.skill_lift import SkillWorths
from skg_bench.app.skillbook import files, rebuilt
from skg_bench.app.skillbook.agentropy_folders import write_folders
from skg_bench.core.calendar import WEEK
from skg_bench.core.temporary import write_private
from skg_bench.core.text import plural
from skg_bench.skillbook.skillbook import Operation, Skill, Skillbook

BATCH = "batch.json"


def write_without(worths: SkillWorths, many: int, out: Path, *, trust: bool) -> None:
    """Write `out/user-U` for each user who has one of the `many` worst skills in the book at the end of the run: the
    book without them, as agentropy keeps it, and the batch that removed them, as ACE has it. Skills that did not hurt
    stay. Nothing is half-written.

    Raises UsageError where something is there already, and for what `write_folders` refuses.
    """
    files.check_free(out)
    removed = _worst(worths, many)
    screen, skills = console(), sum(map(len, removed.values()))
    if not removed:
        screen.print("no skill that is in a book at the end has hurt: nothing is written")
        return
    end = int(worths.run.manifest["weeks"]) * WEEK
    operations = {
        user: [Operation("REMOVE", skill.id, end, reason=reason) for skill, reason in chosen]
        for user, chosen in removed.items()
    }
    out.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as above:
        whole = Path(above) / "books"
        write_folders(worths.run, worths.arm, operations, whole, trust=trust)
        for user, chosen in removed.items():
            write_private(
                whole / f"user-{user}" / BATCH, json.dumps(_batch(chosen), indent=1, ensure_ascii=False) + "\n"
            )
        whole.rename(out)
    few = "" if skills == many else f" (no more of those that are in a book at the end have hurt, of {many:,})"
    books = plural(len(removed), "skillbook")
    screen.print(f"{plural(skills, 'skill')} removed from {books}{few}: {out}/user-*, with {BATCH}", soft_wrap=True)


def _worst(worths: SkillWorths, many: int) -> Mapping[int, Sequence[tuple[Skill, str]]]:
    """The skills to remove of each user, with the reason."""
    lifts, value = worths.lifts, worths.best_known
    books: dict[int, Skillbook] = {}
    chosen: dict[int, list[tuple[Skill, str]]] = {}
    left = many
    for i in worths.order.tolist():
        if left == 0 or value[i] >= 0:
            break
        user, skill = int(lifts.users[lifts.user[i]]), int(lifts.skill[i])
        if user not in books:
            books[user] = rebuilt.book(worths.run, worths.arm, user)
        if not books[user].skills[skill].active:
            continue
        kind = "first order" if np.isnan(worths.exact[i]) else "exact"
        served, right = int(lifts.served[i].sum()), int(lifts.right[i])
        reason = f"lift {value[i]:+.2f} utility ({kind}); served {served:,} times, {right:,} right: {lifts.name[i]}"
        chosen.setdefault(user, []).append((books[user].skills[skill], reason))
        left -= 1
    return chosen


def _batch(chosen: Sequence[tuple[Skill, str]]) -> dict[str, object]:
    operations = [{"type": "REMOVE", "skill_id": skill.shown_id, "reason": reason} for skill, reason in chosen]
    return {"reasoning": "The user was better off without these skills.", "operations": operations}
