"""What an engine does when something goes wrong: it says so, in order, and lives on or ends as it should."""

import signal
from pathlib import Path

import pytest

from ladechat.protocol import Failed, Generate, Header, Message, Ready, Stop, TurnStarted
from tests.engine.inside import Inside
from tests.engine.wire import Wire
from tests.waiting import wait_for

QUESTION = "What is the n-gram pool?"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message(role="system", content="Be brief.")],
        [Message(role="user", content="a"), Message(role="assistant", content="b")],
    ],
    ids=["none", "only the system's", "an answer last"],
)
def test_a_conversation_with_nothing_to_answer_is_a_bad_command(engine: Inside, messages: list[Message]) -> None:
    engine.send(Generate(turn=900, messages=messages))
    failed = engine.until(Failed)
    assert (failed.code, failed.turn, failed.fatal) == ("bad_command", 900, False)
    assert engine.ask(QUESTION, max_new_tokens=2)[1].reason == "max_new_tokens"


def test_the_announced_limit_is_what_the_context_leaves_and_its_end_is_named(engine: Inside) -> None:
    turn = engine.generate(QUESTION, max_new_tokens=10 * engine.ready.context_length)
    began = engine.until(TurnStarted)
    engine.send(Stop())
    engine.finish(turn)
    assert began.max_new_tokens == engine.ready.context_length - len(began.prompt_ids)


def test_a_stop_between_turns_does_nothing(engine: Inside) -> None:
    engine.send(Stop())
    assert engine.ask(QUESTION, max_new_tokens=3)[1].reason == "max_new_tokens"


@pytest.mark.full
def test_the_end_of_the_input_ends_an_engine_whose_template_holds_the_interpreter_lock(tmp_path: Path) -> None:
    """As a template does that computes one huge number: no thread of Python runs any more."""
    script = tmp_path / "engine_that_computes_on_and_on.py"
    script.write_text(
        "import ctypes, os\n"
        "from ladechat.engine.chat_format import ChatFormat\n"
        "from ladechat.engine.server import serve\n"
        "from ladechat.engine_options import EngineOptions\n"
        "ChatFormat.fit = lambda *_: (os.write(2, b'computing\\n'), ctypes.PyDLL(None).sleep(600))\n"
        "raise SystemExit(serve(EngineOptions('demo', 'cpu', 'float32')))\n"
    )
    wire = Wire(program=(str(script),))
    try:
        wire.until(Ready)
        wire.generate(QUESTION)
        wait_for(lambda: "computing" in wire.log)
        assert wire.end() == -signal.SIGKILL
    finally:
        wire.close()


def test_an_engine_that_crashes_writes_into_its_log_where_it_was() -> None:
    wire = Wire("--model", "demo")
    wire.until(Header)
    wire.process.send_signal(signal.SIGSEGV)
    assert wire.wait_for_end() == -signal.SIGSEGV
    wire.rest()
    assert "Segmentation fault" in wire.log and "server.py" in wire.log
