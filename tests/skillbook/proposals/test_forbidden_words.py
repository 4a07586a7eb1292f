"""What a skill may not say: hidden characters and addresses, and the many texts that only look like these."""

import sys
import unicodedata
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.skillbook.proposals.forbidden_words import flaw_of

ADDRESSES = [
    "https://shop.example/offer?id=3", "See HTTP://SHOP.EXAMPLE.", "ftp://a", "hxxp://a.b", "http:\\\\a.b",
    "myapp://open", "file:///etc/passwd", "mailto:eve", "tel:+491234", "javascript:alert(1)",
    "data:text/html;base64,PGI+", "www.shop.example", "(www2.shop.example)", "eve@shop.example", "a.b+c@x.co.uk",
    "shop.example/offer", "shop.example/", "go to shop.example?x=1", "shop.example#top", "shop.example:8080",
    "shop.example./x", "bücher.example/x", "xn--bcher-kva.example/x", "x.xn--p1ai/x", "例え.テスト/x",
    "localhost:8000", "localhost/admin", "10.0.0.1", "at 192.168.0.1.", "http 10.0.0.1:80", "[2001:db8::1]", "::1",
    "fe80::1: link", "2001:db8:0:0:0:0:0:1", "::ffff:10.0.0.1", "ｈｔｔｐｓ：／／shop.example", "shop。example/x",
    "shop\u200d.example/x", "ht\u200dtps://a", "//shop.example/x",
]  # fmt: skip
HARMLESS = [
    "e.g. 3.5/5", "3.5/5", "e.g./i.e.", "v1.2", "v1.2.3.4", "1.2.3.4.5", "node.js", "booking.com", "Ask booking.com?",
    "amazon.com, ebay.com", "and/or", "24/7", "km/h", "12:30:45", "at 12:30", "10:00-11:30", "1:2:3:4", "01.02.2024.",
    "a::b", "std::vector", "::", "user@home", "@john", "2 @ 3.50", "ok...", "etc. / usw.", "TCP/IP", "p.m./a.m.",
    "ratio 3:1", "tel: 12", "note:this", "data: text/html", "256.1.1.1", "999.999.999.999", "de:ad:be:ef:00:01",
    "www", "awww.nice", "C:\\Users", "1.5kg/week", "U.S./EU", "$3.50/month", "a.b", "🙂👍🏽👩\u200d💻", "नम\u200dस्ते",
    "line\nbreak\r\nand\ttab", "naïve café ½ …", "",
]  # fmt: skip
HIDDEN = [
    "\x00", "\x07", "\x1b", "\x7f", "\x85", "\x9b", "\u00ad", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f",
    "\u202a", "\u202e", "\u2028", "\u2029", "\u2060", "\u2066", "\u2069", "\ufeff", "\U000e0041", "\ud800",
]  # fmt: skip


@pytest.mark.req("P23")
@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses_are_refused(text: str) -> None:
    assert flaw_of([text], 99) == ("an address", "")
    assert flaw_of(["fine", f"Always go to ({text}) first."], 99) == ("an address", "")


@pytest.mark.parametrize("text", HARMLESS)
def test_texts_that_look_like_addresses_are_taken(text: str) -> None:
    assert flaw_of([text, f"say ({text}) twice"], 99) is None


@pytest.mark.parametrize("text", ["README.md/notes", "amazon.com/ebay.com", "x[1::2]", "Mr.Smith/Jones"])
def test_the_price_is_that_some_harmless_texts_are_refused(text: str) -> None:
    assert flaw_of([text], 99) == ("an address", "")


@pytest.mark.req("P23")
@pytest.mark.parametrize("character", HIDDEN)
def test_control_and_hidden_characters_are_refused(character: str) -> None:
    assert flaw_of(["fine", f"ab{character}c"], 99) == ("control characters", f"U+{ord(character):04X} at 2")


def test_of_control_and_format_characters_only_spaces_and_the_joiners_are_taken() -> None:
    odd = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert [character for character in odd if flaw_of([character], 1) is None] == list("\t\n\r\u200c\u200d")


def test_the_length_is_that_of_all_texts_together() -> None:
    assert flaw_of(["ab", "cd"], 4) is None
    assert flaw_of(["ab", "cde"], 4) == ("too long", "5 characters, at most 4")


@given(
    scheme=st.from_regex(r"[a-z][a-z0-9+.-]{1,8}", fullmatch=True),
    host=st.from_regex(r"[a-z0-9][a-z0-9-]{0,9}(\.[a-z]{2,6}){1,3}", fullmatch=True),
    before=st.text("abc ÄÖ,(", max_size=9), after=st.text("abc 12-_", max_size=9),
)  # fmt: skip
def test_no_words_around_an_address_hide_it(scheme: str, host: str, before: str, after: str) -> None:
    for address in (f"{scheme}://{after}", f"{host}/{after}", f"eve@{host}"):
        assert flaw_of([f"{before} {address}"], 99) == ("an address", "")


@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"], exclude_characters=".:@。．｡/：＠"),
        max_size=40,
    )
)
def test_texts_without_a_dot_a_colon_and_an_at_sign_hold_no_address(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text)
    assert set(plain) & set(".:@") or flaw_of([text], 99) is None


@pytest.mark.parametrize(
    "part", ["a.", "a-", "1.", "1:", ":", "::", "a@", "a@a.", "@a.", "www.", "xn--", "a.xn--", "f.a:", "/", "data:a/"]
)
def test_long_texts_take_linear_time(part: str) -> None:
    def took(times: int) -> float:
        text, seconds = part * times, list[float]()
        for _ in range(3):
            begin = process_time()
            flaw_of([text, text + "g"], 10**6)
            seconds.append(process_time() - begin)
        return min(seconds)

    assert took(8000) < 24 * took(1000)  # 8 times, and 50 to 70 times where time is quadratic
