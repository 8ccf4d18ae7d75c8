"""Claims about the status line: what stays when there is little room."""

import pytest

from ladechat.widgets.bars.status_line import StatusLine
from tests.widgets.hosting import Host, lines


def line() -> StatusLine:
    status = StatusLine()
    status.model = "meta-llama/Llama-2-7b-chat-hf"
    status.device = "cuda:0"
    status.dtype = "bfloat16"
    status.decoder = "lookahead"
    status.facts = "7 B"
    status.memory = "GPU memory 14 GB"
    status.activity = "answering"
    return status


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (110, "meta-llama/Llama-2-7b-chat-hf · cuda:0 · bfloat16 · lookahead · 7 B · GPU memory 14 GB"),
        (90, "meta-llama/Llama-2-7b-chat-hf · cuda:0 · bfloat16 · lookahead · 7 B"),
        (75, "meta-llama/Llama-2-7b-chat-hf · cuda:0 · bfloat16 · lookahead"),
        (70, "Llama-2-7b-chat-hf · cuda:0 · bfloat16 · lookahead"),
        (55, "Llama-2-7b-chat-hf · cuda:0 · lookahead"),
        (44, "Llama-2-7b-chat-hf · lookahead"),
        (32, "Llama-2-7b-chat-hf"),
        (25, "Llama-2-7b-ch…"),
        (20, ""),
    ],
)
async def test_the_least_important_goes_first_and_the_activity_stays(width: int, left: str) -> None:
    status = line()
    async with Host(status, width, 1).run_test(size=(120, 3)):
        assert lines(status) == [left + "answering".rjust(width - len(left))]


async def test_an_activity_longer_than_the_line_is_shortened() -> None:
    status = line()
    status.activity = "loading the model: reading 6.7 B parameters"
    async with Host(status, 20, 1).run_test():
        assert lines(status) == ["loading the model: …"]


async def test_what_is_not_known_yet_leaves_no_gap() -> None:
    status = StatusLine()
    status.device = "cpu"
    status.decoder = "lookahead"
    async with Host(status, 30, 1).run_test() as pilot:
        assert lines(status) == ["cpu · lookahead"]
        status.activity = "starting"
        await pilot.pause()
        assert lines(status) == ["cpu · lookahead       starting"]
