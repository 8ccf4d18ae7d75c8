"""The log of an engine: what it writes on standard error, kept for its user alone."""

import errno
import os

import pytest

from ladechat.protocol import Stop
from ladechat.session import live
from tests.session.scripted import Start, all_events, doings
from tests.waiting import until


async def test_what_the_engine_logs_goes_to_a_file_and_never_blocks_it(engine_that: Start) -> None:
    engine = engine_that("print('careful! ' * 20_000, file=sys.stderr); loading(b'a')")
    await engine.start()
    assert doings(await all_events(engine)) == ["a"]
    await engine.close()
    assert "careful!" in engine.log.read_text(encoding="utf-8")


async def test_two_engines_at_once_have_two_logs(engine_that: Start) -> None:
    engines = [engine_that("print(os.getpid(), file=sys.stderr); sys.stdin.readline()") for _ in range(2)]
    for engine in engines:
        await engine.start()
    logs = {engine.log for engine in engines}
    for engine in engines:
        await engine.close()
    assert len(logs) == 2
    assert len({log.read_text() for log in logs}) == 2


async def test_a_log_that_is_removed_under_its_engine_is_written_anew_and_rotated(engine_that: Start) -> None:
    write = "print('careful! ' * 100_000, file=sys.stderr, flush=True); "
    engine = engine_that(write + "loading(b'a'); sys.stdin.readline(); " + 3 * write + "loading(b'b')")
    await engine.start()
    events = engine.events()
    for _ in ("header", "loading"):
        await anext(events)
    await until(lambda: engine.log.exists() and engine.log.stat().st_size)
    engine.log.unlink()  # another ladechat tidied up
    await engine.send(Stop())
    assert doings([event async for event in events]) == ["b"]
    await engine.close()
    assert "careful!" in engine.log.read_text()
    kept = list(engine.log.parent.glob("engine-*"))
    assert 1 < len(kept) <= 3 and all(path.stat().st_size <= 1_000_000 for path in kept)


async def test_the_last_words_of_an_engine_are_found_though_its_log_was_removed(engine_that: Start) -> None:
    write = "print('careful!', file=sys.stderr, flush=True); "
    engine = engine_that(write + "loading(b'a'); sys.stdin.readline(); " + write + "loading(b'b')")
    await engine.start()
    events = engine.events()
    for _ in ("header", "loading"):
        await anext(events)
    await until(lambda: engine.log.exists() and engine.log.stat().st_size)
    engine.log.unlink()
    await engine.send(Stop())
    assert doings([event async for event in events]) == ["b"]
    await engine.close()
    assert engine.log.read_text() == "careful!\n"


async def test_a_disk_that_is_full_costs_the_log_and_nothing_else(
    engine_that: Start, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(live, "write_whole", full)
    engine = engine_that("print('careful! ' * 20_000, file=sys.stderr, flush=True); loading(b'a')")
    await engine.start()
    assert doings(await all_events(engine)) == ["a"]
    await engine.close()
    assert capfd.readouterr() == ("", "")


async def test_of_the_logs_only_the_newest_are_kept(engine_that: Start) -> None:
    engine = engine_that("sys.exit(0)")
    folder = engine.log
    folder.mkdir()
    for number in range(30):
        (folder / f"engine-20200101-0000{number:02}-1.log").write_text("old")
        (folder / f"engine-20200101-0000{number:02}-1.log.1").write_text("older")
    (folder / "mine.txt").write_text("not a log")
    await engine.start()
    await all_events(engine)
    await engine.close()
    kept = sorted(path.name for path in folder.glob("engine-*.log"))
    assert len(kept) == live.MOST_LOGS and kept[-1] == engine.log.name
    assert len(list(folder.glob("*.log.1"))) == live.MOST_LOGS - 1
    assert (folder / "mine.txt").exists()


async def test_only_its_user_can_read_the_log_of_an_engine(engine_that: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine writes there may be of the conversation."""
    monkeypatch.setattr(live, "BYTES_OF_A_LOG", 1000)
    before = os.umask(0o022)
    try:
        engine = engine_that("""[os.write(2, b"x" * 900 + b"\\n") for _ in range(3)]""")
        await engine.start()
        await all_events(engine)
        await engine.close()
    finally:
        os.umask(before)
    files = list(engine.log.parent.iterdir())
    assert len(files) > 1 and {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert engine.log.parent.stat().st_mode & 0o777 == 0o700
