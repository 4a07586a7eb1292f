"""`skg-bench claims`: the table of all claims, of some, and of those that are open."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skg_bench.analysis.comparison.assay import Assay, Measured
from skg_bench.analysis.comparison.claims import HELD, Line, claims
from skg_bench.analysis.comparison.findings import Evidence, Finding, FindingsFile, files
from skg_bench.app import claim_inputs, claim_tables
from skg_bench.app.claim_tables import claim_details, claim_rows
from skg_bench.app.cli import app
from skg_bench.core.package import DATA


@pytest.fixture(autouse=True)
def _refused(refused: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_tables, "refusals", lambda folder, ids: refused)


def said(*words: str) -> str:
    """Output; of the committed findings none may be refused."""
    result = CliRunner().invoke(app, ["claims", *words])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def test_every_claim_is_shown_with_what_carries_it() -> None:
    text = said("--all")
    ids = re.findall(r"^([KPU]\d\d) ", text, re.MULTILINE)  # a table in several blocks has them in each
    assert list(dict.fromkeys(ids)) == list(claims())
    assert "held by tests" not in text
    assert "built so" in text
    assert "2 built in the compatibility modes" in text
    assert "outside the" in text  # project: cells may be wrapped
    assert text.splitlines()[-1].startswith(f"{len(claims())} claims: ")


def test_claims_are_counted_on_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = said()
    assert len(text.splitlines()) <= 50
    assert set(re.findall(r"\b[KPU]\d\d\b", text)) == set(claims())
    lines = json.loads(said("--format", "json"))
    robust = [row["claim"]["id"] for row in lines if any(found["verdict"] == "robust" for _, found in row["findings"])]
    shown = re.search(r"^measured: robust +(\d+) +([KPU\d\s]+?) *$\n(?=\S)", text, re.MULTILINE)
    assert shown is not None
    assert (int(shown[1]), shown[2].split()) == (len(robust), robust)
    assert "--all" in text.splitlines()[-1]


def test_for_claims_that_are_named_only_files_about_them_are_composed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    composed = list[str]()

    def refusal(file: FindingsFile) -> str:
        composed.append(file.experiment)
        return ""

    monkeypatch.setattr(claim_inputs, "refusal", refusal)
    monkeypatch.setattr(claim_tables, "refusals", claim_inputs.refusals)
    lines = [Line(claim, (), ()) for claim in claims().values()]
    monkeypatch.setattr(claim_tables, "claim_lines", lambda root, refused: lines)  # without reading all tests
    assert CliRunner().invoke(app, ["claims", "K16", "K99"]).exit_code == 2
    assert composed == []
    every = list(files(DATA.parent / "reports" / "claims"))
    some = [file.experiment for file in every if any(finding.id in ("K16", "K04") for finding in file.findings)]
    assert 0 < len(some) < len(every)
    said("K16", "K04")
    assert composed == some


@pytest.mark.parametrize("words", [["K16"], ["--make"], ["--check"]])
def test_all_claims_are_not_asked_for_with_some(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["claims", "--all", *words])
    assert result.exit_code == 2
    assert "--all shows all claims" in result.stderr


def test_one_claim_is_shown_with_its_tests_and_its_source() -> None:
    text = said("K08")
    assert "K08 (SKG paper, 2.2): Signal 1 is the largest cosine" in text
    assert "tests/router/test_routers.py::test_maxsim_gives_the_largest_cosine" in text
    assert "K09" not in text


def test_json_and_markdown_tell_the_same_claims_as_the_table() -> None:
    entries = json.loads(said("--format", "json"))
    assert [row["claim"]["id"] for row in entries] == list(claims())
    rows = said("--format", "markdown").splitlines()
    ids = [row.split(" | ")[0].removeprefix("| ") for row in rows[2:]]
    assert [claim_id for claim_id in ids if claim_id] == list(claims())
    assert {row.count(" | ") for row in rows} == {4}


def test_only_open_ones_are_those_that_nothing_carries() -> None:
    still = json.loads(said("--open", "--format", "json"))
    assert all(not row["claim"]["held"] and not row["findings"] and row["claim"]["kind"] != "E" for row in still)
    assert not any(row["refused"] for row in still)
    states = [row["state"] for row in json.loads(said("--format", "json"))]
    assert len(still) == states.count("open")


def test_findings_that_claim_the_same_are_told_by_their_own_words() -> None:
    evidence = Evidence("make it", "abc", 12, 4, (0,))
    same = [
        Finding("K11", "One.", "a text", "robust", words, evidence) for words in ("Lower is worse.", "So is higher.")
    ]
    other = replace(same[0], claimed="Another.")
    line = Line(claims()["K24"], ("test_a", "test_b"), tuple(("trial", finding) for finding in (*same, other)))
    assert [row[:2] for row in claim_rows(line)] == [
        ("K24", "Lower is worse."),
        ("", "So is higher."),
        ("", "Another."),
    ]
    assert {row[4] for row in claim_rows(line)} == {"reports/claims/trial.json"}


def test_what_is_built_or_configured_so_is_shown_with_its_assertion_and_what_ran() -> None:
    ((claim_id, _, ran, word, link),) = claim_rows(Line(claims()["K04"], (), ()))
    assert (claim_id, word) == ("K04", "configured")
    assert "random model of its kind with one layer" in ran
    assert link.startswith("tests/embedder/test_sentence_transformer.py::test_the_paper_s_model")
    ((_, _, _, state, waits),) = claim_rows(
        Line(replace(claims()["K18"], held=None, by=(), note="nobody built it"), ("test_a",), ())
    )
    assert (state, "nobody built it" in waits) == ("open", True)


def test_beside_a_difference_stand_its_reference_its_seeds_and_the_papers_own_point() -> None:
    figure = Measured(0.02, 0.01, 0.03, "utility per request")
    finding = Finding(
        "K24", "a part", figure, "reproduced", "It helps.", Evidence("make it", "abc", 12, 4, (0, 1)),
        Assay(figure, figure), (0.01, 0.03), replace(figure, value=0.015), "where a is below 1",
    )  # fmt: skip
    line = Line(claims()["K24"], (), (("trial", finding),), {"old": "its data have changed since"})
    text = "\n".join(claim_details(line))
    assert "trial: reproduced where a is below 1. It helps." in text
    assert "reference: beyond never 0.02 utility per request (0.01 to 0.03)" in text
    assert "by seed: +0.0100, +0.0300" in text
    assert "at the paper's own operating point: 0.015" in text
    assert "old: refused, as its data have changed since" in text
    assert next(claim_rows(line))[3] == "measured: reproduced where a is below 1"


def test_no_claim_is_carried_without_a_link_to_an_assertion_or_a_report() -> None:
    for row in json.loads(said("--format", "json")):
        carried = row["state"] in ("measured", *HELD)
        assert bool(row["links"]) == carried, row["claim"]["id"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["K24", "k25"], "did you mean 'K25'?"), (["K99"], "no source has a claim 'K99'"), (["--format", "csv"], "table")],
)
def test_a_wrong_id_or_format_is_one_message_and_exit_code_2(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["claims", *words])
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_is_installed_says_that_a_checkout_tells_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").symlink_to(DATA)
    monkeypatch.setattr("skg_bench.app.claim_tables.DATA", tmp_path / "data")
    assert "told in a checkout" in said("K08")


def test_nothing_heavy_is_needed_to_print_claims() -> None:
    probe = "import sys, skg_bench.app.claim_tables; print(sorted({'hydra', 'pandas', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], cwd=DATA.parent, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
