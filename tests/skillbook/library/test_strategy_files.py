"""Each flaw that a folder of strategies can have is named, with the file, the entry and what is valid."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA
from skg_bench.skillbook.library.strategies import strategies

HOME, TABLE = DATA / "guardian", strategies()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the folder."""
    for file in HOME.glob("*.toml"):
        shutil.copy(file, tmp_path)
    return tmp_path


def change(file: Path, pattern: str, new: str) -> None:
    text = file.read_text("utf-8")
    changed = re.sub(pattern, lambda _: new, text, count=1, flags=re.MULTILINE | re.DOTALL)
    assert changed != text
    file.write_text(changed, "utf-8")


def test_the_same_files_are_the_same_strategies_whatever_ends_their_lines(folder: Path) -> None:
    file = folder / "triggers.toml"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    copy = strategies(str(folder))
    assert copy is not TABLE
    assert copy.digest == TABLE.digest
    assert copy.contents == TABLE.contents
    assert copy.triggers.text == TABLE.triggers.text
    assert np.array_equal(copy.fit, TABLE.fit)


@pytest.mark.parametrize(("name", "old", "new"), [
    ("kinds.toml", "discerns = 0.3", "discerns = 0.4"),
    ("strategies.toml", "^sound = false\n", ""),
    ("triggers.toml", "a phone grip", "a phone ring"),
])  # fmt: skip
def test_another_figure_or_text_is_another_digest(folder: Path, name: str, old: str, new: str) -> None:
    change(folder / name, old, new)
    assert strategies(str(folder)).digest != TABLE.digest


@pytest.mark.parametrize("name", ["kinds.toml", "strategies.toml", "triggers.toml"])
def test_a_folder_that_lacks_a_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    message = rf"holds no strategies: .*{name} cannot be read.*needed are kinds.toml, strategies.toml and triggers.toml"
    with pytest.raises(UsageError, match=message):
        strategies(str(folder))


@pytest.mark.parametrize("name", ["kinds.toml", "strategies.toml", "triggers.toml"])
def test_files_that_are_no_text_or_no_toml_are_named(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=rf"{name} is not UTF-8"):
        strategies(str(folder))
    (folder / name).write_text("[kind")
    with pytest.raises(UsageError, match=rf"{name} is not valid TOML"):
        strategies(str(folder))


KIND = r"^\[kind\.impulse-check-generic\].*?(?=^\[kind\.time)"
CONTENTS = r"^\[\[kind\.values-check\]\].*\Z"
HEAD = "[kind.x]\npersuades = 0\ndiscerns = 0\ncategory = {}\ntime = {}\n"


@pytest.mark.parametrize(("name", "old", "new", "message"), [
    ("kinds.toml", r"\A.*\Z", "", r"the file lacks kind; add it"),
    ("kinds.toml", r"\A.*\Z", "kind = {}", r"kinds.toml has no kinds; add a table \[kind.NAME\] with persuades,"),
    ("kinds.toml", r"\A.*\Z", "kind = 3", r"kinds.toml has no kinds"),
    ("kinds.toml", r"\A.*\Z", "kind.x = 3", r"kind 'x' is 3, valid is a table with persuades, discerns, category,"),
    ("kinds.toml", r"\A", "title = 1\n", r"the file has the field 'title', valid are kind"),
    ("kinds.toml", r"^persuades = -1.2$", "", r"kind 'impulse-check-generic' lacks persuades; add it"),
    ("kinds.toml", r"^persuades = -1.2$", "persuades = -1.2\nwhy = 1", r"'impulse-check-generic' has the field 'why',"),
    ("kinds.toml", r"^persuades = -1.2$", "persuades = nan", r"generic': persuades is nan, valid is a finite"),
    ("kinds.toml", r"^persuades = -1.2$", "persuades = -inf", r"generic': persuades is -inf, valid is a finite"),
    ("kinds.toml", r"^persuades = -1.2$", "persuades = true", r"generic': persuades is True, valid is a finite"),
    ("kinds.toml", r"^persuades = -1.2$", 'persuades = "a"', r"generic': persuades is 'a', valid is a finite"),
    ("kinds.toml", r"^discerns = 0.3$", "discerns = -0.1", r"discerns is -0.1, valid is a finite number of 0 or"),
    ("kinds.toml", r"electronics = -1,", "gadgets = 1,", r"category has the field 'gadgets', valid are electronics,"),
    ("kinds.toml", r"electronics = -1,", "electronics = inf,", r"category: electronics is inf, valid is a finite"),
    ("kinds.toml", r"morning = 0.5,", "noon = 0.5,", r"time has the field 'noon', valid are morning, midday,"),
    ("kinds.toml", r"\A.*\Z", HEAD, r"kinds.toml: fit is the same in all cells"),
    ("kinds.toml", KIND, "", r"strategies.toml: kind has the field 'impulse-check-generic', valid are"),
    ("kinds.toml", r"\Z", HEAD, r"kind 'x' has no contents; add a table \[\[kind.x\]\] for each"),
    ("strategies.toml", CONTENTS, "", r"kind 'values-check' has no contents; add a table \[\[kind.values-check\]\]"),
    ("strategies.toml", CONTENTS, "[kind]\nvalues-check = 3", r"kind 'values-check' is 3, valid is a list of"),
    ("strategies.toml", CONTENTS, "[kind]\nvalues-check = [3]", r"content 1 of kind 'values-check' is 3, valid is"),
    ("strategies.toml", r"^section.*?$", "", r"strategies.toml: the file lacks section; add it"),
    ("strategies.toml", r"^section", "section = 3 #", r"content 1 of kind 'impulse-check-generic': section=3,"),
    ("strategies.toml", r"^issue.*?$", "", r"content 1 of kind 'impulse-check-generic' lacks issue; add it"),
    ("strategies.toml", r"^issue.*?$", 'issue = " "', r"content 1 of kind 'impulse-check-generic': issue=' ',"),
    ("strategies.toml", r"^issue", "about = 1\nissue", r"has the field 'about', valid are issue, insight, keywords,"),
    ("strategies.toml", r"^keywords.*?$", 'keywords = ["A b"]', r"keyword 'A b': valid are words in lower case"),
    ("strategies.toml", r"^keywords.*?$", "keywords = 3", r"content 1 of kind 'impulse-check-generic': keywords=3,"),
    ("strategies.toml", r"^sound = false", 'sound = "no"', r"content 18 of kind .*: sound is 'no', valid are true"),
    ("triggers.toml", r"^texts_per_cell = 7", "texts_per_cell = 0", r"texts_per_cell is 0, so there are no triggers;"),
    ("triggers.toml", r"^texts_per_cell = 7", "texts_per_cell = 7.5", r"texts_per_cell is 7.5, so there are"),
    ("triggers.toml", r"^texts_per_cell = 7", "texts_per_cell = 400", r"texts_per_cell=400 makes '.*' twice; name"),
    ("triggers.toml", r"^texts_per_cell", "texts", r"the file has the field 'texts', valid are texts_per_cell, price,"),
    ("triggers.toml", r"^price = .*?^\]", "price = []", r"price is \[\], valid is a list of prices for each"),
    ("triggers.toml", r"  \[5, 6,", "  [6, 5,", r"price: valid are whole USD of 1 or more, each above the one"),
    ("triggers.toml", r"  \[5, 6,", "  [5.5, 6,", r"price: valid are whole USD of 1 or more"),
    ("triggers.toml", r"  \[5, 6,.*?\],", "", r"category 'electronics': items, valid are 5 lists, one for each"),
    ("triggers.toml", r"^\[time\].*?(?=^\[cat)", "time = 3\n", r"time is 3, valid is how texts of each time of day"),
    ("triggers.toml", r"^\[time\].*?(?=^\[cat)", "[time]\n", r"time is {}, valid is how texts of each time of day"),
    ("triggers.toml", r'"In the morning"', "3", r"triggers.toml: time holds 3, valid are texts that are not"),
    ("triggers.toml", r'"In the morning"', '"At midday"', r"triggers.toml: time holds 'At midday' twice; name each"),
    ("triggers.toml", r'"In the morning"', '"Early"', r"does not name category 'electronics' and time 'morning'"),
    ("triggers.toml", r"^\[category.elec.*\Z", "[category]\n", r"has no triggers; add a table \[category.NAME\] with"),
    ("triggers.toml", r"^merchants.*?$", "", r"category 'electronics' lacks merchants; add it"),
    ("triggers.toml", r"^merchants.*?$", "merchants = []", r"'electronics': merchants is \[\], valid is a list of"),
    ("triggers.toml", r'"a phone grip"', '""', r"category 'electronics': items 1 holds '', valid are texts that"),
    ("triggers.toml", r'"a phone grip"', '"a phone grip", "a phone grip"', r"items 1 holds 'a phone grip' twice; name"),
])  # fmt: skip
def test_a_flaw_of_a_folder_is_named_with_what_is_valid(
    folder: Path, name: str, old: str, new: str, message: str
) -> None:
    change(folder / name, old, new)
    with pytest.raises(UsageError, match=message) as caught:
        strategies(str(folder))
    assert str(folder) in str(caught.value)


def test_a_text_that_stands_twice_is_named_with_the_place_of_the_first(folder: Path) -> None:
    file = folder / "strategies.toml"
    first = re.search(r"^\[\[kind\.impulse-check-generic\]\]\n(.*?)\n\n", file.read_text("utf-8"), re.M | re.S)
    assert first
    with file.open("a", encoding="utf-8") as end:
        end.write(f"\n[[kind.values-check]]\n{first[1]}\n")
    message = (
        "content 21 of kind 'values-check' says what content 1 of kind 'impulse-check-generic' says; write another"
    )
    with pytest.raises(UsageError, match=message):
        strategies(str(folder))
