"""What every store does."""

import json
import threading

import pytest

from skg_bench.core.store import Store
from skg_bench.skillbook.storing import update
from tests.store.writers import NOW, batch, helpful, seed, tag


@pytest.mark.req("P10", "P16")
def test_a_document_comes_back_as_it_was_stored_with_its_version(store: Store) -> None:
    assert store.load("anna") is None
    document = json.dumps({"z": 1, "a": ["ü", "\u0000", "\U0001f600"], "context-2": {}, "b-1": 1.5})
    assert store.swap("anna", 0, document, "first")
    assert store.load("anna") == (document, 1)
    store.close()
    assert store.swap("anna", 1, "{}", "second")
    assert store.load("anna") == ("{}", 2)
    assert store.load("Anna") is None


@pytest.mark.req("P25")
def test_a_document_is_stored_only_over_the_version_that_was_read(store: Store) -> None:
    assert not store.swap("anna", 1, "{}", "a")  # no such version
    assert store.swap("anna", 0, '{"n":1}', "b")
    assert not store.swap("anna", 0, '{"n":2}', "c")  # somebody was first
    assert store.swap("anna", 1, '{"n":3}', "d")
    assert not store.swap("anna", 1, '{"n":4}', "e")
    assert not store.swap("anna", 3, '{"n":5}', "f")
    assert store.load("anna") == ('{"n":3}', 2)


def test_users_are_listed_in_order_and_do_not_touch_one_another(store: Store) -> None:
    assert list(store.users()) == []
    for user in ("user-2", "Zoë", "user-10", "a'; drop table skg_skillbooks; --"):
        assert store.swap(user, 0, json.dumps(user), "k")
    assert list(store.users()) == ["Zoë", "a'; drop table skg_skillbooks; --", "user-10", "user-2"]
    assert all(store.load(user) == (json.dumps(user), 1) for user in store.users())


@pytest.mark.req("P25", "P26")
def test_threads_of_one_process_lose_and_double_nothing(store: Store) -> None:
    seed(store, ["anna"])

    def write(writer: int) -> None:
        for i in range(20):
            update(store, "anna", batch(tag()), key=f"{writer}-{i}", now=NOW)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert helpful(store, "anna") == 80
    assert store.load("anna") is not None
    assert (store.load("anna") or ("", 0))[1] == 81


def test_of_first_skillbooks_that_meet_one_is_first(store: Store) -> None:
    barrier, ends = threading.Barrier(4), []

    def insert(writer: int) -> None:
        barrier.wait(10)
        ends.append(store.swap("anna", 0, json.dumps(writer), "k"))

    threads = [threading.Thread(target=insert, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == [False, False, False, True]
