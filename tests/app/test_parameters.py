"""`skg-bench list SEAM.OPTION`: every parameter of every yaml says what it means."""

from pathlib import Path

import pytest

from skg_bench.app.catalogue import first_line
from skg_bench.app.packages import groups
from skg_bench.app.parameters import option_parameters
from tests.app import lab
from tests.app.test_cli import call, refused

OPTIONS = [("config", ""), *((seam, option) for seam, options in groups().items() for option in options)]


@pytest.mark.parametrize(("seam", "option"), OPTIONS, ids=map(".".join, OPTIONS))
def test_every_parameter_of_every_yaml_has_a_comment_that_says_what_it_means(seam: str, option: str) -> None:
    for parameter in option_parameters(seam, option):
        assert len(parameter.meaning) > 3, f"{seam}.{option}: {parameter.path} has no comment"


def test_list_of_an_option_prints_value_unit_meaning_and_source() -> None:
    code, out, _ = call("list", "simulator.assistant")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "parameter value unit meaning and source" in lines
    assert "max_per_day 40 1/day cap on that; assumed" in lines
    assert any(line.startswith("rating_if_right [0.9, 0.07, 0.03]") for line in lines)
    assert lines[-1] == "skg-bench run simulator=assistant simulator.corpus=..."


def test_inner_components_built_upon_options_and_the_root_say_it_too() -> None:
    known = {
        (seam, option): {parameter.path: parameter for parameter in option_parameters(seam, option)}
        for seam, option in (
            ("curator", "budget"), ("simulator", "uss"), ("simulator", "clinc150"), ("profile", "smoke"),
            ("config", ""), ("embedder", "jina"), ("experiment", "controls"),
        )
    }  # fmt: skip
    assert known["curator", "budget"]["curator.capture"].meaning.startswith("any: every fallback may become a skill")
    assert known["curator", "budget"]["capacity"].value == 20
    assert known["simulator", "uss"]["rated_ok"].value == [4, 5]
    assert known["simulator", "uss"]["rated_ok"].meaning.startswith("scores go from 1")
    assert known["simulator", "uss"]["accept"].unit == "1"
    assert known["simulator", "clinc150"]["corpus.split"].meaning.endswith("val: 20 an intent, 100 one-offs")
    assert known["simulator", "clinc150"]["lag_scale"].value == 20
    assert known["profile", "smoke"]["users"].value == 12
    assert known["config", ""]["utility.usd"].meaning == "utility per USD; our choice"
    assert known["config", ""]["hit_latency_ms"].unit == "ms"
    assert known["embedder", "jina"]["trust_remote_code"].meaning.startswith("This model is made of Python code")


def test_what_cannot_be_listed_is_refused_with_what_can() -> None:
    assert "there is no seam 'polcy'; did you mean 'policy'?" in refused("list", "polcy.threshold")
    assert "there is no policy=treshold; did you mean 'threshold'?" in refused("list", "policy.treshold")
    assert "there is no seam 'nothing'" in refused("list", "nothing")


def test_a_plugin_without_comments_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lab.installed(tmp_path, monkeypatch):
        code, out, _ = call("list", "reranker.lately")
    assert code == 0
    assert "(lately.yaml does not say)" in out
    assert "skg-bench run reranker=lately reranker.rate=..." in out


def test_list_says_of_every_option_what_it_is_in_a_sentence_of_its_own() -> None:
    for seam, options in groups().items():
        sentences = [first_line(seam, option) for option in options]
        assert len(set(sentences)) == len(sentences), seam
        for option, sentence in zip(options, sentences, strict=True):
            assert sentence.endswith((".", "?")), f"{seam}.{option}: {sentence}"
            assert "Recipe for" not in sentence, f"{seam}.{option}"


def test_list_of_an_option_prints_all_of_the_comment_at_the_top_of_its_yaml() -> None:
    code, out, _ = call("list", "embedder.jina")
    assert code == 0
    text = " ".join(out.split())
    assert text.startswith("The SKG paper's model, jina-embeddings-v3")
    assert "allows no commercial use. parameter value" in text
