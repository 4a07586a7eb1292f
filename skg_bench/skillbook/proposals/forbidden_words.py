"""Words that a skill may not have: those that a reader cannot see, and addresses.

A skill stands in every later prompt. Hidden characters make it read otherwise than it shows; an address makes it a way
out of the skillbook, to whoever wrote it into a message. Addresses are

* anything with a scheme (`https://`, `ftp://`, `hxxp://`), and the schemes without slashes that act (`mailto:`, `tel:`,
  `javascript:`, `data:text/html,`);
* names that begin with `www.`, e-mail addresses, IP addresses of both versions;
* names with a dot before a path, a query, an anchor or a port (`shop.example/offer`, `shop.example:8080`).

A bare name is none: merchants and tools are called `booking.com` and `node.js`. Nor are numbers, versions and
abbreviations (`3.5/5`, `v1.2.3.4`, `e.g./i.e.`). The price of a rule without a list of all domains: `README.md/notes`,
`amazon.com/ebay.com` and the slice `x[1::2]` are refused. A refusal costs one operation and is listed.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Sequence

from skg_bench.core.text import is_hidden
from skg_bench.skillbook.proposals.verdicts import Code

_SPACES = "\n\r\t"
_JOINED = str.maketrans({"\u200c": "", "\u200d": "", "\u3002": "."})  # the ideographic full stop parts names, too
# Each begins where a word begins or at a rare character, so that long texts take linear time.
_NAMED = r"(?<![\w.-])(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,})\.?"
_ADDRESS = re.compile(
    r"[\w+.-]:[/\\]{2}"
    r"|\b(?:mailto|tel|sms|javascript|vbscript|magnet):\S"
    r"|\bdata:[\w.+-]+/[\w.+-]+[;,]"
    r"|(?<![\w.-])www\d*\.\w"
    r"|[^\s@]@(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,})"
    rf"|(?:{_NAMED}|(?<![\w.-])localhost)(?:/|[?#]\w|:\d{{2,5}}\b)"
)
_IP = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)|(?<![\w.:])[0-9a-f:.]{3,}(?![\w:])")


def flaw_of(texts: Sequence[str], most: int) -> tuple[Code, str] | None:
    """Reason why texts of one skill are not taken, and details; None: they are. `most`: characters of all together."""
    size = sum(map(len, texts))
    if size > most:
        return "too long", f"{size:,} characters, at most {most:,}"
    for text in texts:
        if text.isascii() and text.isprintable():  # as nearly all are, which none of its characters needs to show
            continue
        for place, character in enumerate(text):
            if _is_control(character):
                return "control characters", f"U+{ord(character):04X} at {place}"
    return ("an address", "") if any(map(_has_address, texts)) else None


def _is_control(character: str) -> bool:
    return character not in _SPACES and (is_hidden(character) or unicodedata.category(character) in {"Cc", "Cs"})


def _has_address(text: str) -> bool:
    plain = unicodedata.normalize("NFKC", text).translate(_JOINED).casefold()
    return _ADDRESS.search(plain) is not None or any(map(_is_ip, _IP.findall(plain)))


def _is_ip(candidate: str) -> bool:
    """Is it an IP address, at the end of a sentence or not? `::` and words such as `a::b` are none."""
    if not any(character.isdigit() for character in candidate):
        return False
    try:
        ipaddress.ip_address(re.sub(r"(?<![.:])[.:]+$", "", candidate))
    except ValueError:
        return False
    return True
