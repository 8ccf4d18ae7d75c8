"""`--engine COMMAND`: what is refused, and what the command is sent."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat.engine_command import EngineCommand
from ladechat.engine_options import EngineOptions
from ladechat.preferences import SettingsFile
from ladechat.protocol import Configure, Settings
from ladechat.serve import commands
from ladechat.shell import ask, cli, race
from tests.command_line import check_refused, check_runs
from tests.fake_engine import ANSWER
from tests.waiting import patience

ROOT = Path(__file__).parent.parent
QUESTION = "What is it?"
COMMAND = f"{shlex.quote(sys.executable)} -m ladechat engine"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[EngineOptions]:
    """With what `ask` would have started an engine; the settings file is empty."""
    calls: list[EngineOptions] = []

    def run(options: EngineOptions, *_: object, **__: object) -> int:
        calls.append(options)
        return 0

    monkeypatch.setattr(ask, "run", run)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return calls


def write_settings(text: str) -> None:
    path = SettingsFile().path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def of(options: EngineOptions) -> EngineCommand:
    assert options.engine_command is not None
    return options.engine_command


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "--engine is empty; give a command, as in --engine"),
        ("''", "--engine is empty"),
        ("ssh 'gpu-box", "cannot be split into words (No closing quotation)"),
        ("no-such-program --model demo", "begins with 'no-such-program', and there is no such program here"),
        ("/dev/null", "there is no such program"),
        ("sh -c '\0'", "zero byte"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_a_sentence(
    command: str, says: str, asked: list[EngineOptions]
) -> None:
    check_refused("ask", QUESTION, "--engine", command, says=says)
    check_refused("race", QUESTION, "--engine", command, says=says)
    assert asked == []


@pytest.mark.parametrize("option", ["--model=demo", "--device=cpu", "--dtype=float32", "--warm-start", "--pool=x"])
def test_an_option_of_an_engine_of_this_machine_beside_it_is_refused(option: str, asked: list[EngineOptions]) -> None:
    name = option.partition("=")[0]
    check_refused("ask", QUESTION, "--engine", COMMAND, option, says=(f"{name} is for", "write it into the command"))
    assert asked == []


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ([], Configure()),
        (["-T", "0.5", "--seed", "7"], Configure(temperature=0.5, seed=7)),
        (["-T", "0"], Configure(temperature=0.0)),
        (["--decoder", "suffix"], Configure(decoder="suffix")),
        (["-W", "7"], Configure(decoder="lookahead", parameters={"window": 7})),
        (["--auto"], Configure(decoder="auto")),
    ],
)
def test_only_settings_that_were_given_are_sent(
    options: list[str], sent: Configure, asked: list[EngineOptions]
) -> None:
    check_runs("ask", QUESTION, "--engine", COMMAND, *options)
    assert of(asked[0]) == EngineCommand(COMMAND, (sys.executable, "-m", "ladechat", "engine"), sent)


def test_settings_of_the_file_are_sent_too_and_options_win(asked: list[EngineOptions]) -> None:
    write_settings('model = "owner/x"\ndecoder = "suffix"\ntemperature = 0.0\ntop_k = 3\n[parameters]\nnodes = 4\n')
    check_runs("ask", QUESTION, "--engine", COMMAND, "--top-k", "5")
    assert of(asked[0]).change == Configure(decoder="suffix", parameters={"nodes": 4}, temperature=0.0, top_k=5)


def test_the_file_may_name_the_command_and_a_model_on_the_command_line_wins(asked: list[EngineOptions]) -> None:
    write_settings(f"engine = '''{COMMAND}'''\nmodel = \"owner/x\"\n")
    check_runs("ask", QUESTION)
    check_runs("ask", QUESTION, "--model", "demo")
    assert of(asked[0]).text == COMMAND and asked[1].engine_command is None


def test_a_command_of_the_file_that_cannot_be_run_is_refused_where_it_is_used_alone(asked: list[EngineOptions]) -> None:
    write_settings('engine = "no-such-program"\n')
    check_refused("ask", QUESTION, says=("engine in settings.toml", "no-such-program"))
    check_runs("ask", QUESTION, "--model", "demo")
    check_runs("bench", "--help")


def test_the_next_engine_is_sent_all_that_was_requested_by_then() -> None:
    options = EngineOptions(engine_command=EngineCommand("x", ("x",), Configure(top_k=3)))
    assert of(options.with_settings(options.settings)).change == Configure(top_k=3)
    change = of(options.with_settings(Settings(decoder="suffix", temperature=0.7))).change
    assert (change.decoder, change.temperature, change.top_k) == ("suffix", 0.7, 0)


def test_a_browsers_tab_gets_the_command_and_the_given_settings(
    asked: list[EngineOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[list[str]] = []

    def run(app: list[str], *_: object, **__: object) -> int:
        served.append(app)
        return 0

    monkeypatch.setattr(commands, "_run", run)
    check_runs("serve", "--port", "0", "--engine", COMMAND, "-T", "0.5", "-W", "7")
    arguments = served[0][served[0].index("--engine") :]
    check_runs("ask", QUESTION, *arguments)
    assert of(asked[0]).change == Configure(decoder="lookahead", parameters={"window": 7}, temperature=0.5)


def test_a_race_in_a_command_that_ends_says_so(asked: list[EngineOptions]) -> None:
    result = CliRunner().invoke(cli.app, ["race", QUESTION, "--engine", "sh -c 'echo hello'"])
    assert result.exit_code == race.FAILED
    assert "before a word of the protocol: hello." in result.stderr and result.stderr.count("\n") == 1


def test_a_command_answers_ask_and_race() -> None:
    engine = f"env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m tests.fake_engine_process"
    asked = program("ask", QUESTION, "--engine", f"{engine} nowhere engine")
    assert (asked.returncode, asked.stdout) == (0, f"{ANSWER}\n")
    names = ("--decoders", "autoregressive,suffix")
    raced = program("race", QUESTION, "--engine", f"{engine} nowhere engine", *names)
    assert raced.returncode == 0 and "tokens identical" in raced.stdout


def program(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """`ladechat` as a process, with the settings of nobody."""
    command = [sys.executable, "-m", "ladechat", *arguments]
    return subprocess.run(command, input="", capture_output=True, text=True, timeout=patience(), check=False)
