"""An engine as a child process. A small script stands in for it: how a child is kept needs no torch to be seen."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from ladechat import protocol
from ladechat.protocol import Failed, Header, Stop, encode
from ladechat.session import live
from ladechat.session.live import LiveEngine
from tests.session.scripted import Start, all_events, doings
from tests.session.streams import HEADER
from tests.waiting import until


async def test_events_come_in_order_and_unknown_kinds_are_skipped(engine_that: Start) -> None:
    engine = engine_that("""loading(b"a"); say(b'{"event":"dance"}'); loading(b"b")""")
    await engine.start()
    assert doings(await all_events(engine)) == ["a", "b"]
    assert engine.returncode == 0
    await engine.close()


async def test_a_line_longer_than_the_usual_limit_of_a_pipe_reader_arrives(engine_that: Start) -> None:
    engine = engine_that("loading(b'x' * 1_000_000)")
    await engine.start()
    assert [len(doing) for doing in doings(await all_events(engine))] == [1_000_000]
    await engine.close()


@pytest.mark.parametrize(
    "lie",
    [
        """say(b'{"event":"step","turn":' + b"[" * 100_000)""",
        """say(b'{"event":"prefilling","turn":1,"done_tokens":1,"total_tokens":1}')""",
        f"say({encode(HEADER).rstrip()!r})",
        "say(b'x' * 70_000_000)",
        "say(bytes(range(256)))",
    ],
    ids=["nested", "outside a turn", "a second header", "too long", "no text"],
)
async def test_a_line_that_is_no_event_is_left_out_and_that_is_said_once(engine_that: Start, lie: str) -> None:
    engine = engine_that(f"loading(b'a')\n{lie}\n{lie}\nloading(b'b')")
    await engine.start()
    events = await asyncio.wait_for(all_events(engine), 60)
    assert doings(events) == ["a", "b"]
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert "left out" in failed.message and not failed.fatal
    assert engine.left_out >= 2
    await engine.close()
    assert engine.log.read_text().count("was left out") == engine.left_out


@pytest.mark.parametrize("writable", [True, False])
async def test_the_last_line_of_the_log_is_known_also_where_none_can_be_written(
    engine_that: Start, writable: bool, tmp_path: Path
) -> None:
    engine = engine_that(r"""os.write(2, b"Traceback\n" * 1000 + "ImportError: \u00e9\n\n  ".encode())""")
    if not writable:
        (tmp_path / "logs").write_text("")
    await engine.start()
    assert await all_events(engine) == [] and engine.last_line in ("", "ImportError: \u00e9")
    await engine.close()
    assert engine.last_line == "ImportError: \u00e9"


async def test_what_comes_before_the_header_is_left_out(engine_that: Start) -> None:
    engine = engine_that(
        """say(b'{"event":"loading","stage":1,"stages":1,"doing":"x"}'); said.clear(); loading(b"a")"""
    )
    await engine.start()
    events = await all_events(engine)
    assert isinstance(events[0], Header) and isinstance(events[1], Failed) and doings(events) == ["a"]
    await engine.close()


async def test_a_line_cut_short_by_the_end_of_the_process_is_left_out_and_the_exit_code_tells(
    engine_that: Start,
) -> None:
    engine = engine_that("""loading(b"a"); os.write(1, b'{"event":"loading","stage":1,'); os.kill(os.getpid(), 9)""")
    await engine.start()
    assert doings(await all_events(engine)) == ["a"]
    assert engine.returncode == -9
    await engine.close()


async def test_commands_arrive_as_lines(engine_that: Start) -> None:
    engine = engine_that("loading(sys.stdin.readline().strip().replace('\"', '').encode())")
    await engine.start()
    await engine.send(Stop())
    assert doings(await all_events(engine)) == ["{command:stop}"]
    await engine.close()


async def test_a_command_to_an_engine_that_has_ended_goes_nowhere(engine_that: Start) -> None:
    engine = engine_that("sys.exit(3)")
    await engine.start()
    await all_events(engine)
    for _ in range(3):
        await engine.send(Stop())
    assert engine.returncode == 3
    await engine.close()


async def test_an_engine_is_asked_for_its_stacks_once_it_has_sent_its_header(engine_that: Start) -> None:
    engine = engine_that(
        """
import faulthandler
import select
select.select([0], [], [])
faulthandler.register(signal.SIGUSR1)
def hang(): loading(b"a"); sys.stdin.readline(); sys.stdin.readline()
hang()
"""
    )
    engine.dump_stacks()  # there is none yet
    await engine.start()
    engine.dump_stacks()  # not before its first word: it could not bear that
    await engine.send(Stop())
    events = engine.events()
    await anext(events)
    engine.dump_stacks()
    await until(lambda: engine.log.exists() and "in hang" in engine.log.read_text(encoding="utf-8"))
    await engine.close()
    assert engine.returncode == 0
    engine.dump_stacks()  # and nothing happens


async def test_closing_lets_the_engine_leave_by_itself(engine_that: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 60.0)  # a busy machine may not even have begun with it
    engine = engine_that("loading(b'a'); sys.stdin.readline(); sys.exit(7)")
    await engine.start()
    await engine.close()
    assert engine.returncode == 7


async def test_closing_kills_an_engine_that_does_not_listen(
    engine_that: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 0.2)
    engine = engine_that("loading(b'a'); time.sleep(600)")
    await engine.start()
    await asyncio.wait_for(engine.close(), 60)
    assert engine.returncode == -9


async def test_closing_ends_an_engine_that_is_frozen(engine_that: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 0.2)
    engine = engine_that("loading(b'a'); os.kill(os.getpid(), signal.SIGSTOP)")
    await engine.start()
    await anext(aiter(engine.events()))
    await asyncio.wait_for(engine.close(), 60)
    assert engine.returncode == -9


async def test_closing_is_not_held_up_by_a_full_pipe(engine_that: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 0.2)
    engine = engine_that("loading(b'a'); time.sleep(600)")
    await engine.start()
    question = protocol.Generate(turn=1, messages=[protocol.Message(role="user", content="x" * 5_000_000)])
    sending = asyncio.create_task(engine.send(question))
    await asyncio.sleep(0.05)
    assert not sending.done()
    await asyncio.wait_for(engine.close(), 60)
    await asyncio.wait_for(sending, 60)
    assert engine.returncode == -9


async def test_what_an_engine_has_started_ends_with_it(engine_that: Start) -> None:
    engine = engine_that(
        "worker = os.fork()\n"
        "if worker == 0: time.sleep(600)\n"
        "loading(str(worker).encode()); sys.stdin.readline(); os._exit(0)"
    )
    await engine.start()
    events = engine.events()
    await anext(events)  # its header
    (worker,) = doings([await anext(events)])
    await asyncio.wait_for(engine.close(), 60)
    await end_of(int(worker))


WORKER = """
import subprocess
worker = subprocess.Popen(["sleep", "600"], stdout=2, start_new_session={independent})
loading(str(worker.pid).encode())
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_an_engine_that_is_killed_is_seen_to_end_and_takes_its_workers_along(engine_that: Start) -> None:
    engine = engine_that(WORKER.format(independent=False))
    await engine.start()
    (worker,) = doings(await asyncio.wait_for(all_events(engine), 60))
    assert engine.returncode == -9
    await end_of(int(worker))
    await engine.close()


async def test_closing_does_not_wait_for_what_made_itself_independent_of_the_engine(
    engine_that: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 0.2)
    engine = engine_that(WORKER.format(independent=True))
    await engine.start()
    (worker,) = doings(await asyncio.wait_for(all_events(engine), 60))
    try:
        await asyncio.wait_for(engine.close(), 60)
        assert is_running(int(worker))
    finally:
        os.kill(int(worker), signal.SIGKILL)


async def end_of(process: int) -> None:
    await until(lambda: not is_running(process))


def is_running(process: int) -> bool:
    """Does it run? One that has ended, and that nobody has asked for yet, does not."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def test_a_command_for_an_engine_that_could_not_be_started_is_dropped(tmp_path: Path) -> None:
    engine = LiveEngine([str(tmp_path / "nowhere")], logs=tmp_path)
    sending = asyncio.create_task(engine.send(Stop()))
    with pytest.raises(FileNotFoundError):
        await engine.start()
    await engine.close()
    await asyncio.wait_for(sending, 60)


async def test_ctrl_c_in_the_terminal_is_not_the_engines_business(engine_that: Start) -> None:
    engine = engine_that("loading(str(os.getsid(0)).encode())")
    await engine.start()
    (session,) = doings(await all_events(engine))
    assert int(session) != os.getsid(0)
    await engine.close()


async def test_an_engine_that_was_never_started_can_be_closed(tmp_path: Path) -> None:
    await LiveEngine([sys.executable], logs=tmp_path).close()
