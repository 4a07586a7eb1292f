"""`skg-bench data check`: what it guesses, what it refuses to guess, and that the command it prints is right."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.log_source import log_source
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.runfolder.manifest import manifest_of, run_key
from skg_bench.simulator.logs.recorded import Recorded
from skg_bench.simulator.logs.recorded_guess import mapping, rating_words
from tests.app.test_cli import call, refused
from tests.simulator.logs.logs import turn, write_csv, write_lines

PROSE = ["how long does tea steep", "will it rain today", "set an alarm for six", "how long for tea"]


def columns(**cells: list[Any]) -> dict[str, str]:
    return {field: guess.column for field, guess in mapping(cells).items()}


def printed(*words: str) -> Recorded:
    """The simulator of the command that the check prints."""
    code, out, _ = call("data", "check", *words)
    assert code == 0, out
    return build("simulator", compose(shlex.split(out.strip().splitlines()[-1])[2:]).root["simulator"], COMMAND_LINE)  # type: ignore[no-any-return]


def test_columns_are_found_by_their_names_in_two_languages() -> None:
    times, users, ids = ["2024-03-05"] * 4, list("abab"), list("1234")
    english = columns(createdAt=times, customerId=users, question=PROSE, Message_ID=ids, thumbs=["up"] * 4)
    assert english == {"user": "customerId", "time": "createdAt", "message": "question", "id": "Message_ID",
                       "satisfaction": "thumbs"}  # fmt: skip
    german = columns(Zeitstempel=times, **{"Kunden-Nr.": users}, Frage=PROSE, Antwort=PROSE, Thema=["t"] * 4)
    assert german == {"user": "Kunden-Nr.", "time": "Zeitstempel", "message": "Frage", "intent": "Thema",
                      "answer": "Antwort"}  # fmt: skip


def test_an_employee_is_the_user_and_not_the_conversation(tmp_path: Path) -> None:
    """The conversation was taken for the user, who then had two turns."""
    rows = [f"2024-03-05 1{i}:00,e{i % 2},{PROSE[i]},{'up' if i else ''},c{i // 2}" for i in range(4)]
    (tmp_path / "log.csv").write_text("\n".join(["ts,employee_id,prompt,thumb,conv", *rows]) + "\n")
    _, out, _ = call("run", str(tmp_path / "log.csv"), "users=none")
    assert "columns user: employee_id, time: ts, message: prompt, satisfaction: thumb, session: conv" in out
    (tmp_path / "log.csv").write_text("\n".join(["ts,a,prompt,b,conv", *rows]) + "\n")
    _, out, _ = call("run", str(tmp_path / "log.csv"), "users=none")
    assert "user: a (by what stands in it), time: ts" in out


def test_columns_of_other_names_are_found_by_what_stands_in_them() -> None:
    found = columns(a=["2024-03-05 10:00"] * 4, b=list("abab"), c=PROSE, d=list("1111"))
    assert found == {"user": "b", "time": "a", "message": "c"}


def test_of_two_columns_of_texts_none_is_taken_for_the_message(tmp_path: Path) -> None:
    """The longer one was, which is the answer."""
    answers = [f"{words}, you ask and I see what I can do for you" for words in PROSE]
    rows = [f"2024-03-05 1{i}:00;u{i % 2};{PROSE[i]};{answers[i]}" for i in range(4)]
    (tmp_path / "log.csv").write_text("\n".join(["a;b;c;d", *rows]) + "\n")
    error = refused("data", "check", str(tmp_path / "log.csv"))
    assert "c and d hold texts, and none is named as a message is; say which: simulator.columns.message=COLUMN" in error
    found = columns(a=["2024-03-05 10:00"] * 4, b=list("abab"), c=PROSE, d=answers)
    assert found == {"user": "b", "time": "a"}
    assert columns(c=PROSE, answer=answers)["message"] == "c"


def test_shares_are_no_users_whatever_their_name() -> None:
    """WER is the word error rate of a recogniser, and German for who."""
    cells = {"wann": ["2024-03-05"] * 4, "text": PROSE, "wer": ["0.0", "0.125", "0.2", "0.0"]}
    assert columns(**cells, caller=list("abab"))["user"] == "caller"
    assert "user" not in columns(**cells)
    for ids in (["1.0", "2.0"] * 2, ["1,234", "2,345"] * 2):
        assert columns(**{**cells, "wer": ids})["user"] == "wer"


def test_dates_that_come_again_are_no_users() -> None:
    times = [f"07.09.2026 08:0{i % 5}:27" for i in range(6)]  # more of them are distinct than of users
    cells = {"asker": list("ababab"), "stempel": times, "say": PROSE + PROSE[:2]}
    assert columns(**cells) == {"user": "asker", "time": "stempel", "message": "say"}
    assert columns(wer=list("ababab"), wann=times, nachricht=cells["say"])["user"] == "wer"


def test_numbers_that_could_be_times_are_users_where_dates_stand_beside_them() -> None:
    ids, days = ["1700000001", "1700000002"] * 4, ["2024-03-05", "2024-03-06"] * 4
    hours = [f"2024-03-05 1{i}:00" for i in range(8)]
    assert columns(a=ids, b=days, c=PROSE * 2) == {"user": "a", "time": "b", "message": "c"}
    assert columns(born=days, b=hours, a=list("xyz") * 2 + ["x", "y"], c=PROSE * 2)["time"] == "b"
    assert columns(born=days, b=hours, a=list("xyz") * 2 + ["x", "y"], c=PROSE * 2)["user"] == "a"


def test_named_columns_stand_in_the_table_and_are_free_for_no_other_field(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"u{i % 2},2026-09-0{i + 1},2026-09-0{i % 2 + 1},{words}" for i, words in enumerate(PROSE)]
    path.write_text("\n".join(["who,day,start,message", *rows]) + "\n")
    out = call("data", "check", str(path), "simulator.columns.user=start", "simulator.columns.time=day")[1]
    table = [line.split()[:2] for line in out.splitlines()[2:6]]
    assert table == [["field", "column"], ["user", "start"], ["time", "day"], ["message", "message"]]
    assert "not used: who\n" in out
    assert "'simulator.columns={user: start, time: day, message: message}'" in out
    error = refused("data", "check", str(path), "simulator.columns={user: day, time: day}")
    assert "simulator.columns: 'day' is named as user and as time; a column holds one of them" in error
    error = refused("run", str(path), "simulator.columns.user=day", "simulator.columns.message=day")
    assert "'day' is named as user and as message" in error


def test_a_column_in_which_hardly_anybody_comes_again_is_doubted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{i // 2 if i < 2 else i},2026-09-{i + 1:02d},{PROSE[i % 4]}" for i in range(12)]
    path.write_text("\n".join(["user,time,message", *rows]) + "\n")
    out = call("data", "check", str(path))[1]
    assert "is that column really the user? 11 users have 12 turns" in out
    assert "model of English (embedder=minilm)" in out
    assert "model of English" not in call("data", "check", str(path), "embedder=hashing")[1]


def test_the_id_of_a_session_is_no_id_of_a_turn_and_a_date_that_is_none_no_time() -> None:
    found = columns(session_id=list("aabb"), user=list("xyxy"), ts=["2024-03-05"] * 4, date=["Monday"] * 4, text=PROSE)
    assert "id" not in found
    assert found["time"] == "ts"


def test_one_user_alone_is_a_user_and_what_users_said_is_none() -> None:
    times = ["2024-03-05"] * 4
    assert columns(user=["u"] * 4, time=times, text=PROSE)["user"] == "user"
    assert columns(user_message=PROSE, time=times, asker=list("abab"))["user"] == "asker"


@pytest.mark.parametrize(("words", "ok", "miss"), [
    (["up", "down"], ["up"], ["down"]), (["1", "3", "5"], ["5"], ["1"]), (["0", "1"], ["1"], ["0"]),
    (["-1", "1"], ["1"], ["-1"]), (["True", "False"], ["True"], ["False"]), (["2,0", "4,0"], ["4,0"], ["2,0"]),
])  # fmt: skip
def test_words_and_scales_of_ratings_are_known(words: list[str], ok: list[str], miss: list[str]) -> None:
    meaning, _ = rating_words(words) or ({}, "")
    assert (meaning["ok"], meaning["miss"]) == (ok, miss)


def test_ratings_that_say_nothing_of_themselves_are_left_out_and_said(tmp_path: Path) -> None:
    assert rating_words(["blue", "up"]) is rating_words(["17", "1"]) is None
    rows = [turn("u", f"2024-03-0{i + 1}", words, rating="blue") for i, words in enumerate(PROSE)]
    path = write_lines(tmp_path / "log.jsonl", rows)
    code, out, _ = call("data", "check", str(path))
    assert code == 0
    assert "ratings are left out, as 'blue' say nothing of themselves" in " ".join(out.split())
    assert "satisfaction" not in printed(str(path)).record.knows
    given = "simulator.rated_ok=[blue]"
    assert printed(str(path), given).record.knows == ("satisfaction",)


def with_cells(path: Path, column: str, *cells: str) -> Path:
    rows = [
        turn(f"u{i % 2}", f"2024-03-{i + 1:02d}", f"{PROSE[i % 4]} {i}", **{column: c}) for i, c in enumerate(cells)
    ]
    return write_csv(path, rows)


@pytest.mark.parametrize(("column", "cells", "why"), [
    ("Note", ["1", "2", "5"], "could be marks, of which 1 is best in some countries"),
    ("note_client", ["12", "3", "10", "0"], None),
    ("Note", ["0", "1"], None), ("note", ["gut", "schlecht"], None),
    ("rating", ["1", "2", "3"], "do not show the best of their scale"),
    ("rating", ["0", "1", "2", "3", "4", "5"], "do not show the best of their scale"),
    ("rating", ["1", "1"], "do not show the best of their scale"), ("rating", ["0"], "do not show the best"),
    ("rating", ["3", "4", "5"], None), ("stars", ["5"], None), ("rating", ["0", "1"], None),
    ("rating", ["-1", "0"], None), ("rating", [""], None), ("rating", ["1", "10"], None),
])  # fmt: skip
def test_numbers_of_ratings_that_could_mean_something_else_are_refused_with_the_options(
    tmp_path: Path, column: str, cells: list[str], why: str | None
) -> None:
    """German marks, and a scale of 1 to 3, were taken for stars of 1 to 5."""
    path = str(with_cells(tmp_path / "log.csv", column, *cells))
    if why is None:
        assert call("data", "check", path)[0] == 0
        return
    error = refused("data", "check", path)
    assert f"log.csv: ratings in '{column}', such as {cells[0]}" in error
    assert why in error
    assert printed(path, f"simulator.rated_ok=[{','.join(dict.fromkeys(cells))}]").record.knows == ("satisfaction",)
    assert printed(path, "simulator.columns.satisfaction=null").record.knows == ()


@pytest.mark.parametrize(("column", "cells", "unit"), [
    ("latency", ["25", "30", "55"], None), ("latency", ["2.5", "14.2"], "s"), ("dauer", ["1", "2"], None),
    ("latency", ["0,25", "30"], "s"), ("latency", ["25", "30", "900"], "s"), ("latency", ["25", "300"], "ms"),
    ("wait s", ["25", "30"], "s"), ("latency_ms", ["25", "30"], "ms"),
    ("response_time (milliseconds)", ["25", "30"], "ms"), ("latency", ["0", "0"], "s"),
])  # fmt: skip
def test_short_waits_without_a_unit_are_refused_with_the_option(
    tmp_path: Path, column: str, cells: list[str], unit: str | None
) -> None:
    path = str(with_cells(tmp_path / "log.csv", column, *cells))
    if unit is not None:
        assert printed(path).latency_unit == unit
        return
    error = refused("data", "check", path)
    assert f"log.csv: waits in '{column}', at most {cells[-1]}, could be seconds or milliseconds" in error
    assert "say simulator.latency_unit=s or simulator.latency_unit=ms" in error
    assert printed(path, "simulator.latency_unit=ms").record.knows == ("latency_ms",)


def test_a_date_that_could_be_either_is_refused_with_the_option_and_taken_with_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user;time;message\n" + "".join(f"u{i % 2};02/0{i + 1}/2026;{w}\n" for i, w in enumerate(PROSE)))
    code, out, error = call("data", "check", str(path))
    assert code == 2
    assert "columns, separated by ;" in out
    assert "say simulator.day_first=true or simulator.day_first=false" in " ".join((out + error).split())
    assert "Traceback" not in out + error
    assert printed(str(path), "simulator.day_first=true").record.weeks > 10
    assert printed(str(path), "simulator.day_first=false").record.weeks < 10


def test_names_that_need_quotes_are_quoted_in_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "my logs"
    folder.mkdir()
    heading = ["user, who", "time's", 'message "text"']
    lines = [heading, *([f"u{i % 2}", f"2024-03-0{i + 1}T10:00", words] for i, words in enumerate(PROSE))]
    path = folder / "log of ours.tsv"
    path.write_text("\n".join("\t".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in line) for line in lines))
    record = printed(str(path)).record
    assert (record.turns, record.users) == (4, 2)


def test_names_that_hydra_takes_for_something_else_are_quoted_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "gespräche.csv"
    rows = [f"u{i % 2},2024-03-0{i + 1}T10:00,{words}" for i, words in enumerate(PROSE)]
    path.write_text("\n".join(["null,größe,true", *rows]))
    named = [
        "simulator.columns.user='null'",
        "simulator.columns.time='größe'",
        "simulator.columns.message='true'",
    ]
    record = printed(str(path), *named).record
    assert (record.turns, record.users) == (4, 2)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("log.csv", "a;b\n1;2\n", "no column looks like the user; it has a, b; say which"),
    ("log.csv", "user,time,message\nu1,,hi\nu1,yesterday,hi\n", "time, as time='yesterday' cannot be read as one; it"),
    ("log.csv", "user,asked,message\nu1,yesterday,hi\n", "no column looks like the time; it has user, asked, message;"),
    ("log.csv", "user,time,message\n", "log.csv has a heading and no rows; a log has names of columns"),
    ("log.csv", "user,time,message\nu1,hi\n", "log.csv has no row with as many fields as its heading"),
    ("log.csv", "", "log.csv is empty"),
    ("log.csv", " \n\n", "log.csv is empty"),
    ("log.csv", "\nuser,time,message\n", "log.csv begins with an empty line: the first has to name the columns"),
    ("log.jsonl", "", "log.jsonl is empty, or none of its first lines is a JSON object"),
    ("log.xls", "x", r"must end in .csv"),
    ("none.csv", None, "is not there; a log is a table"),
])  # fmt: skip
def test_what_is_no_log_is_refused(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    code, out, error = call("data", "check", str(tmp_path / name))
    assert code == 2
    assert message in " ".join((out + error).split())


def test_a_run_takes_a_log_as_it_takes_the_command_of_the_check(elsewhere: Path) -> None:
    times = [f"2026-01-05 1{i}:00" for i in range(4)]
    rows = [turn("a", time, text, answer="so", stars=5) for time, text in zip(times, PROSE, strict=True)]
    write_lines(Path("log.jsonl"), rows)
    code, out, _ = call("run", "log.jsonl", "out=one", "embedder=hashing")
    assert code == 0, out
    assert out.startswith(
        "log.jsonl: columns user: user, time: time, message: message, answer: answer, satisfaction: stars"
    )
    checked = call("data", "check", "log.jsonl")[1]
    assert "100.0 % of its turns are rated" in checked
    code, _, _ = call(*shlex.split(checked.strip().splitlines()[-1])[1:], "out=two", "embedder=hashing")
    assert code == 0
    assert run_key(manifest_of(Path("one/manifest.json"))) == run_key(manifest_of(Path("two/manifest.json")))


@pytest.mark.parametrize(("given", "simulator"), [
    ("sgd/dev", "sgd"), ("sgd/dev/dialogues_001.json", "sgd"), ("uss/SGD.txt", "uss"),
])  # fmt: skip
def test_published_forms_are_known_by_their_files(published: Callable[[str], Path], given: str, simulator: str) -> None:
    name, _, inside = given.partition("/")
    log = str(published(name) / inside)
    assert printed(log).format == simulator
    code, out, _ = call("run", log, "users=2", "--dry-run")
    assert code == 0
    assert f"simulator={simulator}" in out


def test_a_folder_of_agentropy_is_known_by_its_signals(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "signals.jsonl").touch()
    for folder in (tmp_path, tmp_path / "ann"):
        assert log_source(str(folder), []).simulator == "agentropy"


def test_a_folder_of_the_datasets_library_is_guessed_as_a_table_is(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"who": list("abab"), "asked_at": [f"2026-01-05 1{i}:00" for i in range(4)], "question": PROSE}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "saved"))
    log = printed(str(tmp_path / "saved"))
    assert log.record.turns == 4
    assert [log.columns[name] for name in ("user", "time", "message")] == ["who", "asked_at", "question"]


@pytest.mark.parametrize(("words", "fault"), [
    (("none.csv",), "none.csv is not there; a log is a table"),
    (("empty",), "empty is a folder without a log; a log is a table"),
    (("a.csv", "b.csv"), "a.csv and b.csv: a run replays one log"),
    (("a.csv", "simulator=sgd"), "a.csv and simulator=sgd: give a log, or a simulator and simulator.path"),
    (("a.csv",), "say which: simulator.columns.time=COLUMN; or simulator.columns.time=null, and rows come a day apart"),
])  # fmt: skip
def test_what_is_no_log_is_refused_with_what_is(elsewhere: Path, words: tuple[str, ...], fault: str) -> None:
    Path("empty").mkdir()
    Path("a.csv").write_text("user,text,words\nann,how long for tea,tea\nann,will it rain,rain\nbob,when is tea,tea\n")
    assert fault in refused("run", *words)


def large(folder: Path, monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8", bad: str = "") -> Path:
    """A log of which the first 3,000 bytes are looked at; every third message has two lines in quotes."""
    monkeypatch.setattr("skg_bench.app.log_check._HEAD", 3_000)
    rows = [
        f'u{i % 3},2026-05-{1 + i // 20:02d}T10:{i % 60:02d}:00,"what is {i}\nand why",a\n' if i % 3 == 0 else
        f"u{i % 3},2026-05-{1 + i // 20:02d}T10:{i % 60:02d}:00,what is {i},a\n"
        for i in range(200)
    ]  # fmt: skip
    path = folder / "log.csv"
    path.write_text("user,time,message,answer\n" + bad + "".join(rows), encoding=encoding)
    return path


def test_of_a_large_log_the_first_rows_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large(tmp_path, monkeypatch)
    code, out, _ = call("data", "check", str(path))
    assert code == 0
    assert f"{path}: looked at are its first 2," in out
    assert "left out: no row" in out  # the cut goes through no row, and none is torn
    assert "growth" not in out
    assert f"simulator.path={path}" in out.splitlines()[-1]
    assert f"{path}: 4 columns" in out
    whole = build("simulator", compose(shlex.split(out.splitlines()[-1])[2:]).root["simulator"], COMMAND_LINE)
    assert whole.record.turns == 200


def test_an_error_in_the_first_rows_names_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large(tmp_path, monkeypatch, bad="u1,not a time,what is this,a\n" * 90)
    err = refused("data", "check", str(path))
    assert err.count("log.csv") == err.count(str(path)) > 0  # and no copy of it


def test_a_large_log_of_two_byte_letters_is_looked_at_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = call("data", "check", str(large(tmp_path, monkeypatch, encoding="utf-16")))
    assert code == 0
    assert "looked at are" not in out
    assert "200 turns of 3 users" in out


def test_a_run_says_what_it_takes_for_granted(tmp_path: Path) -> None:
    rows = [f"2024-03-05 1{i}:00,u{i % 2},{PROSE[i]},{i + 2.5},{'ABFA'[i]}" for i in range(4)]
    (tmp_path / "log.csv").write_text("\n".join(["time,user,message,latency,rating", *rows]) + "\n")
    code, out, err = call("run", str(tmp_path / "log.csv"), "users=none")
    assert (code, "users='none'" in err) == (2, True)
    assert "waits: taken for seconds; else simulator.latency_unit=ms|s" in out
    assert "ratings are left out, as 'A', 'B', 'F' say nothing of themselves" in out


def test_whose_clock_hours_are_of_is_said_where_times_have_offsets(elsewhere: Path) -> None:
    rows = [turn("u", f"2024-03-05T0{hour}:00:00+02:00", f"message {hour}") for hour in range(4)]
    write_csv(elsewhere / "log.csv", rows)
    code, out, _ = call("data", "check", "log.csv")
    assert code == 0
    assert "4 turns of 1 user in 1 week" in out
    assert "dates and hours that pages, sheets and arms see are those of UTC" in " ".join(out.split())
    write_csv(elsewhere / "log.csv", [{**row, "time": row["time"][:-6]} for row in rows])
    assert "offsets" not in call("data", "check", "log.csv")[1]


def test_a_log_that_was_changed_under_its_name_is_said_to_be(elsewhere: Path) -> None:
    rows = [turn("u", f"2024-03-05T0{hour}:00:00", f"message {hour}", answer="yes") for hour in range(4)]
    words = ["run", "log.csv", "out=made", "embedder=hashing", "arms={never: [policy=never, curator=none]}"]
    write_csv(elsewhere / "log.csv", rows)
    assert call(*words)[0] == 0
    write_csv(elsewhere / "log.csv", [{**row, "answer": "no"} for row in rows])
    assert "digest of what it reads: a file was changed" in refused(*words)


@pytest.mark.parametrize("key", ["simulator.path", "+simulator.path", "simulator.corpus.path"])
@pytest.mark.parametrize("words", [["run"], ["data", "check"]])
def test_two_logs_in_one_command_are_refused(elsewhere: Path, words: list[str], key: str) -> None:
    """The columns of the first were told, and the second was replayed."""
    rows = [turn("u", f"2024-03-05T0{hour}:00:00", f"message {hour}") for hour in range(4)]
    for name in ("log.csv", "other.csv"):
        write_csv(elsewhere / name, rows)
    assert "other.csv: a run replays one log" in refused(*words, "log.csv", f"{key}=other.csv")
