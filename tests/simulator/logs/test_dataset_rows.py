"""Data sets of the `datasets` library: what of them is read, as what, and which failures are said how soon."""

import logging
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs import dataset_rows
from skg_bench.simulator.logs.dataset_rows import DatasetSplit
from tests.simulator.logs.hub import COMMIT, NAME, Hub
from tests.simulator.logs.logs import readers, recorded, turn
from tests.simulator.logs.published import INTENTS, banking77, labelled, pairs

_SAID = [{"role": "user", "content": "how long does tea steep"}, {"role": "assistant", "content": "Four minutes."}]


@pytest.fixture(scope="module")
def library() -> ModuleType:
    """The package, which asks the hub for nothing here."""
    return pytest.importorskip("datasets")  # type: ignore[no-any-return]


@pytest.fixture
def saved(library: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    """Rows, by split or of one, in a folder as the library writes it."""

    def save(features: Any = None, **splits: Any) -> Path:
        library.disable_progress_bars()
        folder = tmp_path / "saved"
        made = {name: library.Dataset.from_list(rows, features=features) for name, rows in splits.items()}
        (library.DatasetDict(made) if len(made) > 1 else next(iter(made.values()))).save_to_disk(str(folder))
        return folder

    return save


def rows_of(path: Path | str, split: str | None = None) -> list[Any]:
    return list(DatasetSplit(str(path), None, split, "simulator").rows())


# ------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize("prefix", ["", "hf:"])
def test_a_folder_that_the_library_wrote_is_a_corpus_with_the_names_of_its_classes(
    library: ModuleType, saved: Callable[..., Path], prefix: str, tmp_path: Path
) -> None:
    names = sorted(INTENTS)
    features = library.Features({"text": library.Value("string"), "label": library.ClassLabel(names=names)})
    rows = [{"text": text, "label": names.index(name)} for text, name in pairs()]
    folder = saved(features, train=rows[:5], test=rows)
    corpus = labelled(f"{prefix}{folder}").load()
    assert corpus.digest == labelled(banking77(tmp_path)).load().digest
    assert corpus.source is not None
    assert corpus.source.startswith("saved@")
    assert corpus.source.endswith(" (test)")
    assert len(labelled(f"{prefix}{folder}", split="train").load().messages) == 5


def test_a_split_may_be_cut_to_its_first_rows_and_has_to_be_named_where_there_are_several(
    saved: Callable[..., Path],
) -> None:
    folder = saved(train=[{"n": i} for i in range(2500)], dev=[{"n": -1}])
    assert [row["n"] for _, row in rows_of(folder, "train[:1200]")] == list(range(1200))
    assert [position for position, _ in rows_of(folder, "train")] == list(range(1, 2501))
    for split in (None, "test"):
        with pytest.raises(UsageError, match=rf"simulator\.split={split or 'null'}; .* has train, dev: name one"):
            rows_of(folder, split)


def test_a_folder_of_tables_is_read_without_a_cache_and_without_running_code(
    library: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    banking77(tmp_path / "folder", pairs(1))
    assert [row["text"] for _, row in rows_of(tmp_path / "folder")] == [text for text, _ in pairs(1)]
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "script.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", "utf-8")
    with pytest.raises(UsageError, match=r"cannot be read \(.*scripts are no longer supported"):
        rows_of(f"hf:{tmp_path / 'script'}")
    assert not (tmp_path / "ran").exists()


def test_a_folder_of_a_log_and_of_other_things_is_refused_with_the_name_of_the_log(tmp_path: Path) -> None:
    """As `skg-bench init log` makes one, and a run in it."""
    (tmp_path / "log.csv").write_text("user,time,message\n", "utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{}", "utf-8")
    for split in ("data", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "part.csv").write_text("user,time,message\n", "utf-8")
    assert dataset_rows.holds_tables(tmp_path)
    (tmp_path / "run" / "turns").mkdir(parents=True)
    assert dataset_rows.holds_tables(tmp_path)
    (tmp_path / "run" / "turns" / "skg.parquet").touch()
    message = f"it holds log.csv, and other tables in run: name the log, {tmp_path}/FILE, or hf:{tmp_path} if"
    with pytest.raises(UsageError, match=re.escape(message)):
        dataset_rows.holds_tables(tmp_path)
    (tmp_path / "log.csv").rename(tmp_path / "dataset_infos.json")
    assert dataset_rows.holds_tables(tmp_path)


def test_a_folder_of_very_many_files_is_refused_before_all_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").touch()
    monkeypatch.setattr(dataset_rows, "_MOST", 3)
    assert dataset_rows.holds_tables(tmp_path)
    monkeypatch.setattr(dataset_rows, "_MOST", 2)
    with pytest.raises(UsageError, match="is a folder of more than 2 files; name the log in it, or hf:"):
        dataset_rows.holds_tables(tmp_path)


def test_the_library_says_nothing_of_its_own(
    library: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("datasets", "huggingface_hub"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    banking77(tmp_path, pairs(1))
    (tmp_path / "README.md").write_text("no card of the hub\n", "utf-8")
    assert list(rows_of(tmp_path))
    assert not caplog.records


def test_a_table_in_a_data_set_is_a_log_as_in_a_file(saved: Callable[..., Path]) -> None:
    log = [turn("ann", "2024-03-06T09:00:00", "tea?"), turn("bob", "2024-03-04T10:00:00", ""),
           turn("ann", "2024-03-05T08:30:00", "tea time")]  # fmt: skip
    simulator = recorded(saved(train=log))
    assert (simulator.record.users, simulator.record.turns, simulator.record.read) == (1, 2, 3)
    assert simulator.record.left_out == {"no message": {"rows": 1, "first": [2]}}
    assert simulator.record.file == f"saved@{dataset_rows.hashed(Path(str(simulator.path)))[:16]} (all)"
    with pytest.raises(UsageError, match=r"columns\.user=who: .*saved has no such column; it has user, time, message"):
        recorded(Path(str(simulator.path)), columns={"user": "who"}).record  # noqa: B018


def test_the_digest_of_a_log_changes_with_the_data_set_and_the_split(saved: Callable[..., Path]) -> None:
    log = [turn("ann", "2024-03-06T09:00:00", "tea?"), turn("bob", "2024-03-04T10:00:00", "rain?")]
    folder = saved(train=log, dev=log)
    digests = {recorded(folder, split=split).digest for split in ("train", "dev", "train[:1]")}
    (folder / "dev" / "state.json").write_text((folder / "dev" / "state.json").read_text("utf-8") + "\n", "utf-8")
    digests.add(recorded(folder, split="train").digest)
    assert len(digests) == 4


# ------------------------------------------------------------------------------------------------- dialogues


def test_a_column_of_conversations_makes_dialogues_of_pseudo_users(saved: Callable[..., Path]) -> None:
    rows = [{"conversation": [*_SAID, {"role": "user", "content": f"thanks {i}"}]} for i in range(40)]
    simulator = recorded(saved(train=rows), "conversations", redact=False)
    record = simulator.record
    assert (record.users, record.turns, record.pseudo_users) == (4, 80, True)
    assert record.assumes["users"].startswith("dialogues go to pseudo-users by key: no persons")
    assert record.assumes["time"].endswith("hours and gaps say nothing")
    events = readers(simulator).events
    days = [time[:n:2] // 86_400 for time, n in zip(events.time, events.n, strict=True)]
    assert all(np.array_equal(day, np.arange(len(day))) for day in days)
    assert simulator.answers[events.truth.type[0, 0]] == "Four minutes."


def test_mappings_of_lists_are_dialogues_too(library: ModuleType, saved: Callable[..., Path]) -> None:
    role, value = library.ClassLabel(names=["USER", "SYSTEM"]), library.Value("string")
    state = {"active_intent": value, "requested_slots": library.List(value)}
    frame = {"service": library.List(value), "state": library.List(state)}
    turns = {"speaker": library.List(role), "utterance": library.List(value), "frames": library.List(frame)}
    features = library.Features({"dialogue_id": value, "turns": turns})
    active = {"service": ["hotel", "train"],
              "state": [{"active_intent": "NONE", "requested_slots": []},
                        {"active_intent": "find_train", "requested_slots": ["price"]}]}  # fmt: skip
    nothing: dict[str, Any] = {"service": [], "state": []}
    dialogue = {"speaker": [0, 1, 0], "utterance": ["a train", "At nine.", "bye"], "frames": [active, nothing, active]}
    silent = {"speaker": [1], "utterance": ["hello?"], "frames": [nothing]}
    folder = saved(features, train=[{"dialogue_id": "a", "turns": dialogue}, {"dialogue_id": "b", "turns": silent}])
    simulator = recorded(folder, "sgd")
    assert list(simulator.messages) == ["a train", "bye"]
    assert simulator.intents == ("train.find_train",)
    assert "At nine." in simulator.answers
    assert simulator.record.left_out == {f"no line of a user in the dialogue in {folder}": {"rows": 1, "first": [2]}}


def test_a_data_set_is_no_file_of_scores_and_files_have_no_splits(saved: Callable[..., Path], tmp_path: Path) -> None:
    folder = saved(train=[{"text": "hi"}])
    with pytest.raises(UsageError, match=r"simulator\.format=uss is of files; a data set is read as table or sgd"):
        recorded(folder, "uss").record  # noqa: B018
    (tmp_path / "SGD.txt").write_text("USER\thi\tINFORM\t3\n", "utf-8")
    with pytest.raises(UsageError, match=r"simulator\.subset and simulator\.split are of data sets"):
        recorded(tmp_path / "SGD.txt", "uss", split="train").record  # noqa: B018


# ------------------------------------------------------------------------------------------------- hubs


@pytest.fixture
def hanging() -> Iterator[str]:
    """Address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("failure", ["hangs", "refuses"])
def test_a_hub_that_does_not_answer_is_said_within_seconds_with_what_to_do(
    library: ModuleType, hanging: str, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    client = hub.HfApi(endpoint=hanging if failure == "hangs" else "http://127.0.0.1:9")
    monkeypatch.setattr(dataset_rows, "_PATIENCE", 0.2)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "HfApi", lambda: client)
    begin = monotonic()
    with pytest.raises(UsageError, match=r"hf:some/chats: the hub does not answer .*save_to_disk\(FOLDER\)"):
        recorded_at("hf:some/chats")
    assert monotonic() - begin < 2.0


def test_a_corpus_of_the_hub_is_that_of_the_commit_that_its_title_names(
    library: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist([{"text": text, "label": name} for text, name in pairs(2)]), path)
    server = Hub(path.read_bytes())
    try:
        for module, name in ((hub.constants, "ENDPOINT"), (library.config, "HF_ENDPOINT")):
            monkeypatch.setattr(module, name, server.url)
            monkeypatch.setattr(module, "HF_HUB_OFFLINE", False)
        template = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        corpora = [labelled(name).load() for name in (f"hf:{NAME}", f"hf:{NAME}@{COMMIT}")]
        with pytest.raises(UsageError, match=r"hf:some/other: the hub has no such data set, or not for you"):
            labelled("hf:some/other").load()
    finally:
        server.stop()
    assert {corpus.source for corpus in corpora} == {f"{NAME}@{COMMIT} (test)"}
    assert set(corpora[0].messages) == {text for text, _ in pairs(2)}
    assert not [path for path in server.paths if "/main" in path]


def recorded_at(path: str) -> Any:
    """The record of a log there."""
    return recorded(Path(path)).record


def test_offline_only_what_the_library_has_is_read(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(library.config, "HF_HUB_OFFLINE", True)
    begin = monotonic()
    with pytest.raises(UsageError, match=r"hf:some/chats: it cannot be read \(.*Couldn't reach 'some/chats'"):
        recorded_at("hf:some/chats")
    assert monotonic() - begin < 5.0


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_rows, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"simulator\.path=hf:some/chats needs the package datasets: .*\[datasets\]"):
        recorded_at("hf:some/chats")
    with pytest.raises(UsageError, match=r"simulator\.corpus\.path=hf:a/b needs the package datasets"):
        labelled("hf:a/b").load()
