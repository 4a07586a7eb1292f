"""Claims: the list of the sources, what carries each, and the files in which experiments say what they found."""

import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from skg_bench.analysis.comparison.assay import Assay, Measured, agree, claim_verdict
from skg_bench.analysis.comparison.claims import CLAIM_KINDS, Claim, claim_lines, claims, markers
from skg_bench.analysis.comparison.findings import Evidence, Finding, findings_by_id, write_findings
from skg_bench.core.errors import UsageError
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.runs import save

ROOT = Path(__file__).resolve().parents[3]
EVIDENCE = Evidence("skg-bench run", "abc", 12, 4, (0, 1))
FOUND = Finding("K24", "5 % to 25-35 %", Measured(0.021, 0.01, 0.04, "share"), "strained", "It rises less.", EVIDENCE)


def test_every_statement_of_the_three_sources_is_listed_and_no_other() -> None:
    statements = {"K": 33, "P": 51, "U": 14}  # in the paper, in the article on Pause, on the page of ACE
    assert list(claims()) == [f"{source}{i:02d}" for source, n in statements.items() for i in range(1, n + 1)]


def test_a_claim_says_what_kind_it_is_and_why_it_is_outside() -> None:
    for claim in claims().values():
        assert set(claim.kind.split("+")) <= set(CLAIM_KINDS)
        assert (claim.why is not None) == (claim.kind == "E")
        assert claim.statement.endswith(".")


def test_findings_come_back_as_they_were_written(tmp_path: Path) -> None:
    worded = replace(FOUND, measured="52 to 130 skills", verdict="contradictory")
    beyond = Measured(0.1, 0.0, 0.2, "utility")
    withheld = Measured(0.1, -inf, inf, "utility")
    worded = replace(worded, assay=Assay(None, withheld), by_seed=(0.1, 0.2), own=beyond, where="where a is below 1")
    write_findings(tmp_path, "one", [FOUND, worded])
    write_findings(tmp_path, "two", [FOUND])
    assert findings_by_id(tmp_path) == {"K24": [("one", FOUND), ("one", worded), ("two", FOUND)]}
    content = json.loads((tmp_path / "two.json").read_text("utf-8"))
    assert set(content["made"]) == {"sources", "analysis", "decisions", "reduced", "surroundings"}
    assert set(content["findings"][0]) == {
        "id", "claimed", "measured", "verdict", "words", "assay", "by_seed", "own", "where", "command", "commit",
        "users", "weeks", "seeds",
    }  # fmt: skip


def test_figures_are_shown_with_interval_and_unit() -> None:
    assert str(FOUND.measured) == "2.1 % (1 to 4)"
    assert str(Measured(51.2, 48.0, 55.0, "ms")) == "51.2 ms (48 to 55)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "maybe"}, "valid are reproduced"),
        ({"words": " "}, "words is empty"),
        ({"measured": Measured(5.0, 0.0, 1.0, "share")}, "lie in its interval"),
        ({"measured": Measured(float("nan"), 0.0, 1.0, "share")}, "finite"),
    ],
)
def test_a_finding_that_says_nothing_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(FOUND, **change)  # type: ignore[arg-type]


def test_an_unknown_id_is_refused_and_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    write_findings(tmp_path / "reports" / "claims", "one", [replace(FOUND, id="K99")])
    with pytest.raises(UsageError, match="no source has a statement K99"):
        claim_lines(tmp_path)
    (tmp_path / "bad.json").write_text('[{"id": "K24"}]', "utf-8")
    with pytest.raises(UsageError, match=r"bad\.json is no file of findings"):
        findings_by_id(tmp_path)


def test_marks_are_found_on_functions_classes_methods_and_what_is_assigned(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.req('K01', 'K02')\n"
        "def test_a(): ...\n"
        "@pytest.mark.req('K02')\n"
        "class TestB:\n"
        "    @pytest.mark.req('K03')\n"
        "    def test_c(self): ...\n"
        "TestD = pytest.mark.req('K04')(object)\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.req('K05'))])\n"
        "def test_e(x): ...\n",
        "utf-8",
    )
    place = "tests/test_some.py::"
    assert markers(tmp_path / "tests") == {
        "K01": [f"{place}test_a"], "K02": [f"{place}test_a", f"{place}TestB"], "K03": [f"{place}TestB::test_c"],
        "K04": [f"{place}TestD"], "K05": [f"{place}test_e"],
    }  # fmt: skip


def test_a_claim_is_open_until_an_assertion_is_named_or_an_experiment_measures_it(tmp_path: Path) -> None:
    write_findings(tmp_path / "reports" / "claims", "one", [FOUND])
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text("@pytest.mark.req('P02')\ndef test_a(): ...\n", "utf-8")
    states = {line.claim.id: line.state for line in claim_lines(tmp_path)}
    assert (states["K24"], states["K08"], states["K20"]) == ("measured", "built so", "configured")
    assert (states["P17"], states["P02"]) == ("outside", "open")  # a mark alone carries nothing
    held = [claim for claim in claims().values() if claim.held]
    assert sum(state == "open" for state in states.values()) == len(claims()) - 1 - 6 - len(held)


def test_every_linked_assertion_exists_and_says_that_it_proves_the_claim() -> None:
    marked = markers(ROOT / "tests")
    for claim in claims().values():
        for link in claim.by:
            assert link in marked.get(claim.id, ()), (
                f"{claim.id}: no test {link} is marked @pytest.mark.req({claim.id!r})"
            )
    for line in claim_lines(ROOT):
        for experiment, _ in line.findings:
            assert (ROOT / "reports" / "claims" / f"{experiment}.json").is_file()


def test_what_a_claim_is_held_by_is_one_of_two_words_and_an_assertion() -> None:
    for wrong in ({"held": "tested", "by": ["a"]}, {"held": "built so"}, {"by": ["a"]}):
        with pytest.raises(
            UsageError,
            match=r"K01: held=.*valid are built so, built in .*, configured with at least one assertion",
        ):
            Claim("K01", "a source", "A statement.", "T", **wrong)


def test_what_is_committed_can_be_read_and_names_experiments_that_exist() -> None:
    known = claims()
    names = {file.parent.name for file in (ROOT / "experiments").rglob("analysis.py")}
    for entries in findings_by_id(ROOT / "reports" / "claims").values():
        for experiment, finding in entries:
            assert experiment in names
            assert finding.id in known


def test_evidence_names_the_runs_seeds_and_what_was_not_committed(tmp_path: Path) -> None:
    runs = []
    for seed in (3, 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        manifest = {"schema": schema.SCHEMA_VERSION, "commit": "abc", "users": 7, "weeks": 2, "seed": seed}
        manifest |= {"dirty": None if seed == 3 else "0f"}
        save(folder, manifest)
        runs.append(Run(folder))
    assert Evidence.of(runs, "make it") == Evidence("make it", "abc, with uncommitted changes", 7, 2, (3, 5))
    assert Evidence.of(runs[:1], "make it").commit == "abc"


def test_what_is_shown_neither_way_is_not_testable_here_and_the_reason_is_said() -> None:
    assert claim_verdict(holds=True, fails=False, assay=None) == ("reproduced", "")
    assert claim_verdict(holds=False, fails=True, assay=None) == ("not reproduced", "")
    assert claim_verdict(holds=False, fails=False, assay=None, neither="too few") == ("not testable here", "too few")


def test_a_claim_is_not_testable_where_the_corpus_was_used_up() -> None:
    for holds in (True, False):
        says, reason = claim_verdict(holds=holds, fails=not holds, assay=None, used_up=["7 % drawn before"])
        assert (says, reason) == ("not testable here", "the corpus was used up: 7 % drawn before")


UP, DOWN, FLAT = (Measured(x, x - 0.01, x + 0.01, "utility") for x in (0.02, -0.02, 0.01))


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(
    ("ahead", "room", "speaks"),
    [(UP, UP, True), (None, UP, True), (FLAT, UP, False), (DOWN, UP, False), (UP, FLAT, False), (None, DOWN, False),
     (replace(UP, low=-inf, high=inf), UP, False)],
)  # fmt: skip
def test_a_contrast_speaks_either_way_only_between_never_and_an_oracle(
    holds: bool, ahead: Measured | None, room: Measured, speaks: bool
) -> None:
    assay = Assay(ahead, room)
    says, reason = claim_verdict(holds=holds, fails=not holds, assay=assay)
    assert (says == "not testable here") == (not speaks)
    assert bool(reason) == bool(assay.gap) == (not speaks)


def test_seeds_agree_only_where_each_lies_on_the_same_side() -> None:
    assert agree([0.1, 0.2], above=0.0)
    assert not agree([0.1, -0.2], above=0.0)
    assert agree([0.1, -0.2], below=0.15)
    assert not agree([0.1, 0.2], below=0.15)


def test_a_finding_of_a_refused_file_carries_nothing(tmp_path: Path) -> None:
    write_findings(tmp_path / "reports" / "claims", "one", [FOUND, replace(FOUND, id="K08")])
    write_findings(tmp_path / "reports" / "claims", "two", [replace(FOUND, id="K25")])
    by_id = {line.claim.id: line for line in claim_lines(tmp_path, {"one": "it is old"})}
    assert [by_id[i].state for i in ("K24", "K08", "K25")] == ["refused", "built so", "measured"]
    assert by_id["K24"].refused == {"one": "it is old"}
    assert by_id["K24"].findings == ()


def test_no_committed_difference_of_arms_speaks_outside_of_never_and_the_oracle() -> None:
    """Re-judged from the figures in the files."""
    found = [finding for rows in findings_by_id(ROOT / "reports" / "claims").values() for _, finding in rows]
    for finding in found:
        if finding.assay is not None and finding.assay.gap:
            assert finding.verdict == "not testable here", finding
            assert finding.assay.gap in finding.words


def test_few_committed_findings_could_not_be_tested() -> None:
    """At most 22, and only two claims have no other finding: the learner compared with is itself ahead of nothing. Two
    shares of the prior, of section 5 on the built-in corpus, have intervals that hold a limit of verdicts.
    """
    verdicts = {
        id_: {finding.verdict for _, finding in rows}
        for id_, rows in findings_by_id(ROOT / "reports" / "claims").items()
    }
    untested = [
        finding
        for rows in findings_by_id(ROOT / "reports" / "claims").values()
        for _, finding in rows
        if finding.verdict == "not testable here"
    ]
    assert len(untested) <= 22
    assert {id_ for id_, each in verdicts.items() if each == {"not testable here"}} <= {"K16", "K27"}


def test_a_committed_share_of_the_prior_is_judged_by_its_interval() -> None:
    for rows in findings_by_id(ROOT / "reports" / "claims").values():
        for _, finding in rows:
            m = finding.measured
            if isinstance(m, Measured) and m.unit == "% of the prior":
                cut = any(m.low < limit < m.high for limit in (5.0, 90.0))
                assert not (cut and finding.verdict in ("robust", "attainable", "strained")), finding
            if finding.id == "K22" and isinstance(m, Measured):
                assert (finding.verdict == "reproduced") == (m.low <= 50.0 <= m.high)
                assert "MiniLM" in finding.words


NUMBERS = ("K11", "K16", "K19")  # claims that a number of the paper is right: holds if another one is no better
SMALL = 0.005  # utility that is too little to count, of such claims and of what a part is worth


KEPT = {  # what a measured share, or wait, says of a claim about learning that is late and about writers
    ("P18", "nobody waits for learning"): lambda m: m.value <= 0 and m.high <= 0,
    ("P25", "a version check keeps all that is stored"): lambda m: m.value == 0,
    ("P26", "three tries suffice for one user's jobs"): lambda m: m.value == 0,
    ("P26", "three tries suffice for 8 writers at the same moment"): lambda m: m.value == 0,
    ("P42", "without locks later writes overwrite earlier ones"): lambda m: m.low > 0,
    ("P42", "with reload and retry nothing learned is lost"): lambda m: m.low == 0,
}


def pruning(finding: Finding, m: Measured) -> str:
    """Verdict on what curators remove and reword: most of it in the right, and more than a coin would hit."""
    here, _, elsewhere = finding.words.partition(" Where ")
    if m.unit == "% of the removed are bad":
        coin = float(re.findall(r"by a coin, [\d.]+% to ([\d.]+)%", here)[0])
        holds = m.low > 50 and m.value > coin
        others = re.findall(r"([\d.]+)% of the removed were bad, and ([\d.]+)% of all", elsewhere)
        tells = any(float(removed) > max(50.0, float(every)) for removed, every in others)
    else:
        holds = m.low > 50
        tells = any(float(better) > 50 for better in re.findall(r"([\d.]+)% were better afterwards", elsewhere))
    assert bool(finding.where) == (tells and not holds), finding
    return "reproduced" if holds else "attainable" if tells else "not reproduced"


def says(finding: Finding) -> str:
    """The verdict that a finding's own figures carry, whatever its file says."""
    here, m = said_here(finding), finding.measured
    ends = r"\((-?\d[\d.e-]*) to (-?\d[\d.e-]*)\)"
    rows = re.findall(rf" On .+? -?\d[\d.e-]* [A-Za-z% ]+ {ends}, ([a-z ]+)\.", finding.words)
    other_verdict = any(verdict not in (here, "not testable here") for _, _, verdict in rows)
    other_sign = isinstance(m, Measured) and any(
        m.low > 0 > float(high) or float(low) > 0 > m.high for low, high, _ in rows
    )
    if here != "not testable here" and (other_verdict or (other_sign and finding.verdict == "depends on the corpus")):
        return "depends on the corpus"
    return here


def said_here(finding: Finding) -> str:
    """The verdict that figures carry of the corpus that comes first."""
    m = finding.measured
    if isinstance(
        m, str
    ):  # 2 to 5 skills a week are no 200 after half a year; a figure that is declared was not tested
        return "contradictory" if finding.id == "K23" else "not testable here"
    if finding.id in ("P44", "P49"):
        return "contradictory"
    if finding.id == "U14":
        return pruning(finding, m)
    if (kept := KEPT.get((finding.id, finding.claimed.split(",")[0]))) is not None:
        return "reproduced" if kept(m) else "not reproduced"
    if m.unit == "% of the prior":
        held, draws = (
            int(n.replace(",", "")) for n in re.findall(r"holds in ([\d,]+) of ([\d,]+) draws", finding.words)[0]
        )
        assert m.value == pytest.approx(100 * held / draws), finding
        if held == 0 and draws >= 3000:
            return "impossible"
        least, most = (("strained", "attainable", "robust")[(x >= 5) + (x >= 90)] for x in (m.low, m.high))
        return least if least == most else "not testable here"
    if finding.id == "K22":
        return "reproduced" if m.low <= 50 <= m.high else "not reproduced"
    if finding.assay is not None and finding.assay.gap:
        return "not testable here"
    if finding.claimed.startswith("a skillbook"):  # less money and time, more utility
        low, high = (m.low, m.high) if "serves" in finding.claimed else (-m.high, -m.low)
        return "reproduced" if low > 0 else "not reproduced" if high < 0 else "not testable here"
    words = re.split(" As the paper has it| On ", finding.words)[0]  # then come another point, and other corpora
    better, worse = ("serve" in words and word in words for word in ("better", "worse"))
    better = better and "no more than" not in words
    little = re.search("worth less than|no more than", words) is not None
    assert not (better and m.low <= 0), finding
    assert not (worse and m.high >= 0), finding
    assert not (little and m.high - (m.high - m.value) * 0.2 >= SMALL), finding  # one-sided ends lie further in
    number = finding.id in NUMBERS
    holds, fails = (worse or little, better) if number else (better, worse or little)
    if "not shown either way" in words:
        return "not testable here"
    return "reproduced" if holds else "not reproduced" if fails else "not testable here"


def test_every_committed_verdict_is_the_one_that_its_own_figures_carry(refused: dict[str, str]) -> None:
    """Of what counts; a file that is refused has other words, or figures of another rule."""
    known = findings_by_id(ROOT / "reports" / "claims").values()
    committed = [finding for rows in known for experiment, finding in rows if experiment not in refused]
    assert [(f.id, f.claimed, f.verdict, says(f)) for f in committed if f.verdict != says(f)] == []
