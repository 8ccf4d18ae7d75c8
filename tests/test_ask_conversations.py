"""`ladechat ask` in a conversation: continued, named, or kept as a new one."""

from pathlib import Path

import pytest

from ladechat import protocol
from ladechat.protocol import Event, Message
from ladechat.session.conversations.store import ConversationStore
from ladechat.shell import ask
from tests.command_line import check_refused, check_runs
from tests.session.conversations import exchange, write
from tests.test_ask_events import BEGUN, OUT_OF_MEMORY, Scripted, finished, step

ANSWER = (BEGUN, step(0, "Yes", "."), finished("eos", "Yes."))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[protocol.Generate]:
    """What the engine is asked; it answers Yes. The data folder is empty."""
    sent: list[protocol.Generate] = []

    async def send(self: Scripted, command: protocol.Command) -> None:
        assert isinstance(command, protocol.Generate)
        sent.append(command)

    monkeypatch.setattr(Scripted, "send", send)
    monkeypatch.setattr(ask, "engine_of", Scripted)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    answers(monkeypatch, *ANSWER)
    return sent


def answers(monkeypatch: pytest.MonkeyPatch, *events: Event) -> None:
    monkeypatch.setattr(Scripted, "said", events)


def said() -> dict[str, list[tuple[str, str]]]:
    """The saved conversations by their titles: questions with answers."""
    found = ConversationStore().conversations()
    return {one.title: [(each.question, each.answer) for each in one.exchanges] for one in found}


def test_an_answer_is_saved_only_where_that_is_asked_for(asked: list[protocol.Generate]) -> None:
    check_runs("ask", "One?", typed="")
    assert said() == {}
    result = check_runs("ask", "One?", "--keep", "--system", "Be brief.", typed="")
    (kept,) = ConversationStore().conversations()
    assert said() == {"One?": [("One?", "Yes.")]} and kept.system == "Be brief." and kept.model == "demo"
    assert [one.pieces for one in protocol.unpacked(kept.exchanges[0].steps, 1)] == [["Yes", "."]]
    name = kept.path.stem[-8:]
    assert f"ladechat ask --conversation {name} goes on with it" in result.stderr and result.stdout == "Yes.\n"
    check_runs("ask", "Two?", "--conversation", name, typed="")
    assert said() == {"One?": [("One?", "Yes."), ("Two?", "Yes.")]}
    assert asked[-1].messages == [
        Message(role="system", content="Be brief."),
        Message(role="user", content="One?"),
        Message(role="assistant", content="Yes.", token_ids=[1]),
        Message(role="user", content="Two?"),
    ]


def test_continue_takes_the_latest_and_a_title_or_its_start_another(asked: list[protocol.Generate]) -> None:
    folder = ConversationStore().folder
    folder.mkdir(parents=True)
    write(folder, "a", exchange("Old?"), title="On windows", when="2020-01-01T12:00:00")
    write(folder, "b", exchange("New?"), when="2021-01-01T12:00:00")
    check_runs("ask", "One?", "--continue", typed="")
    check_runs("ask", "Two?", "--conversation", "ON WIN", typed="")
    assert said() == {"On windows": [("Old?", "Yes."), ("Two?", "Yes.")], "New?": [("New?", "Yes."), ("One?", "Yes.")]}


def test_what_is_open_elsewhere_is_gone_on_with_in_a_copy(asked: list[protocol.Generate]) -> None:
    other = ConversationStore()
    other.add(exchange("Theirs?"))
    result = check_runs("ask", "Mine?", "--continue", typed="")
    assert "is open in another ladechat: the answer is saved in a copy" in result.stderr
    assert set(said()) == {"Theirs?", "Theirs? (copy)"}


def test_an_answer_that_failed_is_not_saved_and_one_that_broke_off_is(
    asked: list[protocol.Generate], monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from ladechat.shell import cli

    for events, kept in (
        ((BEGUN, step(0, "par"), OUT_OF_MEMORY, finished("failed", "par")), {}),
        ((BEGUN, step(0, "par")), {"One?": [("One?", "par")]}),
    ):
        answers(monkeypatch, *events)
        assert CliRunner().invoke(cli.app, ["ask", "One?", "--keep"], input="").exit_code == 1
        assert said() == kept


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--continue"], "There is no conversation to go on with"),
        (["--conversation", "nothing"], "There is no conversation 'nothing'"),
        (["--continue", "--keep"], "give one of them"),
        (["--conversation", "x", "--continue"], "give one of them"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said_in_one_sentence(
    options: list[str], says: str, asked: list[protocol.Generate]
) -> None:
    check_refused("ask", "One?", *options, says=says, typed="")
    assert asked == []


def test_a_name_of_several_conversations_is_refused_with_their_files(asked: list[protocol.Generate]) -> None:
    folder = ConversationStore().folder
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        write(folder, f"2020-{name}", exchange("Same?"))
    check_refused(
        "ask", "One?", "--conversation", "same", says=("2 conversations are called 'same'", "b or a"), typed=""
    )
