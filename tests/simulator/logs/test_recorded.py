"""A log is replayed as it was, what it cannot say stays unknown, and no row is lost in silence."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.core.calendar import local_time
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32
from skg_bench.core.world import AS_LOGGED, PROMPTED, STORED, UNKNOWN, WRONG, Reaction, Supposing
from skg_bench.simulator.logs.recorded import Readers, Recorded
from tests.core import samples
from tests.simulator.logs.logs import ALL, SMALL, defaults, readers, recorded, replayed, turn, write_csv, write_lines
from tests.simulator.users import earlier_answers, moment

TIMES = ("2024-03-06T09:00:00", "2024-03-06T10:00:00", "2024-03-06T11:00:00")


def everybody(simulator: Recorded) -> Any:
    return readers(simulator).events


def judged(simulator: Recorded, type_: I32, source: I32) -> list[list[int]]:
    """Quality of an answer to each source at each request, the same whatever is supposed of it."""
    event, b, n = moment(type_), len(type_), len(source)
    state = Readers(readers(simulator).events, earlier_answers(b, source, np.ones(n, np.bool_), np.zeros(n, np.int64)))
    row, answer = np.arange(b)[:, None], np.arange(n, dtype=np.int32)
    first, *others = (simulator.judge(state, event, row, answer, how) for how in get_args(Supposing))
    assert all(np.array_equal(first, other) for other in others)
    quality: list[list[int]] = first.tolist()
    return quality


def spoken(simulator: Recorded) -> dict[frozenset[str], list[tuple[int, str]]]:
    """(time, message) of each user's turns, by the set of their messages, as users have no names."""
    events = everybody(simulator)
    by_user = {}
    for row, n in enumerate(events.n.tolist()):
        turns = [(int(events.time[row, t]), simulator.messages[events.text[row, t]]) for t in range(n)]
        by_user[frozenset(m for _, m in turns)] = turns
    return by_user


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist([dict(row) for row in SMALL]), path)
    return path


@pytest.fixture(params=["csv", "tsv", "jsonl", "ndjson", "parquet"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same small log in each kind of file."""
    path = tmp_path / f"log.{request.param}"
    if request.param == "parquet":
        return parquet(path)
    if request.param in ("jsonl", "ndjson"):
        return write_lines(path, SMALL)
    write_csv(path, SMALL)
    if request.param == "tsv":
        header, *rows = SMALL[0], *SMALL
        lines = ["\t".join(header), *("\t".join(str(v) for v in row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_every_kind_of_file_gives_the_same_turns_in_order_of_time(small: Path) -> None:
    monday, hour = datetime(2024, 3, 4), 3600
    simulator = recorded(small, columns=ALL)
    assert simulator.record.first_day == f"{monday:%Y-%m-%d}"
    assert (simulator.record.users, simulator.record.turns, simulator.record.weeks) == (2, 4, 2)
    ann = [(86_400 + 17 * hour // 2, "tea time"), (2 * 86_400 + 9 * hour, "how long does tea steep"),
           (8 * 86_400 + 17 * hour // 2, "tea, how long")]  # fmt: skip
    turns = spoken(simulator)
    assert turns[frozenset(m for _, m in ann)] == ann
    assert turns[frozenset({"rain today?"})] == [(10 * hour, "rain today?")]
    assert simulator.record.left_out == {}
    assert simulator.record.knows == ("intent", "answer", "satisfaction")


def test_fewer_weeks_and_fewer_users_are_parts_of_the_whole(tmp_path: Path) -> None:
    simulator = recorded(write_csv(tmp_path / "log.csv", SMALL))
    whole = everybody(simulator)
    for user in range(2):
        part = simulator.population(0, np.array([user], np.int32), 1)
        assert part.n[0] == (whole.time[user, : whole.n[user]] < 7 * 86_400).sum()
        assert (part.text[0, : part.n[0]] == whole.text[user, : part.n[0]]).all()
    with pytest.raises(UsageError, match="the log has 2 users"):
        simulator.population(0, np.array([2], np.int32), 1)


def test_what_a_log_cannot_say_is_unknown_and_never_wrong(tmp_path: Path) -> None:
    simulator = recorded(write_csv(tmp_path / "log.csv", SMALL), columns=ALL)
    truth = everybody(simulator).truth
    assert (truth.answerable == -1).all()
    kind = {simulator.types[t]: np.int32(t) for t in range(len(simulator.types))}
    first, second, rain = kind["tea | answer 1"], kind["tea | answer 2"], kind["weather | answer 1"]
    event, source = np.array([first, -1], np.int32), np.array([first, second, rain, -1], np.int32)
    assert judged(simulator, event, source) == [[AS_LOGGED, UNKNOWN, WRONG, UNKNOWN], [UNKNOWN] * 4]
    users, none = readers(simulator), np.full(2, -1, np.int32)
    assert simulator.judge(users, moment(event), np.arange(2), none).tolist() == [UNKNOWN, UNKNOWN]


def test_a_log_without_intents_and_answers_judges_nothing(tmp_path: Path) -> None:
    simulator = recorded(write_csv(tmp_path / "log.csv", SMALL))
    events = everybody(simulator)
    assert simulator.types == simulator.intents == ()
    assert (events.truth.type == -1).all()
    assert (events.truth.intent == -1).all()
    pair = events.truth.type[0, :2]
    assert judged(simulator, pair, pair) == [[UNKNOWN, UNKNOWN]] * 2


def test_ratings_belong_to_the_answer_of_the_log(tmp_path: Path) -> None:
    simulator = recorded(write_csv(tmp_path / "log.csv", SMALL), columns=ALL)
    events = everybody(simulator)
    ann = int(np.flatnonzero(events.n == 3)[0])
    by_llm = replayed(simulator)
    assert by_llm.rating[ann].tolist() == [-1, 0, 1]  # nothing said, ok, partial
    assert by_llm.quality[ann].tolist() == [AS_LOGGED] * 3
    stored = replayed(simulator, STORED, 0)  # from the first turn on, what was said there
    assert stored.quality[ann].tolist() == [AS_LOGGED, AS_LOGGED, UNKNOWN]
    assert stored.rating[ann].tolist() == [-1, 0, -1]
    prompted = replayed(simulator, PROMPTED, 0)
    assert prompted.quality[ann].tolist() == [UNKNOWN] * 3
    assert (prompted.rating == -1).all()


def test_a_stored_answer_to_another_intent_is_wrong_and_so_is_the_prompt_of_its_skill(tmp_path: Path) -> None:
    rows = [turn("u", time, f"m{i}", intent=intent, answer=answer, satisfaction="ok") for i, (time, intent, answer)
            in enumerate(zip(TIMES, ("tea", "tea", "rain"), ("x", "x", "y"), strict=True))]  # fmt: skip
    simulator = recorded(write_csv(tmp_path / "log.csv", rows), columns=ALL)
    for how, first in ((STORED, AS_LOGGED), (PROMPTED, UNKNOWN)):
        served = replayed(simulator, how, 0)
        assert served.quality.tolist() == [[first, first, WRONG]]
        assert served.rating[0, 2] == -1


def test_an_action_says_whose_answer_it_was(tmp_path: Path) -> None:
    who = ["", "llm", "Fallback", "brew-tea"]
    rows = [turn("u", f"2024-03-06T0{i}:00:00", f"m{i}", by=by) for i, by in enumerate(who)]
    simulator = recorded(write_csv(tmp_path / "log.csv", rows), columns={"action": "by"})
    assert replayed(simulator).quality.tolist() == [[AS_LOGGED, AS_LOGGED, AS_LOGGED, UNKNOWN]]
    assert "answers" not in simulator.record.assumes
    assert "answers" in recorded(tmp_path / "log.csv").record.assumes


def test_offers_are_accepted_as_assumed_under_a_name_of_the_messages_own(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", SMALL)
    draws, text = samples.draws(np.random.default_rng(0), 5), np.arange(4, dtype=np.int32)
    event = replace(moment(np.full(5, -1, np.int32)), text=np.append(text, 0))

    def offered(accept: float) -> Reaction:
        """All but the last are asked."""
        simulator = recorded(path, accept=accept)
        return simulator.offer(readers(simulator), event, np.arange(5) < 4, draws)[1]

    reaction = offered(1.0)
    names = [recorded(path).names[i] for i in reaction.name[:4]]
    assert reaction.code.tolist() == [0] * 4 + [-1]
    assert reaction.name[4] == -1
    assert len(set(names)) == 4
    assert "how-long-does-tea-steep" in names
    reaction = offered(0.0)
    assert reaction.code.tolist() == [2] * 4 + [-1]
    assert reaction.name.tolist() == [-1] * 5


# ------------------------------------------------------------------------------------- rows that are no turns


def test_rows_without_user_time_or_message_are_counted_and_their_places_told(tmp_path: Path) -> None:
    rows = [
        turn("u", TIMES[0], "fine"), turn("", TIMES[1], "nobody"), turn("u", "", "never"), turn("u", TIMES[2], "  "),
        turn("u", "yesterday", "when"), turn("", TIMES[1], "nobody again"),
    ]  # fmt: skip
    record = recorded(write_csv(tmp_path / "log.csv", rows)).record
    assert (record.turns, record.read) == (1, 6)
    assert record.left_out == {
        "no user": {"rows": 2, "first": [3, 7]}, "no time": {"rows": 1, "first": [4]},
        "no message": {"rows": 1, "first": [5]},
        "a time that cannot be read": {"rows": 1, "first": [6]},
    }  # fmt: skip


def test_only_the_first_places_of_many_are_told(tmp_path: Path) -> None:
    rows = [turn("u", TIMES[0], "fine"), *(turn("", TIMES[0], "x") for _ in range(50))]
    (left,) = recorded(write_csv(tmp_path / "log.csv", rows)).record.left_out.values()
    assert (left["rows"], left["first"]) == (50, list(range(3, 13)))


def test_a_turn_that_comes_twice_by_its_id_counts_once(tmp_path: Path) -> None:
    rows = [
        turn("u", TIMES[0], "one", key="a"),
        turn("u", TIMES[1], "two", key="b"),
        turn("u", TIMES[2], "one", key="a"),
    ]
    path = write_csv(tmp_path / "log.csv", rows)
    record = recorded(path, columns={"id": "key"}).record
    assert record.turns == 2
    assert record.left_out == {"an id that an earlier row has": {"rows": 1, "first": [4]}}
    assert recorded(path).record.turns == 3  # nobody said that the key is one


def test_torn_json_lines_and_rows_of_another_width_are_counted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", SMALL)
    path.write_text(path.read_text("utf-8") + '{"user": "ann", "time"\n[1]\n', "utf-8")
    assert recorded(path).record.left_out == {"no whole JSON object": {"rows": 2, "first": [5, 6]}}
    path = write_csv(tmp_path / "log.csv", SMALL)
    path.write_text(path.read_text("utf-8") + "ann,2024-03-05\n", "utf-8")
    (left,) = recorded(path).record.left_out.values()
    assert left == {"rows": 1, "first": [6]}


def test_times_with_and_without_an_offset_are_refused_with_a_row_of_each(tmp_path: Path) -> None:
    rows = [turn("u", "2024-03-06T09:00:00+02:00", "a"), turn("u", "2024-03-06T09:00:00", "b")]
    with pytest.raises(UsageError, match=r"with and without an offset .* \(rows 2 and 3\)"):
        recorded(write_csv(tmp_path / "log.csv", rows)).record  # noqa: B018


def test_times_with_offsets_become_local_times_of_the_users_zone(tmp_path: Path) -> None:
    rows = [turn("u", "2024-07-01T09:00:00+02:00", "a"), turn("u", "2024-07-01T07:30:00Z", "b"),
            turn("u", "1719820800", "c"), turn("u", "1719820800500", "d")]  # fmt: skip
    path = write_csv(tmp_path / "log.csv", rows)
    assert [t for t, _ in spoken(recorded(path))[frozenset("abcd")]] == [25_200, 27_000, 28_800, 28_800]
    berlin = spoken(recorded(path, zone="Europe/Berlin"))[frozenset("abcd")]
    assert berlin == [(32_400, "a"), (34_200, "b"), (36_000, "c"), (36_000, "d")]


AUTUMN = ("2026-10-25T00:30:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:55:00Z")
SPRING = ("2026-03-29T00:30:00Z", "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z")
HOUR = 3600


def elapsed(simulator: Recorded) -> list[int]:
    """Seconds between the turns of the only user, in the order in which they are replayed."""
    since: list[int] = np.diff(everybody(simulator).time[0]).tolist()
    return since


def local(simulator: Recorded) -> list[str]:
    """Weekday and local time of the turns of the only user."""
    return [f"{datetime(2026, 1, 5) + timedelta(seconds=at):%a %H:%M}" for at in replayed(simulator).local[0].tolist()]


def days(path: Path, times: Sequence[str], zone: str = "Europe/Berlin") -> Recorded:
    return recorded(write_csv(path / "log.csv", [turn("u", at, f"m{i}") for i, at in enumerate(times)]), zone=zone)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_turns_keep_their_order_where_clocks_are_turned_back(tmp_path: Path, order: Sequence[int]) -> None:
    rows = [turn("u", AUTUMN[i], f"m{i}") for i in order]
    simulator = recorded(write_csv(tmp_path / "log.csv", rows), zone="Europe/Berlin")
    (said,) = spoken(simulator).values()
    assert [message for _, message in said] == ["m0", "m1", "m2", "m3"]
    assert elapsed(simulator) == [20 * 60, 10 * 60, 55 * 60]
    assert local(simulator) == ["Sun 02:30", "Sun 02:50", "Sun 02:00", "Sun 02:55"]


def test_no_time_passes_where_clocks_are_put_forward(tmp_path: Path) -> None:
    simulator = days(tmp_path, SPRING)
    assert elapsed(simulator) == [29 * 60, 60, 30 * 60]
    assert local(simulator) == ["Sun 01:30", "Sun 01:59", "Sun 03:00", "Sun 03:30"]


def test_hours_and_weekdays_stay_local_after_the_clocks_were_turned(tmp_path: Path) -> None:
    """Nine o'clock in the morning is nine o'clock in winter, too; the days between have 24 hours, and one has 25."""
    simulator = days(tmp_path, [f"2026-10-{at}:00:00Z" for at in ("23T07", "24T07", "25T08", "26T08")])
    assert local(simulator) == ["Fri 09:00", "Sat 09:00", "Sun 09:00", "Mon 09:00"]
    assert elapsed(simulator) == [24 * HOUR, 25 * HOUR, 24 * HOUR]
    assert simulator.record.first_day == "2026-10-19"
    assert [offset for _, offset in simulator.record.offsets] == [2 * HOUR, HOUR]


def test_the_offsets_of_the_record_give_the_local_time_of_any_turn(tmp_path: Path) -> None:
    for times in (AUTUMN, SPRING, ("2026-07-01T12:00:00Z", "2027-01-01T12:00:00Z", "2027-07-01T12:00:00Z")):
        simulator = days(tmp_path, times)
        at = replayed(simulator).local[0]
        assert local_time(simulator.record.offsets, everybody(simulator).time[0]).tolist() == at.tolist()


def test_times_without_an_offset_are_local_as_they_stand(tmp_path: Path) -> None:
    simulator = days(tmp_path, ["2026-10-25T02:50:00", "2026-10-25T02:10:00", "2026-10-25T04:00:00"])
    assert elapsed(simulator) == [40 * 60, 70 * 60]
    assert local(simulator) == ["Sun 02:10", "Sun 02:50", "Sun 04:00"]
    assert simulator.record.offsets == ()


def test_turns_within_a_second_are_in_order_and_equal_times_stay_as_they_stand(tmp_path: Path) -> None:
    times = ["1719820800900", "1719820800100", "1719820800500", "1719820800500"]
    (said,) = spoken(days(tmp_path, times)).values()
    assert [message for _, message in said] == ["m1", "m2", "m3", "m0"]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_outside_the_calendar_is_counted_as_none(tmp_path: Path, at: str) -> None:
    record = days(tmp_path, [at, AUTUMN[0]]).record
    assert record.left_out == {"a time that cannot be read": {"rows": 1, "first": [2]}}


def test_a_log_may_begin_on_the_first_day_of_the_calendar(tmp_path: Path) -> None:
    simulator = days(tmp_path, ["0001-01-01T00:00:00Z"])
    assert simulator.record.first_day == "0001-01-01"


def test_times_of_parquet_files_keep_their_offset(tmp_path: Path) -> None:
    aware = [datetime(2024, 7, 1, 7, tzinfo=UTC), datetime(2024, 7, 1, 9, 30, tzinfo=timezone(timedelta(hours=2)))]
    path = tmp_path / "log.parquet"
    pq.write_table(
        pa.table({"user": [1, 1], "time": pa.array(aware, pa.timestamp("us", "UTC")), "message": ["a", "b"]}), path
    )
    assert spoken(recorded(path))[frozenset("ab")] == [(25_200, "a"), (27_000, "b")]


# ----------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("change", "message"), [
    ({"format": "xml"}, r"simulator\.format='xml', valid are table, sgd, uss"),
    ({"columns": {"usr": "u"}}, r"simulator\.columns has unknown usr"),
    ({"accept": 1.5}, r"simulator\.accept=1\.5 must lie in \[0, 1\]"),
    ({"dialogues_per_user": 0}, "must be at least 1"),
    ({"rated_miss": ["OK"]}, "ok stands in two of"),
])  # fmt: skip
def test_bad_parameters_are_refused_by_name(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        recorded(tmp_path / "log.csv", **change)


@pytest.mark.parametrize(("change", "message"), [
    ({"columns": {"user": "who"}}, r"columns\.user=who: .*log\.csv has no such column; it has user, time, message"),
    ({"columns": {"message": None}}, r"simulator\.columns\.message is missing"),
    ({"zone": "Mars/Base"}, r"simulator\.zone='Mars/Base'"),
    ({"columns": {"satisfaction": "answer"}}, r"satisfaction is also said as 'Four minutes\.' \(row 2\)"),
    ({"columns": {"propensity": "intent"}}, r"row 2: propensity='tea' must lie above 0"),
])  # fmt: skip
def test_a_mapping_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_csv(tmp_path / "log.csv", SMALL)
    with pytest.raises(UsageError, match=message):
        recorded(path, **change).record  # noqa: B018


@pytest.mark.parametrize(("name", "content", "message"), [
    ("log.csv", "", "no such column"),
    ("log.csv", "user,time,message\n", "holds no turn"),
    ("log.csv", "user,time,message\n,,\n", "no user: 1"),
    ("log.csv", 'user,time,message\na,b,"c\n', "a quote that is opened and not closed: 1"),
    ("log.jsonl", "{\n", "no whole JSON object: 1"),
    ("log.jsonl", '{"a": 1}\n', "no such column"),
    ("log.parquet", "PAR1", "torn or no Parquet file"),
    ("log.txt", "x", r"must end in \.csv, \.tsv"),
    ("log.csv", "user,time,message\na,1970-01-01,x\na,2024-01-01,y\n", r"spans 2,819 weeks, from 1970-01-01 \(row 2\)"),
])  # fmt: skip
def test_a_file_without_turns_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(UsageError, match=message):
        recorded(tmp_path / name).record  # noqa: B018


def test_no_path_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not exist"):
        recorded(tmp_path / "nowhere.csv").digest  # noqa: B018
    with pytest.raises(UsageError, match=r"simulator\.path=null"):
        Recorded(**{**defaults(), "path": None}).digest  # noqa: B018


def test_words_for_ratings_can_be_numbers(tmp_path: Path) -> None:
    rows = [turn("u", time, f"m{i}", stars=stars) for i, (time, stars) in enumerate(zip(TIMES, "531", strict=True))]
    path = write_csv(tmp_path / "log.csv", rows)
    scale: dict[str, Any] = {
        "rated_ok": [4, 5],
        "rated_partial": [3],
        "rated_miss": [1, 2],
        "columns": {"satisfaction": "stars"},
    }
    assert replayed(recorded(path, **scale)).rating.tolist() == [[0, 1, 2]]


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", SMALL)
    before = recorded(path).digest
    assert recorded(path, accept=0.5).digest == before
    path.write_text(path.read_text("utf-8") + "u,2024-03-06,more,,,\n", "utf-8")
    assert recorded(path).digest != before
