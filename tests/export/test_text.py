"""Markdown and JSON: the conversation for other programs, which takes nothing that was said for markup."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ladechat.export.as_json import as_json
from ladechat.export.conversation import Talk, talk_of
from ladechat.export.html import html
from ladechat.export.markdown import as_text, markdown
from ladechat.protocol import (
    Asked,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    ExchangeRestored,
    Failed,
    Message,
    Settings,
    SettingsApplied,
    Step,
    SystemFolded,
    SystemPrompt,
    TurnFinished,
    TurnStarted,
    packed,
    to_save,
)
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.flow import safe
from ladechat.widgets.formatting import SYSTEM_FOLDED
from tests.export.talks import HOSTILE, hostile, two_turns
from tests.session.conversations import exchange
from tests.session.streams import GOLDEN, recorded, turn as turn_of
from tests.test_refusals import RAW_CONTROLS

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")
FETCHES = {"html_block", "html_inline", "link_open", "image"}
MARKUP = FETCHES | {"em_open", "strong_open", "code_inline"}
PIECES = [
    "<b>", "</script>", "<!--", "![x](y)", "[a](b)", "`", "```", "~~~", "*", "_", "&lt;", "|", "#", ">", "-", "1.",
    "\\", "---", "===", "$", ":", "\x1b[31m", "word", " ", "    ", "\t", "\n", "\n\n",
]  # fmt: skip
TRICKY = st.lists(st.sampled_from(PIECES)).map("".join)


def flat(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *flat(token.children or []))]


@given(text=TRICKY | st.text())
def test_no_text_becomes_markup(text: str) -> None:
    shown = as_text(text)
    assert not {token.type for token in flat(PARSER.parse(shown))} & MARKUP
    assert not RAW_CONTROLS.search(shown)


@given(text=TRICKY | st.text())
def test_no_markup_of_an_answer_is_html_or_fetches_anything(text: str) -> None:
    shown = as_text(text, markup=True)
    assert not {token.type for token in flat(PARSER.parse(shown))} & FETCHES
    assert not RAW_CONTROLS.search(shown)


@given(text=TRICKY, markup=st.booleans())
@example(text="~~~`", markup=True)
def test_what_was_said_neither_ends_early_nor_swallows_what_follows(text: str, markup: bool) -> None:
    tokens = flat(PARSER.parse(f"{as_text(text, markup=markup)}\n\n## After\n"))
    assert tokens[-4].tag == "h2" and tokens[-3].content == "After"


def test_the_markup_of_an_answer_stays() -> None:
    said = "## Plan\n\n- **Use** `a_b[0] < c`, not *d*\n\n| x | y |\n|---|---|\n| 1 | `2` |"
    shown = PARSER.parse(as_text(said, markup=True))
    kinds = {token.type for token in flat(shown)}
    assert {"heading_open", "strong_open", "code_inline", "em_open", "bullet_list_open", "table_open"} <= kinds
    assert [token.content for token in flat(shown) if token.type == "code_inline"] == ["a_b[0] < c", "2"]


@given(text=st.text(st.characters(codec="ascii", exclude_characters="~`\r", categories=["L", "P", "S", "Nd"])))
def test_without_its_escapes_a_line_is_what_was_said(text: str) -> None:
    assert re.sub(r"\\(\W|_)", r"\1", as_text(text)) == safe(text.strip())


def test_code_between_fences_stays_code() -> None:
    shown = as_text("Look:\n\n```python\na < b[0]  # *not* bold\n```\nDone *so*.")
    fence = next(token for token in PARSER.parse(shown) if token.type == "fence")
    assert (fence.info, fence.content) == ("python", "a < b[0]  # *not* bold\n")
    assert shown.endswith("Done \\*so\\*.")


def test_markdown_has_the_conversation_and_the_figures_of_each_answer(tmp_path: Path) -> None:
    content = markdown(talk_of(two_turns(tmp_path)))
    headings = re.findall("^## (.*)$", content, re.MULTILINE)
    assert headings == ["You", "demo model", "You", "demo model"]
    assert "漢字 and Ünï?" in content and "The session was interrupted" in content
    assert "| tokens | passes | tokens per pass |" in content
    assert len([token for token in PARSER.parse(content) if token.type == "table_open"]) == 2


def test_hostile_text_is_text_in_markdown_too(tmp_path: Path) -> None:
    content = markdown(talk_of(hostile(tmp_path)))
    allowed = {"em_open"}  # notices
    assert not {token.type for token in flat(PARSER.parse(content))} & (MARKUP - allowed)
    assert not RAW_CONTROLS.search(content)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_json_has_every_token_with_its_step_and_its_source(path: Path) -> None:
    recording = Recording.read(path)
    document = json.loads(as_json(talk_of(recording)))
    found = [
        (token["id"], token["text"], token["source"])
        for turn in document["turns"] for step in turn["steps"] for token in step["tokens"]
    ]  # fmt: skip
    steps: list[Step] = []
    questions: list[str] = []
    for event in recording.events:
        match event:
            case Asked():
                questions.append(event.text)
            case TurnStarted() if not any(isinstance(one, Asked) for one in recording.events):
                questions.append(event.question)
            case Step():
                steps.append(event)
            case ExchangeRemoved():  # of a question that is asked again
                questions.pop()
                steps = [step for step in steps if step.turn != steps[-1].turn]
    assert found == [one for step in steps for one in zip(step.token_ids, step.pieces, step.origins, strict=True)]
    asked = [turn["question"] for turn in document["turns"] if turn["steps"] or not turn["answer"]]
    assert asked == questions
    for turn in document["turns"]:
        assert [step["step"] for step in turn["steps"]] == list(range(1, len(turn["steps"]) + 1))
        known = turn["answer"] == "".join(token["text"] for step in turn["steps"] for token in step["tokens"])
        counts = (len(turn["steps"]), sum(len(step["tokens"]) for step in turn["steps"]))
        assert (turn["figures"]["passes"], turn["figures"]["tokens"]) == (counts if known else (None, None))


def test_json_is_ascii_and_gives_hostile_text_back(tmp_path: Path) -> None:
    content = as_json(talk_of(hostile(tmp_path)))
    assert content.isascii() and not RAW_CONTROLS.search(content)
    assert json.loads(content)["turns"][0]["question"] == HOSTILE


def test_answers_of_an_earlier_session_are_there_without_their_steps(tmp_path: Path) -> None:
    earlier = ConversationOpened(exchanges=[exchange("Earlier?", "Yes, *then*.")])
    talk = talk_of(Recording.read(recorded(tmp_path, earlier, Asked(turn=1, text="Now?"), *turn_of(1))))
    assert [(one.question, bool(one.steps)) for one in talk.turns] == [("Earlier?", False), ("Now?", True)]
    first, second = json.loads(as_json(talk))["turns"]
    assert (first["answer"], first["steps"]) == ("Yes, *then*.", []) and second["answer"]
    assert "Yes, *then*." in markdown(talk)
    assert '<p class="said answer">Yes, *then*.</p>' in html(talk)


def earlier_with_steps(folder: Path, *more: Event, decoder: str = "auto", answer: str | None = None) -> Talk:
    """A recording that begins with an answer whose five steps were saved, of which the first is a thought."""
    first, *rest = (one for one in turn_of(7, 5) if isinstance(one, Step))
    steps = [msgspec.structs.replace(first, reasoning=len(first.pieces)), *rest]
    said = "".join(piece for one in rest for piece in one.pieces)
    saved = exchange("Earlier?", said if answer is None else answer)
    opened = ConversationOpened(exchanges=[msgspec.structs.replace(saved, steps=packed(steps), decoder=decoder)])
    return talk_of(Recording.read(recorded(folder, opened, *more)))


def test_an_answer_of_an_earlier_session_whose_steps_were_saved_has_them_and_its_thoughts(tmp_path: Path) -> None:
    talk = earlier_with_steps(tmp_path)
    (turn,) = talk.turns
    assert len(turn.steps) == 5 and turn.thoughts and turn.figures()["passes"] == "5"
    assert "ended" not in turn.figures() and "tokens per second" not in turn.figures()
    (found,) = json.loads(as_json(talk))["turns"]
    assert len(found["steps"]) == 5 and found["figures"]["passes"] == 5 and found["answer"] == turn.answer
    assert '<div class="walkable">' in html(talk) and 'class="hue' in html(talk) and turn.thinking in html(talk)
    assert "passes" in markdown(talk) and f"<summary>{turn.thinking}</summary>" in markdown(talk)


def test_an_answer_of_an_earlier_session_whose_end_was_saved_has_its_figures_and_they_are_those_of_all_its_parts(
    tmp_path: Path,
) -> None:
    started, *rest, end = turn_of(1)
    assert isinstance(started, TurnStarted) and isinstance(end, TurnFinished)
    saved = msgspec.structs.replace(exchange("Earlier?"), ended=msgspec.structs.replace(to_save(end), reason="stopped"))
    said = Message(role="assistant", content=saved.answer, token_ids=saved.token_ids)
    went_on = msgspec.structs.replace(started, messages=[*started.messages, said])
    opened = ConversationOpened(exchanges=[saved])
    (before,) = talk_of(Recording.read(recorded(tmp_path, opened))).turns
    assert before.figures()["ended"] == "stopped"
    (turn,) = talk_of(Recording.read(recorded(tmp_path, opened, went_on, *rest, end))).turns
    assert turn.finished is not None and "ended" not in turn.figures()
    assert turn.finished.steps == 2 * end.steps and turn.finished.decode_seconds == 2 * end.decode_seconds


@pytest.mark.parametrize("how", [{"decoder": "server"}, {"answer": "Another text."}])
def test_saved_steps_that_do_not_fit_or_are_a_servers_are_left_out(tmp_path: Path, how: dict[str, str]) -> None:
    (turn,) = earlier_with_steps(tmp_path, **how).turns
    assert turn.steps == [] and turn.answer


def test_an_answer_with_saved_steps_that_goes_on_has_all_its_steps(tmp_path: Path) -> None:
    started, *rest = turn_of(1)
    assert isinstance(started, TurnStarted)
    said = Message(role="assistant", content="As far as it came.", token_ids=[5, 6])
    went_on = msgspec.structs.replace(started, messages=[*started.messages, said])
    whole, cut = (earlier_with_steps(tmp_path, went_on, *events) for events in (rest, rest[:-1]))
    assert [len(talk.turns[0].steps) for talk in (whole, cut)] == [8, 8]
    assert "ended" not in whole.turns[0].figures() and "not recorded" in cut.turns[0].figures()["ended"]


def test_an_answer_of_an_earlier_session_that_goes_on_is_one_answer(tmp_path: Path) -> None:
    earlier = ConversationOpened(exchanges=[exchange("Earlier?", "Yes, *then*.")])
    started, *rest = turn_of(1)
    assert isinstance(started, TurnStarted)
    said = Message(role="assistant", content="Yes, *then*.", token_ids=[5, 6])
    went_on = msgspec.structs.replace(started, messages=[*started.messages, said])
    talk = talk_of(Recording.read(recorded(tmp_path, earlier, went_on, *rest, went_on, *rest)))
    (turn,) = talk.turns
    written = "".join(piece for step in turn.steps for piece in step.pieces)
    assert turn.question == "Earlier?" and len(turn.steps) == 6
    assert turn.answer == "Yes, *then*." + written
    assert markdown(talk).count("\n## demo model\n") == 1 and as_text(turn.answer, markup=True) in markdown(talk)
    assert '<p class="said answer">Yes, *then*.<span' in html(talk)


def test_of_an_answer_that_went_on_twice_what_broke_off_is_left_out(tmp_path: Path) -> None:
    started, *rest = turn_of(1)
    assert isinstance(started, TurnStarted)
    begun = [started, *rest]
    said = Message(role="assistant", content="As far as it came.", token_ids=[5, 6])
    went_on = msgspec.structs.replace(started, messages=[*started.messages, said])
    died = Failed(code="internal", message="It died.", hint="F5", fatal=True)
    failed = msgspec.structs.replace(rest[-1], reason="failed")
    (whole,) = talk_of(Recording.read(recorded(tmp_path, *begun, went_on, *rest))).turns
    for broken_off in ([*rest[:-1], died], [*rest[:-1], failed]):
        path = recorded(tmp_path, *begun, went_on, *broken_off, went_on, *broken_off, went_on, *rest)
        (turn,) = talk_of(Recording.read(path)).turns
        assert (turn.answer, turn.figures()) == (whole.answer, whole.figures())


@pytest.mark.parametrize("opened", [False, True])
def test_questions_whose_answers_were_replaced_are_left_out(tmp_path: Path, opened: bool) -> None:
    def asked(number: int, text: str) -> list[Event]:
        return [Asked(turn=number, text=text), *turn_of(number)]

    before = asked(1, "Cleared?")
    first = (
        [ConversationOpened(exchanges=[exchange("First?")])] if opened else [ConversationCleared(), *asked(2, "First?")]
    )
    unanswered = [*asked(4, "Broken off?")[:-1], Failed(code="internal", message="It died.", hint="F5", fatal=True)]
    events = [*before, *first, *asked(3, "Second?"), *unanswered, ExchangeRemoved(), *asked(5, "Edited?")]

    def left(*more: Event) -> list[tuple[str | None, bool]]:
        talk = talk_of(Recording.read(recorded(tmp_path, *events, *more)))
        for made in (markdown(talk), html(talk), as_json(talk)):
            assert "Second?" not in made and "Broken off?" not in made
        return [(turn.question, turn.begins_anew) for turn in talk.turns]

    assert left() == [("Cleared?", False), ("First?", True), ("Edited?", False)]
    assert left(ExchangeRemoved(), ExchangeRemoved(), *asked(6, "New?")) == [("Cleared?", False), ("New?", True)]
    assert left(*[ExchangeRemoved()] * 3) == [("Cleared?", False)], "what was cleared is on no screen"


def test_an_answer_that_no_other_has_replaced_is_in_exports_below_what_was_to_replace_it(tmp_path: Path) -> None:
    first: list[Event] = [Asked(turn=1, text="First?"), *turn_of(1)]
    failed = Failed(code="out_of_memory", message="Too long.", hint="Shorten it.", turn=2)
    back = ExchangeRestored(exchange=exchange("First?", "The answer before."))
    path = recorded(tmp_path, *first, ExchangeRemoved(), Asked(turn=2, text="Edited?"), failed, back)
    talk = talk_of(Recording.read(path))
    assert [(turn.question, turn.answer) for turn in talk.turns] == [("Edited?", ""), ("First?", "The answer before.")]
    for made in (markdown(talk), html(talk), as_json(talk)):
        assert "Too long." in made and "The answer before." in made
    replaced = recorded(tmp_path, *first, failed, back, ExchangeRemoved(), Asked(turn=3, text="New?"), *turn_of(3))
    assert "The answer before." not in markdown(talk_of(Recording.read(replaced)))


def test_exports_name_what_answers_were_made_with_once_and_again_where_it_changes(tmp_path: Path) -> None:
    def answered(number: int, temperature: float, system: str) -> list[Event]:
        started, *rest = turn_of(number)
        assert isinstance(started, TurnStarted)
        settings = Settings(decoder="lookahead", parameters={"window": 5}, temperature=temperature, top_p=0.9)
        messages = [Message(role="system", content=system), *started.messages] if system else started.messages
        started = msgspec.structs.replace(started, settings=settings, messages=messages, seed=7)
        return [Asked(turn=number, text="Why?"), started, *rest]

    earlier = ConversationOpened(exchanges=[exchange("Earlier?", "Yes.", model="org/Llama")])
    prompt = "Be *brief*.\n<b>Rhyme.</b>"
    events = [earlier, *answered(1, 0.0, prompt), *answered(2, 0.0, prompt), *answered(3, 0.5, "")]
    talk = talk_of(Recording.read(recorded(tmp_path, *events)))
    decoder = "lookahead W 5 N 3 G 5"
    assert [changed for _, changed in talk.changes()] == [
        {"model": "Llama", "decoder": "auto"},
        {
            "model": "demo model",
            "decoder": decoder,
            "settings": "temperature 0, top-p 0.9, at most 100 tokens",
            "system prompt": prompt,
        },
        {},
        {"settings": "temperature 0.5, top-p 0.9, seed 7, at most 100 tokens", "system prompt": ""},
    ]
    page, text = html(talk), markdown(talk)
    assert "<dd>Be *brief*.\n&lt;b&gt;Rhyme.&lt;/b&gt;</dd>" in page and page.count("<dt>decoder</dt>") == 2
    assert "> Be \\*brief\\*.\n> \\<b\\>Rhyme.\\</b\\>" in text and "*system prompt: none*" in text
    assert f"*model: demo model · decoder: {decoder} · settings: temperature 0, top-p 0.9," in text
    kept, first, _, third = json.loads(as_json(talk))["turns"]
    assert (kept["model"], kept["system"], kept["settings"]) == ("Llama", None, None)
    assert kept["figures"]["tokens"] is kept["figures"]["passes"] is kept["figures"]["tokens_per_pass"] is None
    assert (first["model"], first["system"], third["system"]) == ("demo model", prompt, "")
    assert first["settings"]["decoder"] == "lookahead" and third["settings"]["temperature"] == 0.5
    assert (first["settings"]["seed"], first["settings"]["max_new_tokens"]) == (7, 100)


@pytest.mark.parametrize("idly", [False, True], ids=["with passes", "without a pass"])
def test_exports_name_each_decoder_that_an_answer_was_decoded_with(tmp_path: Path, idly: bool) -> None:
    plain, window = Settings(decoder="autoregressive"), Settings(decoder="lookahead", parameters={"window": 5})
    events = turn_of(1)
    first = next(place for place, event in enumerate(events) if isinstance(event, Step))
    changes = [SettingsApplied(settings=plain), *([SettingsApplied(settings=window)] if idly else [])]
    started = msgspec.structs.replace(events[0], settings=window)
    (turn,) = talk_of(
        Recording.read(recorded(tmp_path, started, *events[1 : first + 1], *changes, *events[first + 1 :]))
    ).turns
    then = "" if idly else ", then plain"
    assert turn.figures()["decoder"].startswith(f"lookahead W 5 N 3 G 5{then}")
    assert (", then" in turn.settings) != idly and len(turn.steps) > 1


def test_a_system_prompt_that_no_question_has_followed_is_named(tmp_path: Path) -> None:
    earlier = ConversationOpened(exchanges=[exchange("Earlier?", "Yes.")])
    talk = talk_of(Recording.read(recorded(tmp_path, earlier, SystemPrompt(text="Be brief."))))
    assert "told: Be brief." in markdown(talk) and "told: Be brief." in html(talk)


def test_a_conversation_that_was_opened_again_says_what_its_questions_were_asked_with(tmp_path: Path) -> None:
    asked = [msgspec.structs.replace(exchange(question), system="Be brief.") for question in ("One?", "Two?")]
    opened = ConversationOpened(exchanges=asked)
    talk = talk_of(Recording.read(recorded(tmp_path, opened, SystemPrompt(text="Be brief."))))
    assert [turn["system"] for turn in json.loads(as_json(talk))["turns"]] == ["Be brief."] * 2
    assert markdown(talk).count("Be brief.") == 1 and markdown(talk).index("Be brief.") < markdown(talk).index("One?")
    changed = [SystemPrompt(text=text) for text in ("Rhyme.", "Be brief.")]
    (_, two) = talk_of(Recording.read(recorded(tmp_path, opened, *changed))).turns
    assert [notice.startswith("As before") for notice in two.notices] == [False, True]


@pytest.mark.parametrize("asked", [True, False], ids=["in the app", "by ladechat ask"])
def test_that_the_system_prompt_stands_in_the_first_question_is_noted_once(tmp_path: Path, asked: bool) -> None:
    events = []
    for number in (1, 2):
        question = [Asked(turn=number, text=f"Question {number}?")] if asked else []
        events += [*question, SystemFolded(turn=number), *turn_of(number)]
    talk = talk_of(Recording.read(recorded(tmp_path, *events)))
    assert [turn.notices for turn in talk.turns] == [[SYSTEM_FOLDED], []]
