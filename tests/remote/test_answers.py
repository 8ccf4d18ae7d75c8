"""Answers of a server, as the protocol tells them: their steps, their end, and all that a chat wants of them."""

from typing import Any

import pytest

from ladechat.protocol import (
    Configure,
    HistoryTrimmed,
    Pace,
    Prefilling,
    Rivals,
    SettingsApplied,
    Stop,
    TurnFinished,
    Watch,
)
from tests.remote.scripted_server import (
    CHAT,
    CUT,
    DONE,
    HOLD,
    OPENAI,
    ScriptedServer,
    chunk,
    event,
    openai_stream,
    page,
    pages_of,
    vllm_chunk,
    vllm_stream,
)
from tests.remote.talking import GREEDY, talking
from tests.waiting import until

A, B, C, D = (1, "A"), (2, " b"), (3, " c"), (4, "d.")


async def test_a_chunk_of_vllm_is_a_pass_with_its_tokens() -> None:
    with ScriptedServer(None, vllm_stream([A], [B, C, D], accepted=[2], drafted=5)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert [(one.token_ids, one.pieces) for one in talk.steps] == [
                ([1], ["A"]),
                ([2, 3, 4], [" b", " c", "d."]),
            ]
            assert talk.steps[1].logprobs == [-0.5] * 3 and talk.steps[1].origins == ["server", "server", "model"]
            assert talk.started.prompt_ids == [1, 2, 3] and talk.started.question == "Hi?"
            assert (done.reason, done.text, done.steps) == ("eos", "A b cd.", 2)
            assert done.server is not None and done.pass_tokens == []
            assert (done.server.passes, done.server.drafted, done.server.accepted) == (2, 5, 2)
            assert (done.server.prompt_tokens, done.server.tokens) == (3, 4)


async def test_the_tokens_that_came_with_the_prompts_pass_have_no_rate() -> None:
    with ScriptedServer(None, vllm_stream([A, B], [C, D], accepted=[2], drafted=5)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert done.untimed_tokens == 2
            assert done.tokens_per_second == pytest.approx(2 / done.decode_seconds)


async def test_chunks_that_held_several_passes_are_mended_at_the_end() -> None:
    with ScriptedServer(None, vllm_stream([A], [B, C, D], accepted=[0, 1], drafted=4)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert done.pass_tokens == [1, 1, 2] and done.steps == 3
            assert done.server is not None and done.server.passes == 3


async def test_a_text_that_is_not_that_of_its_tokens_stays_whole() -> None:
    half = vllm_chunk([(7, "�"), (8, "�")])
    half["choices"][0]["delta"]["content"] = "ä"
    with ScriptedServer(None, [event(half), *vllm_stream([A])[1:]]) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?")).text == "äA"
            assert talk.steps[0].pieces == ["", "ä"] and talk.steps[0].token_ids == [7, 8]


async def test_of_other_servers_a_step_is_a_chunk() -> None:
    with ScriptedServer(OPENAI, openai_stream("Good ", "day", prompt_tokens=5, completion_tokens=3)) as server:
        async with talking(server) as talk:
            assert talk.ready.server is not None and not talk.ready.server.passes
            done = await talk.answer("Hi?")
            assert [one.pieces for one in talk.steps] == [["Good "], ["day"]]
            assert done.text == "Good day" and done.server is not None and done.server.tokens == 3


def llama_chunk(text: str, predicted: int, ms: float, drafted: int = 0, accepted: int = 0) -> bytes:
    """A chunk of llama.cpp's server, by its source."""
    timings = {"cache_n": 4, "prompt_n": 6, "predicted_n": predicted, "predicted_ms": ms, "predicted_per_second": 50.0}
    if drafted:
        timings |= {"draft_n": drafted, "draft_n_accepted": accepted}
    return event(chunk(text, timings=timings))


async def test_the_chunks_of_one_pass_of_llama_cpp_are_joined() -> None:
    progress = event(chunk(prompt_progress={"total": 10, "cache": 4, "processed": 7, "time_ms": 3}))
    stream = [
        progress,
        llama_chunk("A", 1, 1.0),
        llama_chunk(" b", 2, 9.0, 4, 2),
        llama_chunk(" c", 3, 9.0, 4, 2),
        llama_chunk("d", 4, 9.0, 4, 2),
        llama_chunk(".", 5, 12.0, 4, 2),
        event(chunk(finish="stop")),
        DONE,
    ]
    with ScriptedServer(pages_of("llamacpp", "tiny"), stream) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert [one.pieces for one in talk.steps] == [["A"], [" b", " c", "d"], ["."]]
            assert [one.drafted for one in talk.steps] == [None, 4, 0]
            assert [(one.done_tokens, one.total_tokens) for one in talk.events.of(Prefilling)] == [(7, 10)]
            assert done.server is not None and done.server.passes == 3 and done.server.tokens_per_second == 50.0


@pytest.mark.parametrize("whole", [True, False], ids=["all of it in each event", "only what is new"])
async def test_a_rise_of_sglangs_count_is_a_pass(whole: bool) -> None:
    """Written by its documentation: no recording."""
    reported = [([1], "A", 0), ([2, 3], " b c", 1), ([4], "d.", 2), ([5, 6], "ef", 4)]
    stream: list[bytes] = []
    ids: list[int] = []
    text = ""
    for new, more, checked in reported:
        ids, text = [*ids, *new], text + more
        meta: dict[str, Any] = {
            "prompt_tokens": 3,
            "completion_tokens": len(ids),
            "spec_verify_ct": checked,
            "finish_reason": {"type": "stop"} if more == "ef" else None,
        }
        stream.append(event({"text": text if whole else more, "output_ids": ids if whole else new, "meta_info": meta}))
    pages = {**pages_of("sglang", "tiny", max_model_len=99), "/tokenize": page({"tokens": [7, 8, 9], "count": 3})}
    with ScriptedServer(pages, [*stream, DONE]) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert [(one.token_ids, "".join(one.pieces), one.passes) for one in talk.steps] == [
                ([1], "A", 1),
                ([2, 3], " b c", 1),
                ([4], "d.", 1),
                ([5, 6], "ef", 2),
            ]
            assert done.text == "A b cd.ef" and done.server is not None and done.server.passes == 5
            assert server.chats[0]["input_ids"] == [7, 8, 9]


async def test_vllm_is_asked_what_else_was_likely_while_somebody_looks() -> None:
    told = vllm_chunk([B])
    likely = [{"token": " b", "logprob": -1.5}, {"token": " or", "logprob": -0.5}]  # what was sampled comes first
    told["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = likely
    stream = vllm_stream([A])
    with ScriptedServer(None, [stream[0], event(told), *stream[1:]], vllm_stream([A])) as server:
        async with talking(server) as talk:
            talk.send(Watch(rivals=True))
            await talk.answer("Hi?")
            assert [[(one.pieces, one.logprobs) for one in step.rivals] for step in talk.steps] == [
                [([" or", " b"], [-0.5, -1.5])],
                [],
            ]
            talk.send(Watch())
            await talk.answer("Hi?")
        assert [one.get("top_logprobs") for one in server.chats] == [5, None]


async def test_sglang_is_asked_what_else_was_likely_while_somebody_looks() -> None:
    meta = {
        "completion_tokens": 1,
        "finish_reason": {"type": "stop"},
        "output_token_logprobs": [[-1.5, 2, " b"]],
        "output_top_logprobs": [[[-0.5, 3, " or"], [-1.5, 2, " b"]]],
    }
    pages = {**pages_of("sglang", "tiny", max_model_len=99), "/tokenize": page({"tokens": [7], "count": 1})}
    with ScriptedServer(pages, [event({"text": " b", "output_ids": [2], "meta_info": meta}), DONE]) as server:
        async with talking(server) as talk:
            talk.send(Watch(rivals=True))
            await talk.answer("Hi?")
            assert talk.steps[0].rivals == [Rivals(pieces=[" or", " b"], logprobs=[-0.5, -1.5])]
        assert server.chats[0]["top_logprobs_num"] == 5


async def test_thoughts_are_apart_from_the_answer() -> None:
    thinks = event(vllm_chunk([A, B], reasoning_content="A b"))
    both = event(vllm_chunk([C, D], reasoning=" c", content="d."))
    with ScriptedServer(None, [thinks, both, *vllm_stream([])[2:]]) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert [(one.pieces, one.reasoning) for one in talk.steps] == [(["A", " b"], 2), ([" c", "d."], 1)]
            assert done.text == "d." and done.token_ids == [1, 2, 3, 4]


async def test_settings_and_seed_are_those_of_the_chat() -> None:
    sampled = GREEDY.__class__(decoder="server", temperature=0.7, top_p=0.9, top_k=5, min_p=0.1, seed=20)
    with ScriptedServer(None, vllm_stream([A])) as server:
        async with talking(server, sampled) as talk:
            await talk.answer("Hi?", most=None)
            talk.send(Configure(temperature=0.0, min_p=0.0))
            assert (await talk.events.until(SettingsApplied)).settings.temperature == 0.0
            await talk.answer("Hi?", "A", "And?", most=7)
            first, second = server.chats
            assert {name: first[name] for name in ("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens")} == {
                "temperature": 0.7,
                "top_p": 0.9,
                "top_k": 5,
                "min_p": 0.1,
                "seed": 20,
                "max_tokens": 512,
            }
            assert second["temperature"] == 0.0 and "seed" not in second and second["max_tokens"] == 7
            assert [one["role"] for one in second["messages"]] == ["user", "assistant", "user"]


async def test_a_server_of_which_nothing_is_known_gets_no_fields_that_it_may_not_know() -> None:
    with ScriptedServer(OPENAI, openai_stream("A")) as server:
        async with talking(server) as talk:
            await talk.answer("Hi?")
            assert not {"top_k", "min_p", "repetition_penalty", "return_token_ids"} & server.chats[0].keys()


async def test_a_stop_ends_the_request_at_the_server_and_keeps_what_has_come() -> None:
    stream = vllm_stream([A], [B])
    with ScriptedServer(None, [*stream[:3], HOLD, *stream[3:]]) as server:
        async with talking(server) as talk:
            talk.ask("Hi?")
            await until(lambda: len(talk.steps) == 2)
            assert server.running == 1
            talk.send(Stop())
            done = await talk.events.until(TurnFinished)
            assert (done.reason, done.text) == ("stopped", "A b")
            await until(lambda: server.running == 0)


async def test_a_stop_before_the_server_has_said_anything_ends_the_request_too() -> None:
    with ScriptedServer(None, [HOLD]) as server:
        async with talking(server) as talk:
            talk.ask("Hi?")
            await until(lambda: server.running == 1)
            talk.send(Stop())
            assert (await talk.events.until(TurnFinished)).reason == "stopped"
            await until(lambda: server.running == 0)


async def test_the_viewers_pace_holds_steps_back() -> None:
    with ScriptedServer(None, vllm_stream([A], [B], [C])) as server:
        async with talking(server) as talk:
            talk.send(Pace(steps_per_second=0.0))
            talk.ask("Hi?")
            talk.send(Pace(steps_per_second=0.0, step=True))
            await until(lambda: len(talk.steps) == 1)
            talk.send(Pace(steps_per_second=0.0, step=True))
            await until(lambda: len(talk.steps) == 2)
            talk.send(Stop())
            assert (await talk.events.until(TurnFinished)).text == "A b"


async def test_an_answer_goes_on_where_the_server_can_continue_it() -> None:
    with ScriptedServer(None, vllm_stream([A], finish="length"), vllm_stream([B])) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?", most=1)).reason == "max_new_tokens"
            done = await talk.answer("Hi?", "A", first_step=1)
            assert done.text == " b" and talk.steps[-1].index == 1 and talk.started.goes_on
            assert server.chats[1]["continue_final_message"] and not server.chats[1]["add_generation_prompt"]
            assert "complete" in (await talk.failure("Hi?", "A b")).message


async def test_other_servers_say_that_they_cannot_continue() -> None:
    with ScriptedServer(OPENAI, openai_stream("A")) as server:
        async with talking(server) as talk:
            assert "cannot continue" in (await talk.failure("Hi?", "A")).message
            assert not server.chats


FULL = page(
    {
        "error": {
            "message": "This model's maximum context length is 1024 tokens. However, you requested 512 output tokens "
            "and your prompt contains at least 900 input tokens, for a total of at least 1412 tokens."
        }
    },
    400,
)
OVERFULL = page(
    {"error": {"message": "The input (2000 tokens) is longer than the model's context length (1024)."}}, 400
)


async def test_an_answer_is_asked_as_long_as_the_context_lets_it_be() -> None:
    with ScriptedServer(None, FULL, vllm_stream([A], finish="length")) as server:
        async with talking(server) as talk:
            assert (await talk.answer("Hi?", most=512)).reason == "context"
            assert [one["max_tokens"] for one in server.chats] == [512, 124]


async def test_the_oldest_turns_are_left_out_where_the_conversation_does_not_fit() -> None:
    with ScriptedServer(None, OVERFULL, vllm_stream([A])) as server:
        async with talking(server) as talk:
            await talk.answer("1?", "1", "2?", "2", "3?")
            assert talk.events.of(HistoryTrimmed)[0].dropped_turns == 1
            assert [one["content"] for one in server.chats[1]["messages"]] == ["2?", "2", "3?"]


async def test_a_question_that_does_not_fit_alone_is_refused() -> None:
    with ScriptedServer(None, OVERFULL) as server:
        async with talking(server) as talk:
            assert (await talk.failure("1?")).code == "message_too_long"


async def test_two_conversations_at_once_do_not_touch_each_other() -> None:
    one, other = vllm_stream([A], [B]), vllm_stream([C], [D])
    with ScriptedServer(None, [*one[:2], HOLD, *one[2:]], other) as server:
        async with talking(server) as first, talking(server) as second:
            first.ask("Hi?")
            await until(lambda: len(first.steps) == 1)
            assert (await second.answer("Hi?")).text == " cd."
            server.release()
            assert (await first.events.until(TurnFinished)).text == "A b"


async def test_a_server_that_goes_away_and_comes_back_goes_on_with_the_next_question() -> None:
    stream = vllm_stream([A], [B])
    with ScriptedServer(None, [*stream[:2], HOLD], stream) as server:
        async with talking(server) as talk:
            talk.ask("Hi?")
            await until(lambda: len(talk.steps) == 1)
            server.stop()
            assert (await talk.events.until(TurnFinished)).reason == "stopped"
            assert "cannot be reached" in (await talk.failure("Hi?")).message
            server.start()
            assert (await talk.answer("Hi?")).text == "A b"


async def test_a_stream_without_its_last_line_is_whole_if_it_said_why_it_ends() -> None:
    with ScriptedServer(None, [*vllm_stream([A])[:-1], CUT]) as server:
        async with talking(server) as talk:
            talk.ask("Hi?")
            assert (await talk.events.until(TurnFinished)).text == "A"
    assert CHAT
