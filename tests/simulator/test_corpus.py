"""The built-in corpus: large enough, and worded as people word things."""

import pytest

from skg_bench.simulator import corpus as corpora


@pytest.mark.req("K24")
def test_no_message_occurs_twice() -> None:
    messages = corpora.load().messages
    assert len(set(messages)) == len(messages) > 10_000
