"""What a server has answered, exported: it says chunk where the server does not tell its passes, and nothing untold."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat.export.as_json import as_json
from ladechat.export.conversation import Talk, talk_of
from ladechat.export.html import html
from ladechat.export.markdown import markdown
from ladechat.export.race_page import race_page
from ladechat.protocol import Asked, Message, ServerInfo
from ladechat.session.recordings.recording import Recording
from ladechat.session.server_race import MeasuringServers
from tests.app.test_server import A_PASS, OTHER, VLLM, ended, lane, of_server, passes, started
from tests.export.pages import Page
from tests.fake_engine import FakeEngine
from tests.session.streams import recorded


def talk(folder: Path, info: ServerInfo) -> Talk:
    steps = [replace(step, drafted=5 if info.passes else None) for step in passes(["A"], [" b", " c", "d."])]
    steps += passes([""])  # the mark of the end, as of llama.cpp's server
    steps[-1] = replace(steps[-1], index=2)
    events = (of_server(info), Asked(turn=1, text="Hi?"), started(), *steps, ended(steps))
    return talk_of(Recording.read(recorded(folder, *events)))


@pytest.mark.parametrize(("info", "unit"), [(VLLM, "pass"), (OTHER, "chunk")], ids=["passes", "chunks"])
def test_a_page_counts_what_a_step_is(tmp_path: Path, info: ServerInfo, unit: str) -> None:
    content = html(talk(tmp_path, info))
    page = Page(content)
    heads = page.texts["th"]
    assert heads[0] == unit and "slots" not in heads
    assert ("drafted" in heads) == ("tokens per pass" in heads) == info.passes
    rows = [row.count("<td") for row in re.findall("<tr>(<td.*?)</tr>", content)]
    assert rows == [len(heads)] * 3, "no row lacks a cell"
    assert f'aria-label="{unit.capitalize()}"' in content
    assert (f"One colour is one {'forward pass' if info.passes else unit}") in " ".join(page.texts["p"])


def test_thoughts_are_folded_in_page_and_markdown_and_apart_in_json(tmp_path: Path) -> None:
    steps = passes(["Hm ", "<b>"], [".", "Yes"], ["."], reasoning=3)
    events = (of_server(VLLM), Asked(turn=1, text="Hi?"), started(), *steps, ended(steps))
    thought = talk_of(Recording.read(recorded(tmp_path, *events)))
    page, text, turn = html(thought), markdown(thought), json.loads(as_json(thought))["turns"][0]
    assert Page(page).texts["summary"][0] == "Thoughts · 3 tokens in 21 ms"
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "Yes" not in folded and 'class="hue0"' in folded and "&lt;b&gt;" in folded
    assert "<details>\n<summary>Thoughts · 3 tokens in 21 ms</summary>\n\nHm \\<b\\>.\n\n</details>\n\nYes." in text
    assert (turn["thoughts"], turn["answer"]) == ("Hm <b>.", "Yes.")


def test_json_has_no_number_that_no_server_told(tmp_path: Path) -> None:
    steps = json.loads(as_json(talk(tmp_path, VLLM)))["turns"][0]["steps"]
    assert [(step["slots"], step["drafted"]) for step in steps] == [(None, 5), (None, 5), (None, None)]
    chunks = json.loads(as_json(talk(tmp_path, OTHER)))["turns"][0]["steps"]
    assert (
        {token["id"] for step in chunks for token in step["tokens"]} == {None} == {step["drafted"] for step in chunks}
    )


def test_the_page_of_a_race_of_chunks_says_so() -> None:
    race = MeasuringServers([("http://a/v1", FakeEngine())] * 2, [Message(role="user", content="Hi?")])
    race.lanes = [lane(OTHER), lane(OTHER)]
    content = race_page(race)
    page = Page(content)
    assert page.texts["h1"] == ["A race of 2 servers"]
    said = " ".join(text for tag in ("span", "p", "th", "summary") for text in page.texts[tag])
    assert "chunk by chunk" in said and 'aria-label="One chunk on"' in content
    assert not A_PASS.search(said.replace("the server does not tell the passes behind it", ""))
