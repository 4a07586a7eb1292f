"""The table of planted defects is up to date: each line stands once, and the tests that must catch it are there."""

import ast

from tests.planted import DEFECTS, ROOT


def test_each_defect_can_be_planted() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 25
    for defect in DEFECTS:
        text = (ROOT / "skg_bench" / defect.file).read_text("utf-8")
        assert text.count(defect.before) == 1, f"{defect.name}: plant it where that line stands now"
        ast.parse(text.replace(defect.before, defect.after))


def test_each_defect_names_tests_that_are_there() -> None:
    for defect in DEFECTS:
        for test in defect.tests.split():
            file, _, function = test.partition("::")
            assert (ROOT / "tests" / file).exists(), defect.name
            assert f"def {function}" in (ROOT / "tests" / file).read_text("utf-8") if function else True, defect.name
