"""Records what the published packages do with the cases of `more.jsonl` and prints what has changed.

python -m tests.skillbook.ace.record
"""

import json

from tests.skillbook.ace.live import VERSIONS, published, text_of
from tests.skillbook.ace.play import CASES, cases


def main() -> None:
    entries = cases("more.jsonl")
    for era in VERSIONS:
        mine = [entry for entry in entries if entry["schema"] == era]
        for entry, expect in zip(mine, published(era, mine), strict=True):
            if text_of(entry.get("expect")) != text_of(expect):
                print(f"{entry['uid']}\n  was {entry.get('expect')}\n  is  {expect}")  # noqa: T201
            entry |= {"package": f"ace-framework=={VERSIONS[era]}", "expect": expect}
    text = "".join(json.dumps(entry, ensure_ascii=True) + "\n" for entry in entries)
    (CASES / "more.jsonl").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
