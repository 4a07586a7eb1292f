"""One way to open what is foreign: files only, at once, and no more than was asked for."""

import ast
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from skg_bench.core import foreign
from skg_bench.core.errors import UsageError
from tests.imports import parsed, syntax_nodes

PACKAGE = Path(foreign.__file__).parents[1]
# Modules that open something by themselves, and why they may.
EXCEPTIONS = {
    "core/foreign.py": "it is the one way",
    "runfolder/shards.py: pq.read_metadata": "of a file that `open_file` opened",
    "engine/pieces.py: zipfile.ZipFile": "of a file that `open_file` opened, or of one that is written",
    "engine/pieces.py: pa.memory_map": "of a file that `open_file` has just taken; a piece is mapped, not read",
    "engine/vectors.py: np.load": "of a file of this process without a name, which workers map",
    "app/cli.py: open": "of the null device, for an input that the caller closed",
    "embedder/cache.py: sqlite3.connect": "SQLite opens for writing, which waits for nothing, and reads pages",
    "store/sqlite.py: sqlite3.connect": "SQLite opens for writing, which waits for nothing, and reads pages",
    "embedder/minilm_graph.py: load_file": "weights of the package that carries them",
    "router/shared/index.py: read_index": "FAISS opens by itself, after all bytes were digested through `blocks_of`",
    "analysis/report/assets.py: read_text": "a template of this package",
    "launcher/ray_cluster.py: read_text": "a file that the driver wrote a moment ago, and which no other node may have",
    "curator/shared/peer_process.py: os.fdopen": "its own end of a pipe, of which so many bytes are read at once",
    "app/dataset_commands.py: urlopen": "a server, of which so many bytes are read",
}
READS = {
    "read_bytes", "read_text", "urlopen", "load_file", "read_index", "np.load", "np.fromfile", "np.memmap",
    "np.loadtxt", "np.genfromtxt", "pq.read_table", "pq.ParquetFile", "pq.ParquetDataset", "pq.read_metadata",
    "pq.read_schema", "pa.memory_map", "pa.OSFile", "pa.input_stream", "sqlite3.connect", "zipfile.ZipFile",
    "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "io.open", "codecs.open", "os.fdopen", "pd.read_csv",
}  # fmt: skip
OWN = {"CsvFile", "sink", "table", "state.table"}  # whose method `open` opens no file by itself


def opens(call: ast.Call) -> str:
    """What a call reads by, if it opens a file to be read; else nothing."""
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    if name in READS or last in READS:
        return name if name in READS else last
    if name == "os.open":
        words = " ".join(ast.unparse(argument) for argument in call.args[1:])
        return "" if any(flag in words for flag in ("O_CREAT", "O_DIRECTORY", "flags")) else name
    if last != "open" or name.rpartition(".")[0] in OWN:
        return ""
    given = [*call.args[1 if name == "open" else 0 :], *(word.value for word in call.keywords if word.arg == "mode")]
    modes = [node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "" if any(set(mode) & set("wxa+") for mode in modes) else "open"


def test_every_reader_goes_through_one_module() -> None:
    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        for node in syntax_nodes(parsed(file)):
            if isinstance(node, ast.Call) and (how := opens(node)) and place not in EXCEPTIONS:
                assert f"{place}: {how}" in EXCEPTIONS, f"{place}, line {node.lineno}: {ast.unparse(node)}"
                found.add(f"{place}: {how}")
    assert found == {name for name in EXCEPTIONS if ":" in name}  # none of them is left over


@pytest.mark.parametrize(
    "line",
    [
        "open(path)", "open(path, 'rb')", "path.open()", "path.open(encoding='utf-8')", "path.read_bytes()",
        "np.load(path)", "pq.read_table(path)", "os.open(path, os.O_RDONLY)", "io.open(path)", "path.open(mode='r')",
    ],
)  # fmt: skip
def test_the_look_at_the_syntax_tree_sees_what_opens_a_file(line: str) -> None:
    (call,) = (node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Call))
    assert opens(call)


def special(folder: Path) -> dict[str, Path]:
    """Whatever is no file."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "full").symlink_to("/dev/full")
    return {path.name: path for path in folder.iterdir()}


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    says = {"pipe": "it is a pipe", "folder": "Is a directory", "loop": "Too many levels", "zero": "it is a device",
            "full": "it is a device"}  # fmt: skip
    for name, path in special(tmp_path).items():
        with pytest.raises(OSError, match=says[name]) as error:
            foreign.open_file(path)
        assert error.value.filename == str(path)
        for read in (foreign.bytes_of, foreign.text_of, foreign.json_file, lambda path: list(foreign.lines_of(path))):
            with pytest.raises(UsageError, match=f"{path} cannot be read: .*{says[name]}"):
                read(path)
        with pytest.raises(UsageError, match=str(path)):
            foreign.check_regular(path)
    with pytest.raises(UsageError, match="null"):
        foreign.bytes_of(Path("a\0b"))
    foreign.check_regular(tmp_path / "absent")


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in special(tmp_path).values():
        with pytest.raises(UsageError):
            foreign.bytes_of(path)
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(UsageError, match="it has 5 bytes; at most 4 are read"):
        foreign.bytes_of(tmp_path / "file", 4)
    assert foreign.bytes_of(tmp_path / "file", 5) == b"12345"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_grows_while_it_is_read_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"1234")
    real = foreign._unfit

    def grow(status: os.stat_result, largest: int | None) -> tuple[int, str] | None:
        with file.open("ab") as more:
            more.write(b"x" * 3_000_000)
        return real(status, largest)

    monkeypatch.setattr(foreign, "_unfit", grow)
    with pytest.raises(UsageError, match="more than 2,000,000 bytes"):
        foreign.bytes_of(file, 2_000_000)


def test_files_of_the_system_that_say_they_are_empty_are_read_whole() -> None:
    assert foreign.raw_bytes("/proc/self/stat").startswith(str(os.getpid()).encode())


def test_a_text_whose_lines_do_not_end_is_given_up(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UsageError, match="line 1 does not end within 134,217,728 bytes"):
        list(foreign.lines_of(tmp_path / "log"))


def test_an_array_is_as_large_as_it_says_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    for array in (np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((0, 3)), np.float32(1.5)):
        np.save(file, array)
        assert np.array_equal(foreign.array_of(file), array)
    np.save(file, np.arange(6))
    whole = file.read_bytes()
    for raw in (whole[:-1], whole + b"x", whole.replace(b"(6,)", b"(6000000000,)"), b"PK\3\4" + whole, whole[:9], b""):
        file.write_bytes(raw)
        with pytest.raises((ValueError, EOFError)):
            foreign.array_of(file)
    np.save(file, np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="nothing is unpickled"):
        foreign.array_of(file)


def test_a_pipe_that_is_written_to_is_not_read_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").open("wb").close(), daemon=True)
    writer.start()
    with pytest.raises(UsageError, match="it is a pipe"):
        foreign.bytes_of(tmp_path / "pipe")
    os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))
    writer.join(5)


def nested(levels: int) -> object:
    """A zero in so many lists and mappings."""
    value: object = 0
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1.0, float("nan")]}, r"file: a\[1\] is nan, and a finite number is needed"),
        ({"a": {"b": 2**63}}, r"file: a\.b is a number beyond 64 bits"),
        ({"a": ["\ud800"]}, r"file: a\[0\] "),
        ({"a": {"\ud800": 1}}, r"file: a key of a "),
        (nested(101), "is nested more than 100 levels deep"),
    ],
)
def test_a_fault_is_told_with_its_place(value: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        foreign.plain(value, "file")


@pytest.mark.parametrize("value", [nested(100), {"a": [-(2**63), 2**63 - 1, "é", True, None, 1.5, {}, []]}, "", 0])
def test_what_has_no_fault_is_itself(value: object) -> None:
    assert foreign.plain(value, "file") is value


def test_lists_that_stand_in_one_another_many_times_are_given_up_before_they_are_counted_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreign, "_MANY", 10_000)
    value: list[object] = [0]
    for _ in range(60):  # as aliases of yaml may: 10 to the power of 60 values
        value = [value] * 10
    with pytest.raises(UsageError, match=r"holds more than 10,000 values"):
        foreign.plain(value, "file")
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(UsageError, match="levels deep"):
        foreign.plain(ring, "file")


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_some_keys_of_an_object_have_the_values_that_they_have_in_the_whole(indent: int | None) -> None:
    inside = {"last": 1, 'x\n "last": 2': '\n "last": 3', "list": [{"last": 4}]}
    whole = {"first": inside, "other": [inside], "last": {"é": None}}
    text = json.dumps(whole, indent=indent, ensure_ascii=False)
    assert foreign.members_of(text, ("last", "first"), "file") == {"last": whole["last"], "first": inside}
    assert foreign.members_of(text, ("last", "missing"), "file") == {"last": whole["last"]}


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_a_key_of_inner_objects_has_the_values_that_it_has_in_the_whole(indent: int | None) -> None:
    inner = {
        "none": None,
        "first": {"no": 1, "size": [{"size": 2}]},
        'x"\n  "y': {"size": {"é": 1}},
        "last": {},
        "z": 1,
    }
    text = json.dumps({"before": inner, "outer": inner, "empty": {}, "list": [inner]}, indent=indent)
    expected = {"first": [{"size": 2}], 'x"\n  "y': {"é": 1}}
    assert foreign.inner_members_of(text, "outer", "size", "file") == expected
    for outer in ("empty", "list", "missing"):
        assert foreign.inner_members_of(text, outer, "size", "file") == {}
    with pytest.raises(UsageError, match="file is no whole JSON"):
        foreign.inner_members_of(text[: text.index('"empty"') - 6], "outer", "size", "file")


@pytest.mark.parametrize("text", ['{\n "last": {', '{\n "last": ' + "[" * 100_000, "{", "[" * 100_000])
def test_an_object_that_is_cut_off_is_no_whole_json(text: str) -> None:
    with pytest.raises(UsageError, match="file is no whole JSON"):
        foreign.members_of(text, ("last",), "file")


def test_readers_of_bytes_start_no_threads_of_pyarrow() -> None:
    """A thread may outlive the reading, and then hold its bytes and its handler."""
    calls = [
        (file.name, ast.unparse(node))
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in syntax_nodes(parsed(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("read_csv", "read_json")
    ]
    assert [name for name, _ in calls] == ["labelled_rows.py", "recorded_csv.py"]
    for _, call in calls:
        assert "use_threads=False" in call
        assert "native_bytes(" in call
