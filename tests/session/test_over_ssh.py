"""An engine over ssh: a real sshd on loopback, with a configuration, keys and a port that only these tests use."""

import asyncio
import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from ladechat.engine_command import EngineCommand, split
from ladechat.protocol import Event, Failed, Pong, Ready, Settings, Step, TurnFinished, encode
from ladechat.session.command_engine import CommandEngine
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import State
from ladechat.session.session import Session
from tests.engine.wire import ROOT
from tests.session.streams import HEADER
from tests.terminal.conftest import SLOW, Start, start as start
from tests.terminal.tmux import shows, still_runs, words
from tests.waiting import until, wait_for

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

QUESTION = "How does lookahead decoding work?"
MARK = "LADECHAT_TEST_OVER_SSH"
ENGINE = f"{shlex.quote(sys.executable)} -P -m ladechat engine"
"""The bundled model's."""


@dataclass
class Host:
    """A machine to be reached by ssh, which is this one.

    Attributes:
        ssh: the command that reaches it; what to run there follows.
        mark: is in the environment of what runs there.
        server: its sshd.
    """

    ssh: str
    mark: str
    server: "subprocess.Popen[bytes]"

    def engine(self, command: str, logs: Path, after: str = "") -> CommandEngine:
        """An engine there; `after` is what its output goes through on this side."""
        text = self.runs(command, after)
        return CommandEngine(EngineCommand(text, split(text)), logs=logs)

    def runs(self, command: str, after: str = "") -> str:
        """The command line that runs a command there."""
        home = " ".join(f"{name}={shlex.quote(value)}" for name, value in os.environ.items() if name.startswith("XDG"))
        environment = f"{home} {MARK}={shlex.quote(self.mark)} OMP_NUM_THREADS=1 PYTHONPATH=."
        there = f"cd {shlex.quote(str(ROOT))} && {environment} exec {command}"
        text = f"{self.ssh} {shlex.quote(there)}"
        return f"sh -c {shlex.quote(f'{text} {after}')}" if after else text

    def engines(self) -> list[int]:
        """The processes that run there now, as far as these tests have started them."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
        return found

    def break_links(self) -> None:
        """Kill the processes that serve its connections, as when a machine goes away."""
        for session in psutil.Process(self.server.pid).children(recursive=True):
            if session.name().startswith("sshd"):
                session.kill()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server that lets only the key of this test in, and whose own key only this test knows."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        assert not os.environ.get("LADECHAT_TESTS_NEED_SSHD"), "sshd is missing"
        pytest.skip("needs sshd: tools/sshd.sh installs it on Debian and Ubuntu")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'authorized'}\n"
        f"PidFile {folder / 'pid'}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    if os.geteuid() == 0:  # where a server of root's leaves its rights
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = folder / "log"
    server = subprocess.Popen([sshd, "-D", "-E", log, "-f", folder / "sshd_config"], start_new_session=True)
    try:
        wait_for(lambda: log.exists() and "listening" in log.read_text(), lambda: log.read_text())
        options = f"-F none -p {port} -i {folder / 'user'} -o IdentitiesOnly=yes -o BatchMode=yes"
        known = f"-o UserKnownHostsFile={folder / 'known'} -o StrictHostKeyChecking=yes"
        yield Host(f"ssh -T {options} {known} {getuser()}@127.0.0.1", str(folder), server)
    finally:
        for process in (*psutil.Process(server.pid).children(recursive=True), server):
            process.kill()
        server.wait()


def conversation(screen: str) -> str:
    """The conversation on a screen of 80 columns, in one line, without the panels beside it."""
    return words("\n".join(line[:40] for line in screen.splitlines()))


class Talk:
    """A session with an engine there, and what it has shown."""

    def __init__(self, host: Host, logs: Path, after: str = "") -> None:
        self.events: list[Event] = []
        conversation = Conversation(None, 64)
        self.session = Session(
            lambda _: host.engine(ENGINE, logs, after), Settings(), conversation, named_by_engine=True
        )
        self.session.show = self.events.extend
        self.session.start()

    async def until(self, kind: type[Event], number: int = 1) -> None:
        def came() -> bool:
            self.session.frame()
            assert not any(isinstance(event, Failed) and kind is not Failed for event in self.events)
            return sum(isinstance(event, kind) for event in self.events) >= number

        await until(came, shows=lambda: [type(event).__name__ for event in self.events])

    def latencies(self) -> list[float]:
        """The measured latencies of its link, in milliseconds."""
        self.session.frame()
        return [event.round_trip_ms for event in self.events if isinstance(event, Pong) and event.round_trip_ms]

    def text(self) -> str:
        """What its answers are, in one."""
        return "".join(piece for event in self.events if isinstance(event, Step) for piece in event.pieces)


async def test_an_answer_over_ssh_is_that_of_an_engine_here_and_no_process_is_left(host: Host, tmp_path: Path) -> None:
    talk = Talk(host, tmp_path / "logs")
    talk.session.ask(QUESTION)
    await talk.until(TurnFinished)
    assert talk.session.conversation.model == "demo"
    here = [*ENGINE.replace("ladechat engine", "ladechat ask").split(), QUESTION, "--max-new-tokens", "64"]
    plain = await asyncio.create_subprocess_exec(*here, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert talk.text().strip() == (await plain.communicate())[0].decode().strip()
    await until(lambda: talk.latencies())
    await talk.session.close()
    await until(lambda: not host.engines())


async def test_a_killed_link_in_mid_answer_keeps_what_has_come_and_the_next_one_goes_on(
    host: Host, tmp_path: Path
) -> None:
    whole = Talk(host, tmp_path / "logs")
    whole.session.ask(QUESTION)
    await whole.until(TurnFinished)
    await whole.session.close()

    talk = Talk(host, tmp_path / "logs")
    talk.session.set_pace(talk.session.pace.slow_motion())
    talk.session.ask(QUESTION)
    await talk.until(Step, 2)
    host.break_links()
    await talk.until(Failed)
    why = next(event for event in talk.events if isinstance(event, Failed))
    assert "The engine's command has ended (exit status 255): " in why.message and "losed" in why.message
    assert talk.session.state is State.ENDED
    await until(lambda: not host.engines())

    came = talk.text()
    assert [message.content for message in talk.session.conversation.messages] == [QUESTION, came]
    talk.events.clear()
    talk.session.set_pace(talk.session.pace.slow_motion())
    assert talk.session.restart()
    await talk.until(Ready)
    talk.session.go_on()
    await talk.until(TurnFinished)
    assert came + talk.text() == whole.text()
    await talk.session.close()
    await until(lambda: not host.engines())


async def test_another_version_at_the_other_end_is_refused_in_a_sentence(host: Host, tmp_path: Path) -> None:
    header = encode(replace(HEADER, version="9.0", program="ladechat 7.0")).decode().strip()
    engine = host.engine(f"echo {shlex.quote(header)}", tmp_path)
    await engine.start()
    (failed,) = [event async for event in engine.events()]
    await engine.close()
    assert isinstance(failed, Failed) and failed.fatal
    assert "version 9.0 of the protocol (ladechat 7.0)" in failed.message and failed.hint


@pytest.mark.parametrize(
    ("command", "words"),
    [("no-such-program", "no-such-program"), ("sh -c 'echo Welcome; exit 3'", "Welcome")],
    ids=["nothing there", "a greeting alone"],
)
async def test_what_is_no_engine_there_is_reported_with_what_it_said(
    host: Host, tmp_path: Path, command: str, words: str
) -> None:
    engine = host.engine(command, tmp_path)
    await engine.start()
    (failed,) = [event async for event in engine.events()]
    await engine.close()
    assert isinstance(failed, Failed) and "before a word of the protocol: " in failed.message
    assert words in failed.message


async def test_a_host_key_that_is_not_known_is_refused_and_that_is_said(host: Host, tmp_path: Path) -> None:
    (tmp_path / "ssh" / "known").write_text("")
    engine = host.engine(ENGINE, tmp_path)
    await engine.start()
    (failed,) = [event async for event in engine.events()]
    await engine.close()
    assert isinstance(failed, Failed) and "(exit status 255)" in failed.message and "ailed" in failed.message


async def test_over_a_slow_link_the_same_text_comes_and_its_latency_is_measured(host: Host, tmp_path: Path) -> None:
    slow = f"| env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m tests.slow_link 512 0.02"
    texts = []
    for after in ("", slow):
        talk = Talk(host, tmp_path / "logs", after)
        talk.session.ask(QUESTION)
        await talk.until(TurnFinished)
        await until(lambda: talk.latencies())
        texts.append(talk.text())
        await talk.session.close()
    assert texts[0] == texts[1] != ""
    await until(lambda: not host.engines())


@pytest.mark.terminal
def test_on_the_screen_a_lost_host_and_going_on(host: Host, start: Start) -> None:
    terminal = start((80, 24), "--engine", host.runs(" ".join((ENGINE, *map(shlex.quote, SLOW)))))
    terminal.wait_for("The link", shows("link "), shows("ready"))
    terminal.ask(QUESTION)
    terminal.wait_for("Some passes", shows("tokens a pass"))
    host.break_links()
    terminal.wait_for(
        "What happened", lambda screen: "exit status 255" in conversation(screen), shows("F5 starts it again")
    )
    terminal.press("F5")
    terminal.wait_for("The next engine", shows("link "), shows("ready"))
    terminal.ask("/continue")
    terminal.wait_for("More passes", shows("answering"))
    left = host.engines()
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    wait_for(lambda: not any(map(still_runs, left)))
