"""Operations on the skillbooks of a run: what an ensemble applies, and how logs tell it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import Stamp, Stored
from skg_bench.assistant.pipeline.stack_memory import PipelineState
from skg_bench.core.assistant import Applied, Message
from skg_bench.core.batch import ADD, UPDATE, Batch
from skg_bench.core.grid import I32, I64

Merge = Callable[[I64, I32], None]


def apply_batch(
    state: PipelineState, query: Message, batch: Batch, last_skill: I32, merge: Merge, *, added: I32 | None = None
) -> tuple[Batch, Applied]:
    """The operations carried out, with the skill of each, and what came of them. `merge` is told whose answers became
    one skill; `added` `[B]`: skills that were added at this turn before, None: none.
    """
    table = state.table
    if not len(batch.op):
        return batch, Applied(query.time, last_skill, np.zeros(0, np.int64), table.version, table.hash)
    nameless = (batch.op == ADD) & (batch.name < 0)
    if nameless.any():
        batch = replace(batch, name=np.where(nameless, query.store.texts.names[-1], batch.name).astype(np.int32))
    source = batch.row, np.maximum(batch.source, 0)
    given = batch.source >= 0
    born = np.where(given, state.time[source], query.time[batch.row])
    stored = Stored(born, np.where(given, state.answer[source], -1))
    renews = ((batch.op == UPDATE) & (batch.source == query.turn)).nonzero()[0]
    row, at = batch.row[renews].astype(np.int64), np.minimum(batch.skill[renews], table.answer.shape[1] - 1)
    earlier = table.answer[row, at]  # before it is renewed
    stamp = Stamp(query.time, query.local, last_skill, query.number, added)
    skill = table.apply(batch, stamp, stored)
    if (known := earlier >= 0).any():
        merge(row[known], earlier[known])
    made = replace(batch, skill=skill)
    return made, Applied(query.time, last_skill, stored.born, table.version, table.hash)
