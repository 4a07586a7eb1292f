"""The published engines stand in one room, and only what plays or reads their batches opens it."""

from tests.imports import imports

ROOM = "skg_bench.skillbook.ace"
ENGINES = ("attach", "consolidation", "effective", "engine", "loading", "rendering", "similarity", "sources", "upkeep")
OPENED_BY = {"skg_bench.app.skillbook.batch_file", "skg_bench.skillbook.proposals.parsing"}  # the command; curators


def test_only_the_command_and_the_reader_of_models_batches_open_the_published_engines() -> None:
    engines = {f"{ROOM}.{name}" for name in ENGINES}
    openers = {i.importer for i in imports() if i.module in engines and not i.importer.startswith(ROOM)}
    assert openers == OPENED_BY


def test_the_engines_import_nothing_that_is_above_their_room() -> None:
    below = ("skg_bench.core.", ROOM)
    assert [i for i in imports() if i.importer.startswith(ROOM) and not i.module.startswith(below)] == []
