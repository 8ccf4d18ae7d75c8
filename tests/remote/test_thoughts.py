"""Thoughts between marks in the text are taken apart, wherever chunks begin and end; nothing else is touched."""

from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from ladechat.protocol import Configure, Settings, Step, ThinkingSwitch
from ladechat.remote.reports import Ended, Report, Tokens, step_of
from ladechat.remote.thoughts import ThoughtsInText
from tests.remote.scripted_server import (
    OPENAI,
    VLLM,
    Reply,
    ScriptedServer,
    event,
    openai_stream,
    page,
    pages_of,
    vllm_chunk,
    vllm_stream,
)
from tests.remote.talking import talking


def taken_apart(texts: Iterable[str], **how: bool) -> tuple[str, str]:
    """The thoughts and the answer in chunks of these texts."""
    thoughts, found = ThoughtsInText(**how), list[Tokens]()
    reports: list[Report] = [*(step_of(text, [1]) for text in texts), Ended("eos")]
    for one in reports:
        found += [step for step in thoughts.read(one) if isinstance(step, Tokens)]
    assert all(len(step.pieces) == len(step.token_ids) == len(step.logprobs) for step in found)
    thought = "".join(piece for step in found for piece in step.pieces[: step.reasoning])
    return thought, "".join(piece for step in found for piece in step.pieces[step.reasoning :])


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in chunks."""
    places = sorted(draw(st.sets(st.integers(1, len(text) - 1)))) if len(text) > 1 else []
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(st.data())
def test_however_the_text_is_cut(data: st.DataObject) -> None:
    chunks = data.draw(cut("\n<think>\nSix < seven, </thin air.\n</think>\n\nIt is <think> or </think>."))
    thought, answer = taken_apart(chunks)
    assert thought.strip() == "Six < seven, </thin air."
    assert answer == "It is <think> or </think>."


@given(st.data())
def test_an_answer_without_them_is_left_alone(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["<thin ice> is cold.", "No.", " \n<", "A <think> in <code> </think>.", "<think"]))
    assert taken_apart(data.draw(cut(text))) == ("", text)


def test_thoughts_that_never_end_are_thoughts() -> None:
    assert taken_apart(["<think>", "Hm", ", </th"]) == ("Hm, ", "")


def test_where_the_prompt_has_opened_them_the_answer_begins_behind_the_second_mark() -> None:
    assert taken_apart(["Hm", ".</think>", "Yes."], begun=True) == ("Hm.", "Yes.")


def test_the_rest_of_an_answer_has_none() -> None:
    assert taken_apart(["<think>", "x"], taken_apart=True) == ("", "<think>x")


async def test_of_vllm_without_a_parser_tokens_and_passes_stay() -> None:
    chunks = [[(1, "<think>"), (2, "Hm")], [(3, "."), (4, "</think>"), (5, "\n\n")], [(6, "Yes.")]]
    with ScriptedServer(VLLM, vllm_stream(*chunks)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
    assert done.text.strip() == "Yes." and done.token_ids == [1, 2, 3, 4, 5, 6]
    assert ["".join(step.pieces[: step.reasoning]) for step in talk.steps] == ["Hm", ".", ""]


async def test_a_server_of_chunks_may_send_the_end_of_thoughts_and_the_answer_in_one() -> None:
    with ScriptedServer(OPENAI, openai_stream("<think>Hm", ".</think>Yes", ".")) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?")).text == "Yes."
    assert said(talk.steps) == ["Hm", ".|Yes", "|."]


async def test_what_a_server_has_taken_apart_stays_so() -> None:
    first = vllm_chunk([(1, "")], reasoning_content="Is it <think>?")
    stream = vllm_stream([(2, "<think> is a mark.")])
    with ScriptedServer(VLLM, [stream[0], event(first), *stream[1:]]) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?")).text == "<think> is a mark."
    assert said(talk.steps) == ["Is it <think>?", "|<think> is a mark."]


@pytest.mark.parametrize("thinking", ["auto", "on", "off"])
async def test_a_server_is_asked_for_thoughts_or_none_only_where_the_user_wants_one_of_them(
    thinking: ThinkingSwitch,
) -> None:
    with ScriptedServer(OPENAI, openai_stream("Yes.")) as server:
        async with talking(server, Settings(decoder="server", thinking=thinking)) as talk:
            assert talk.ready.thinking
            await talk.answer("Hi?")
        (asked,) = server.chats
    on = thinking == "on"
    variables = {} if thinking == "auto" else {"enable_thinking": on, "thinking": on}
    assert asked.get("chat_template_kwargs", {}) == variables


async def test_a_server_goes_on_with_the_switch_with_which_an_answer_began() -> None:
    with ScriptedServer(VLLM, vllm_stream([(1, "A")], finish="length"), vllm_stream([(2, " b")])) as server:
        async with talking(server, Settings(decoder="server", thinking="on")) as talk:
            await talk.answer("Hi?", most=1)
            talk.send(Configure(thinking="off"))
            await talk.answer("Hi?", "A", first_step=1, thinking=talk.started.settings.thinking)
            assert talk.started.settings.thinking == "on"
    first, second = (asked["chat_template_kwargs"] for asked in server.chats)
    assert first == second == {"enable_thinking": True, "thinking": True}


async def test_a_server_that_refuses_the_switch_is_asked_without_it_once_thinking_is_auto_again() -> None:
    refusal = page({"error": {"message": "Unknown field: chat_template_kwargs"}}, 400)
    with ScriptedServer(OPENAI, refusal, openai_stream("Yes.")) as server:
        async with talking(server, Settings(decoder="server", thinking="off")) as talk:
            assert "thinking to auto" in (await talk.failure("Hi?")).hint
            talk.send(Configure(thinking="auto"))
            assert (await talk.answer("Hi?")).text == "Yes."
        assert "chat_template_kwargs" not in server.chats[1]


@pytest.mark.parametrize("opens", [True, False])
async def test_sglang_is_asked_whether_the_prompt_has_opened_them(opens: bool) -> None:
    pages = {
        **pages_of("sglang", "tiny"),
        "/tokenize": page({"tokens": [5, 6, 7]}),
        "/detokenize": page({"text": "assistant\n<think>\n" if opens else "assistant\n"}),
    }
    texts = ["Hm.", "Hm.</think>", "Hm.</think>Yes."]
    told = [
        {"text": text, "output_ids": [1] * count, "meta_info": {"completion_tokens": count, "prompt_tokens": 3}}
        for count, text in enumerate(texts, start=1)
    ]
    told[-1]["meta_info"]["finish_reason"] = {"type": "stop"}  # type: ignore[index]
    with ScriptedServer(pages, Reply([*map(event, told), b"data: [DONE]\n\n"])) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?")).text == ("Yes." if opens else texts[-1])
        asked = next(one.body for one in server.requests if one.path == "/detokenize")
    assert asked == {"model": "tiny", "tokens": [5, 6, 7], "skip_special_tokens": False}


def said(steps: Iterable[Step]) -> list[str]:
    """Of each step its thoughts, and after a stroke its part of the answer."""
    found = []
    for step in steps:
        thought, text = "".join(step.pieces[: step.reasoning]), "".join(step.pieces[step.reasoning :])
        found.append(f"{thought}|{text}" if step.reasoning < len(step.pieces) else thought)
    return found
