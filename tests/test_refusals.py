"""What the command line refuses: in a sentence, whatever was typed, and with nothing that would steer a terminal."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat import protocol
from ladechat.protocol import MOST_TEXT, Failed, Message, decode_command, decode_event, encode
from ladechat.shell import cli

RAW_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
STEERING = "\x1b]0;title\x07\x1b[31m\x9b1m\u202ered"


@pytest.mark.parametrize(
    "arguments",
    [
        [STEERING],
        ["ask", f"--{STEERING}"],
        ["ask", "a", STEERING],
        ["ask", "a", "--top-k", STEERING],
        ["ask", "a", "--decoder", STEERING],
        ["ask", "a", "--quantize", STEERING],
        ["replay", STEERING],
        ["replay", "--idle-limit", STEERING, "a"],
        ["export", STEERING, "a.md"],
        ["export", "a", STEERING],
        ["export", "a", "a.md", "--format", STEERING],
        ["export", "a", "a.svg", "--size", STEERING],
        ["export", "a", f"{STEERING}/a.md"],
        ["serve", STEERING],
        ["serve", "--host", STEERING],
        ["serve", "--model", f"./{STEERING}"],
        ["bench", "--questions", STEERING],
        ["bench", "--questions", f"{STEERING}.toml"],
        ["bench", "--settings", STEERING],
        ["bench", "--decoders", STEERING],
        [f"--record={STEERING}/"],
    ],
    ids=lambda value: ascii(" ".join(value)).replace("/", "-")[:60],
)
def test_a_refusal_repeats_what_was_typed_and_steers_no_terminal(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 2, result.output
    assert not RAW_CONTROLS.search(result.output)


@pytest.mark.parametrize("option", ["--top-k", "--max-new-tokens", "--tensor-parallel", "--seed", "--window"])
def test_a_number_of_400_digits_is_refused_by_its_option(option: str) -> None:
    result = CliRunner().invoke(cli.app, ["ask", "a", option, "9" * 400])
    assert result.exit_code == 2 and option in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_question_without_end_is_refused() -> None:
    result = CliRunner().invoke(cli.app, ["ask"], input="x" * (MOST_TEXT + 10))
    assert result.exit_code == 2 and "more than 2,000,000 characters" in result.stderr


def test_what_is_no_character_travels_as_a_mark_in_its_place() -> None:
    """Python has half a surrogate pair for each byte of a file name that is no UTF-8."""
    failed = Failed(code="model_not_found", message="There is no \udc80 here, but an \ud83d\ude42.", hint="")
    event = decode_event(encode(failed))
    assert isinstance(event, Failed) and event.message == "There is no \ufffd here, but an 🙂."
    asked = protocol.Generate(turn=1, messages=[Message(role="user", content="\udc80")])
    command = decode_command(encode(asked))
    assert isinstance(command, protocol.Generate) and command.messages[0].content == "\ufffd"


REFUSED = """
import json, sys
from typer.testing import CliRunner
from ladechat.shell.cli import app

codes = [CliRunner().invoke(app, line).exit_code for line in json.loads(sys.argv[1])]
print(json.dumps([codes, sorted({"torch", "transformers", "textual"} & sys.modules.keys())]))
"""


def test_what_is_refused_is_refused_before_torch_is_imported_or_a_screen(tmp_path: Path) -> None:
    """A mistyped option is answered at once."""
    lines = [
        ["ask", "a", "--window", "0"],
        ["engine", "--decoder", "magic"],
        ["race", "a", "--decoders", "magic"],
        ["replay", "nowhere"],
        ["export", "nowhere", "a.md"],
        ["learn", "--no-such"],
        ["serve", "--tabs", "0"],
        ["bench", "--questions", "nothing"],
        ["bench", "--model", "./nowhere"],
        ["tune", "--quantize", "int3"],
        ["tune", "--model", "./nowhere"],
        ["train", "transfer", "--out", "a.bin"],
        ["train", "medusa", "--model", "./nowhere", "--out", "a.safetensors"],
        ["train", "sweep", "--out", "a.json", "--layers", "a,b"],
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-c", REFUSED, json.dumps(lines)], capture_output=True, text=True, cwd=tmp_path
    )
    codes, imported = json.loads(done.stdout)
    assert all(codes) and imported == []
