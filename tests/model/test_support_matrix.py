"""Of each kind of attention one type, decoded as docs/model-types.md says; all of them in the long run."""

import re
from pathlib import Path

import pytest
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tools.support_matrix import HEADINGS, PAGE, Finding, all_types, examine, examine_apart, page

PINS = Path(__file__).parents[2] / "constraints.txt"

EXACT = [
    "mistral",
    "gemma2",
    "gemma3_text",
    "gpt_oss",
    "gpt2",
    "gpt_neox",
    "falcon",
    "qwen3_moe",
    "deepseek_v3",
    "gpt_bigcode",
    "cohere2",
    "opt",
]
PLAIN = {"bloom": "ALiBi", "mamba": "recurrent", "rwkv": "recurrent", "jamba": "recurrent", "llama4_text": "chunked"}


def stated() -> dict[str, str]:
    """The heading under which docs/model-types.md has each type."""
    found: dict[str, str] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        for row in re.findall(r"^\|.*\| (`.+`) \|$", section, re.MULTILINE):
            found |= dict.fromkeys(re.findall("`([^`]+)`", row), section.partition(":")[0])
    return found


@pytest.mark.parametrize("model_type", EXACT)
def test_each_kind_of_attention_is_decoded_as_generate_does(model_type: str) -> None:
    finding = examine(model_type)
    assert finding.verdict == "exact", finding


@pytest.mark.parametrize("model_type", PLAIN)
def test_what_cannot_verify_drafts_is_decoded_plainly_as_generate_does(model_type: str) -> None:
    finding = examine(model_type)
    assert finding.verdict == "plain" and PLAIN[model_type] in finding.reason, finding


@pytest.mark.parametrize("model_type", ["bart", "xlnet"])
def test_what_is_no_decoder_is_refused(model_type: str) -> None:
    assert examine(model_type).verdict == "refused"


def test_the_page_has_every_type_and_nothing_that_differs() -> None:
    if f"transformers=={transformers.__version__}\n" not in PINS.read_text(encoding="utf-8"):
        pytest.skip("the page is of the version that constraints.txt names")
    assert sorted(stated()) == sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert HEADINGS["different"] not in stated().values()
    assert list(stated().values()).count(HEADINGS["exact"]) >= 84
    assert {stated()[model_type] for model_type in EXACT} == {HEADINGS["exact"]}


def test_the_page_says_what_types_have_in_common() -> None:
    text = page(
        [Finding("a", "exact", "full"), Finding("b", "exact", "full"), Finding("c", "plain", "full", "has a state")]
    )
    assert "| full | `a`, `b` |" in text and "| has a state | `c` |" in text


@pytest.mark.full
def test_the_page_says_what_is_found() -> None:
    found = {finding.model_type: HEADINGS[finding.verdict] for finding in examine_apart(all_types())}
    assert found == stated()
