"""Whatever is typed behind `ladechat`: it is refused in a sentence, and nothing of it steers the terminal.

Each command that would really begin something is kept from it: what is tried is how it is read. A run that fails names
its seed: `command(seed)` makes the same line again.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from ladechat.bench.options import BenchRefused
from ladechat.engine import server
from ladechat.shell import ask, cli
from tests.waiting import patience

RAW_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COMMANDS = ["", "ask", "replay", "engine", "bench", "tune", "asK", "--", "-"]
OPTIONS = [
    "--model", "-m", "--device", "--dtype", "--quantize", "--pool", "--maps", "--layer-search", "--tensor-parallel",
    "--lookahead-parallel",
    "--decoder", "--auto", "--no-auto", "--window", "-W", "--ngram", "-N", "--guesses", "-G", "--nodes",
    "--pool-prompt", "--carriers", "--no-pool-accepted", "--temperature", "-T", "--top-k", "--top-p", "-P", "--min-p",
    "--repetition-penalty", "--seed", "--max-new-tokens", "--system", "--record", "--json", "--idle-limit", "-i",
    "--real-time",
    "--decoders", "--settings", "--questions", "--rounds", "--plot", "--version", "--help", "--", "-", "--no-such",
    "-Z", "--window=", "--record=",
]  # fmt: skip
VALUES = [
    "", " ", "0", "-1", "1", "5", "1.5", "nan", "inf", "-inf", "1e999", "-0", "9" * 400, "9" * 5000, "0x10", "1_000",
    "²", "٣", "true", "None", "demo", "auto", "lookahead", "5,3,5", "5,3", ",", "5;3;5", "chat", "chat,", ".toml",
    "nothing.toml", "/dev/null", "/dev/zero", "/", ".", "..", "~", "~nobody-of-this-name", "a" * 5000, "a/" * 2500,
    "\x1b[31m", "\x1b]0;title\x07", "\x9b1m", "\x08\x08", "\r", "\n", "\u202e", "\u2066", "\u2028", "\ud800", "\udc80",
    "漢字", "🙂", "%s%n", "{}", "{0.__class__}", "[bold]", "[/]", "'", '"', "\\", "$(id)", "--window", "cpu", "float32",
    "int8", "cuda:99", "meta",
]  # fmt: skip


BEGINS = "Nothing is measured here."


def command(seed: int) -> list[str]:
    """A line with up to eight words, most of which belong nowhere."""
    random = Random(seed)
    words = [random.choice(COMMANDS)] if random.random() < 0.9 else []
    for _ in range(random.randint(0, 7)):
        words.append(random.choice(OPTIONS if random.random() < 0.5 else VALUES))
        if random.random() < 0.25:
            words[-1] += random.choice(VALUES)
    return [word for word in words if word != "" or random.random() < 0.5]


@pytest.fixture
def nothing_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that is read without a complaint does nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ask, "run", lambda *_, **__: 0)
    monkeypatch.setattr(server, "serve", lambda *_: 0)
    monkeypatch.setattr("ladechat.bench.tune.run", lambda *_: 0)
    monkeypatch.setattr("ladechat.bench.command._measured", not_measured)


def not_measured(*_: object) -> NoReturn:
    raise BenchRefused(BEGINS)


def check(seed: int) -> None:
    words = command(seed)
    result = CliRunner().invoke(cli.app, words, input="")
    told = f"seed {seed}: {words!a}\n{result.output}"
    assert result.exception is None or isinstance(result.exception, SystemExit), told
    assert result.exit_code in (0, 2), told
    assert "Traceback" not in result.output, told
    assert not RAW_CONTROLS.search(result.output), told
    assert result.exit_code == 0 or result.stderr.strip(), told


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.full) for first in range(1000, 2500, 100))]
)
def test_100_malformed_commands_are_refused_in_a_sentence(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


@pytest.mark.full
@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize("seed", range(3000, 3040))
def test_a_malformed_command_ends_as_a_process_too(seed: int, tmp_path: Path) -> None:
    words = command(seed)
    read = CliRunner().invoke(cli.app, words, input="")
    if read.exit_code == 0 or BEGINS in read.output:
        pytest.skip("nothing is wrong with this one")
    run = [os.fsencode(word.replace("\ud800", "")) for word in (sys.executable, "-m", "ladechat", *words)]
    ended = subprocess.run(
        run, stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path, timeout=patience(), check=False
    )
    told = ended.stderr.decode(errors="replace")
    assert ended.returncode != 0 and "Traceback" not in told and not RAW_CONTROLS.search(told), (words, told[-2000:])
