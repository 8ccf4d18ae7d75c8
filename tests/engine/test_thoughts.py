"""The thoughts of a model that thinks: marked in its steps, and neither part of its answer nor of later prompts."""

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from ladechat.engine.loading_events import ready
from ladechat.engine.service import Service
from ladechat.engine_process.thoughts import Thoughts
from ladechat.model.checkpoint.chat_template import CHANNELS, ChatTemplate
from ladechat.protocol import NO_SWITCH, Event, Settings, Step, ThinkingSwitch, TurnStarted
from tests.checkpoints import service_of
from tests.engine import chat_templates
from tests.engine.asking import ask, end_of, of_kind, said_by, stop_after
from tests.engine.messages import user
from tests.scripted_checkpoint import CHATML, END_OF_TURN, SPECIAL, scripted_checkpoint, scripted_tokenizer

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

THOUGHT, ANSWER = "Hm, 6 < 7, or not?", "Seven 🙂."
CHOICES: tuple[ThinkingSwitch, ...] = ("auto", "on", "off")
THINK, BRACKETS = ("<think>", "</think>"), ("[THINK]", "[/THINK]")


class Manner(NamedTuple):
    """How a model thinks: what it writes, its template, and which of its marks are tokens."""

    says: str
    template: str = CHATML
    marks: tuple[str, ...] = ()
    special: tuple[str, ...] = SPECIAL
    end: str = END_OF_TURN


OF_TEMPLATES = (chat_templates.MARKS, chat_templates.SPECIAL, chat_templates.SPECIAL[0])
MANNERS = {
    "tokens": Manner(f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}", marks=THINK),
    "special tokens": Manner(f"[THINK]{THOUGHT}[/THINK]{ANSWER}", marks=BRACKETS, special=(*SPECIAL, *BRACKETS)),
    "text": Manner(f"<think>{THOUGHT}</think>{ANSWER}", template=CHATML + "{# </think> #}"),
    "in the prompt": Manner(f"{THOUGHT}\n</think>\n\n{ANSWER}", chat_templates.R1, *OF_TEMPLATES),
    "nothing": Manner(f"<think>\n \n</think>\n\n{ANSWER}", chat_templates.QWEN_3, *OF_TEMPLATES),
}


@pytest.fixture(scope="module", params=MANNERS)
def manner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def service(manner: str, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A model that thinks in this manner."""
    says, template, marks, special, end = MANNERS[manner]
    folder = tmp_path_factory.mktemp("thinks")
    scripted_checkpoint(folder, says, template, end, special, marks, max_position_embeddings=4096)
    return service_of(folder, Settings(decoder="lookahead"))


def parts(events: list[Event]) -> tuple[str, str]:
    """The thoughts and the answer in the steps."""
    steps = of_kind(events, Step)
    thoughts = "".join(piece for step in steps for piece in step.pieces[: step.reasoning])
    return thoughts, "".join(piece for step in steps for piece in step.pieces[step.reasoning :])


def test_thoughts_are_marked_and_no_part_of_the_answer(service: Service, manner: str) -> None:
    events = ask(service, user("Why?"))
    thoughts, answer = parts(events)
    assert thoughts.strip() == ("" if manner == "nothing" else THOUGHT)
    assert answer == end_of(events).text == ANSWER


def test_the_next_prompt_is_without_them_and_the_cache_is_used_up_to_them(service: Service, manner: str) -> None:
    first = ask(service, user("Why?"))
    second = of_kind(ask(service, user("Why?"), said_by(end_of(first)), user("And?")), TurnStarted)[0]
    said = service.loaded.tokenizer.decode(second.prompt_ids)
    assert ANSWER in said and THOUGHT not in said
    before = of_kind(first, TurnStarted)[0].prompt_ids
    same = next((n for n, (a, b) in enumerate(zip(before, second.prompt_ids, strict=False)) if a != b), len(before))
    assert second.cached_tokens >= same - 1 > 0


@pytest.mark.parametrize("steps", range(1, 12))
def test_an_answer_that_was_stopped_anywhere_goes_on(service: Service, steps: int) -> None:
    whole = parts(ask(service, user("Why?")))
    service.decoders.apply(Settings(decoder="autoregressive"))
    first = ask(service, user("Why?"), listener=stop_after(steps))
    if end_of(first).reason == "eos":
        return
    rest = ask(service, user("Why?"), said_by(end_of(first)))
    assert tuple(a + b for a, b in zip(parts(first), parts(rest), strict=True)) == whole
    service.decoders.apply(Settings(decoder="lookahead"))


@pytest.mark.parametrize(
    ("template", "marks", "known"),
    [
        (CHATML, (), None),
        (CHATML, ("<tool_call>", "</tool_call>"), None),
        (CHATML, THINK, THINK),
        (chat_templates.R1, (), THINK),
        (CHATML + "{# [/THINK] #}", (), BRACKETS),
        (CHATML, ("<seed:think>", "</seed:think>"), ("<seed:think>", "</seed:think>")),
        *((CHATML + f"{{# {opening} #}}", (), (opening, closing)) for opening, closing in CHANNELS.items()),
    ],
)
def test_the_marks_are_those_of_the_template_or_of_the_tokens(
    template: str, marks: tuple[str, ...], known: tuple[str, str] | None
) -> None:
    assert ChatTemplate(scripted_tokenizer("Yes.", template, marks=marks)).thought_marks == known


def test_a_model_thinks_or_not_as_the_settings_say_where_its_template_has_a_switch(tmp_path: Path) -> None:
    scripted_checkpoint(tmp_path, ANSWER, chat_templates.SWITCHED, END_OF_TURN, SPECIAL, chat_templates.MARKS)
    service = service_of(tmp_path, Settings(decoder="autoregressive"))
    assert ready(service).thinking and NO_SWITCH not in ready(service).notices
    prompts = {}
    for thinking in CHOICES:
        service.decoders.apply(Settings(decoder="autoregressive", thinking=thinking))
        events = ask(service, user("Why?"))
        assert end_of(events).text == ANSWER
        (started,) = of_kind(events, TurnStarted)
        assert started.settings.thinking == thinking
        prompts[thinking] = str(service.loaded.tokenizer.decode(started.prompt_ids))
    assert prompts["auto"] == prompts["on"]
    assert prompts["off"] == prompts["auto"] + "<think>\n\n</think>\n\n"


def test_an_answer_goes_on_behind_the_prompt_it_began_with_whatever_the_switch_is_by_then(tmp_path: Path) -> None:
    says = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
    scripted_checkpoint(tmp_path, says, chat_templates.SWITCHED, END_OF_TURN, SPECIAL, chat_templates.MARKS)
    service = service_of(tmp_path, Settings(decoder="autoregressive"))
    whole = ask(service, user("Why?"))
    first = ask(service, user("Why?"), listener=stop_after(4))
    service.decoders.apply(Settings(decoder="autoregressive", thinking="off"))
    rest = ask(service, user("Why?"), said_by(end_of(first)), thinking="auto")
    (began,), (went_on,) = of_kind(first, TurnStarted), of_kind(rest, TurnStarted)
    assert went_on.prompt_ids == [*began.prompt_ids, *end_of(first).token_ids]
    assert went_on.settings.thinking == "auto"
    assert tuple(a + b for a, b in zip(parts(first), parts(rest), strict=True)) == parts(whole)
    (later,) = of_kind(ask(service, user("Why?")), TurnStarted)
    assert later.settings.thinking == "off" and later.prompt_ids != began.prompt_ids


def test_a_template_without_a_switch_is_said_to_have_none_where_one_was_wanted(tmp_path: Path) -> None:
    scripted_checkpoint(tmp_path, ANSWER, CHATML, END_OF_TURN, SPECIAL)
    usual, wanted = (ready(service_of(tmp_path, Settings(thinking=thinking))) for thinking in CHOICES[::2])
    assert not usual.thinking and NO_SWITCH not in usual.notices
    assert not wanted.thinking and NO_SWITCH in wanted.notices


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, some of them empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)))))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(data=st.data(), marks=st.sampled_from([THINK, BRACKETS, *CHANNELS.items()]), begun=st.booleans())
def test_however_a_text_is_cut_thoughts_and_answer_are_told_apart(
    data: st.DataObject, marks: tuple[str, str], begun: bool
) -> None:
    thoughts = Thoughts(marks, begun=begun)
    said = f"{THOUGHT}{marks[1][:-1]} {marks[0]}"
    found = ["", ""]
    for piece in data.draw(cut(f"{'' if begun else marks[0]}{said}{marks[1]}\n {ANSWER}{marks[1]}")):
        divided, reasoning = thoughts.divide([piece])
        found[0] += "".join(divided[:reasoning])
        found[1] += "".join(divided[reasoning:])
    assert found == [said, ANSWER + marks[1]]


def test_a_text_like_the_beginning_of_a_mark_is_shown_at_its_end() -> None:
    thoughts = Thoughts(THINK)
    assert thoughts.divide([" <"]) == ([""], 0)
    assert thoughts.rest() == " <"
