"""Tokens of the chat format are known by their form, and explained where a panel shows them."""

import pytest

from ladechat.widgets.cells import NO_TEXT
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.panels.panel import StepPanel
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.steps.explained import format_explained
from tests.widgets.sample_steps import candidate, lens_view, pool_view, step, window_view

END = "</s>"
ONE = "‹</s>› is a token of the chat format"


KNOWN = [
    "<s>", END, " [/INST]", "<<SYS>>", "<</SYS>>", "[TOOL_CALLS]", "<eos>", "<|im_end|>", "<end_of_turn>", "<｜User｜>",
]  # fmt: skip


@pytest.mark.parametrize("token", KNOWN)
def test_a_token_of_the_chat_format_is_known_by_its_form(token: str) -> None:
    assert "is a token of the chat format" in format_explained([" a", token, token])


@pytest.mark.parametrize("token", [" a", "<", "</", "<div>", "[0]", "[i]", "||", "<<", "[]", "SYS", "<|", "|>"])
def test_what_stands_in_code_is_not_taken_for_one(token: str) -> None:
    assert format_explained([token]) == ""


def test_two_of_many_are_named() -> None:
    assert format_explained([END, "<s>", "[INST]"]).startswith("‹</s>› and ‹<s>› are tokens of the chat format")


@pytest.mark.parametrize(
    ("panel", "token"), [(panel, token) for panel in (WindowPanel, LensPanel, PoolPanel) for token in (END, " word")]
)
def test_it_is_explained_where_it_is_shown_and_nowhere_else(panel: type[StepPanel], token: str) -> None:
    shown = panel()
    shown.show_step(
        step(
            [" it"],
            index=3,
            window=window_view([[" the", " pool"], [" pool", token]], [" keeps", " all"]),
            pool=pool_view(" pool", [candidate([" keeps", token], "accepted")]),
            lens=lens_view(" pool", [[" the"], [token]]),
        )
    )
    assert (ONE in shown.explain()) == (token == END)


def test_the_sign_of_a_token_without_text_is_explained() -> None:
    assert NO_TEXT in format_explained(["</s>", ""]) and "</s>" in format_explained(["</s>", ""])
    assert NO_TEXT not in format_explained(["</s>", " a"])
