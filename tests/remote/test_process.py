"""The engine of a server as a process of its own, asked by the commands and by the app."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ladechat.engine_options import EngineOptions, found_anywhere
from ladechat.protocol import Ready, Settings, Step, decode_event
from ladechat.server_address import AddressRefused
from ladechat.session.change import settings_for
from ladechat.session.recordings.recording import Recording
from tests.remote.scripted_server import CUT, OPENAI, Reply, ScriptedServer, openai_stream, page, pages_of, vllm_stream
from tests.terminal.conftest import Start, start
from tests.terminal.tmux import words
from tests.waiting import patience

KEY = "sk-geheim-0123456789-abcdef"
TOKENS = [[(1, "The")], [(2, " pool"), (3, " keeps"), (4, " n-grams.")]]
STREAM = vllm_stream(*TOKENS, accepted=[2], drafted=5)
__all__ = ["start"]  # the fixture of the terminal's tests


def ladechat(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ladechat", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(
        command, input="", capture_output=True, text=True, timeout=patience(), check=False, env=variables
    )


def test_what_asks_a_server_imports_no_model() -> None:
    code = "import sys, ladechat.remote.server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "numpy", "tokenizers", "textual", "ladechat.engine.server"} & set(loaded)


def test_ask_prints_the_answer_and_the_figures() -> None:
    with ScriptedServer(None, STREAM) as server:
        asked = ladechat("ask", "--server", server.url, "Hi?")
    assert (asked.returncode, asked.stdout) == (0, "The pool keeps n-grams.\n")
    assert "4 tokens · 2 passes · 2.00 tokens a pass · 2 of 5 drafts accepted" in asked.stderr
    assert "vLLM 0.32.0 at 127.0.0.1" in asked.stderr


def test_of_a_server_that_tells_no_passes_ask_counts_chunks() -> None:
    with ScriptedServer(OPENAI, openai_stream("Good ", "day.", prompt_tokens=5, completion_tokens=3)) as server:
        asked = ladechat("ask", "--model", server.url, "Hi?")
    assert asked.stdout == "Good day.\n" and "3 tokens · 2 chunks" in asked.stderr and "pass" not in asked.stderr


def test_ask_prints_what_came_before_a_fault_and_says_it() -> None:
    with ScriptedServer(None, [*STREAM[:2], CUT]) as server:
        asked = ladechat("ask", "--server", server.url, "Hi?")
    assert (asked.returncode, asked.stdout) == (1, "The\n")
    assert "broke off" in asked.stderr and "Traceback" not in asked.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ask", "--server", "http://127.0.0.1:1", "Hi?"), "127.0.0.1:1 cannot be reached"),
        (("ask", "--server", "localhost:8000", "Hi?"), "begins with http:// or https://"),
        (("ask", "--server", "http://me:hunter2@host", "Hi?"), "has a name or a password in it"),
        (("ask", "--server", "http://host", "--decoder", "suffix", "Hi?"), "a server decodes as it was started"),
        (("bench", "--server", "http://127.0.0.1:1"), "127.0.0.1:1 cannot be reached"),
        (("bench", "--server", "http://host", "--dtype", "float16"), "--dtype is for decoders of this program"),
        (("bench", "--server", "http://host", "--questions", "none"), "There are no questions 'none'"),
        (("tune", "--model", "http://host"), "ladechat bench --server URL"),
        (("race", "--server", "http://host", "--decoders", "auto,suffix", "Hi?"), "leave out one of them"),
        (("race", *["--server", "http://host"] * 5, "Hi?"), "2 to 4 servers, not 5"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(arguments: tuple[str, ...], says: str) -> None:
    refused = ladechat(*arguments)
    assert refused.returncode and says in " ".join(refused.stderr.split())
    assert "hunter2" not in refused.stdout + refused.stderr and "Traceback" not in refused.stderr


def test_two_servers_race() -> None:
    one_by_one = vllm_stream(*([token] for chunk in TOKENS for token in chunk))
    with ScriptedServer(None, STREAM) as ours, ScriptedServer(None, one_by_one) as plain:
        raced = ladechat("race", "--server", ours.url, "--server", plain.url, "Hi?")
    lines = [line.split() for line in raced.stdout.splitlines()]
    assert lines[0][0] == "server"
    assert [line[1:4] for line in lines[1:3]] == [["4", "2", "2.00"], ["4", "4", "1.00"]]
    assert "4 of 4 tokens identical" in raced.stdout


def test_servers_that_tell_no_tokens_are_compared_by_their_text() -> None:
    day, dog = openai_stream("Good ", "day."), openai_stream("Good dog")
    with ScriptedServer(OPENAI, day) as one, ScriptedServer(OPENAI, dog) as other:
        raced = ladechat("race", "--server", one.url, "--server", other.url, "Hi?")
        alone = ladechat("race", "--server", one.url, "Hi?")
    assert "✗ The first difference is after 6 characters." in raced.stdout
    assert "✓ 9 of 9 characters identical" in alone.stdout and "(2)" in alone.stdout


def test_the_bench_asks_servers_its_questions_and_sums_up(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text('prompts = ["Hi?", ["Why?", "And then?"]]')
    arguments = ("--questions", str(tmp_path / "two.toml"), "--rounds", "1", "--json", str(tmp_path / "figures.json"))
    day = openai_stream("The pool ", "keeps n-grams.", prompt_tokens=5, completion_tokens=5)
    with ScriptedServer(None, STREAM) as vllm, ScriptedServer(OPENAI, day) as other:
        measured = ladechat("bench", "--server", vllm.url, "--server", other.url, *arguments)
        assert [chat["messages"][-1]["content"] for chat in other.chats] == ["Hi?", "Why?"]
    lines = [line.split() for line in measured.stdout.splitlines()]
    assert lines[1][1:4] == ["8", "4", "2.00"] and lines[2][1:4] == ["10", "–", "–"]
    assert "2 of 2 questions: all texts equal" in measured.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())["servers"]
    assert [one["tokens"] for one in figures] == [8, 10]


def test_a_key_goes_to_the_server_that_it_is_meant_for_and_to_no_other() -> None:
    with ScriptedServer(None, STREAM) as named, ScriptedServer(None, STREAM) as other:
        keys = {"LADECHAT_SERVER_KEY": KEY, "OPENAI_API_KEY": "sk-of-another"}
        ladechat("race", "--server", named.url, "--server", other.url, "Hi?", **keys)
        assert all(one.headers["authorization"] == f"Bearer {KEY}" for one in named.requests)
        assert not any("authorization" in one.headers for one in other.requests)


def test_a_keyring_has_a_key_for_each_server(tmp_path: Path) -> None:
    (tmp_path / "keyring.py").write_text("def get_password(service, name):\n    return f'{service}-{name}'\n")
    with ScriptedServer(None, STREAM) as server:
        asked = ladechat("ask", "--server", server.url, "Hi?", PYTHONPATH=f"{Path.cwd()}{os.pathsep}{tmp_path}")
        assert asked.returncode == 0
        assert server.requests[0].headers["authorization"] == f"Bearer ladechat-http://127.0.0.1:{server.port}"


def test_names_of_models_on_servers() -> None:
    assert found_anywhere("http://Host:8000 a/b") == "http://host:8000/v1 a/b"
    with pytest.raises(AddressRefused):
        found_anywhere("http://me:pw@host")
    options = EngineOptions().with_model("http://h/v1 a/b")
    assert (options.server, options.model, options.named) == ("http://h/v1", "a/b", "http://h/v1 a/b")
    assert list(options.arguments())[:4] == ["--server", "http://h/v1", "--model", "a/b"]
    assert "--decoder" not in options.arguments()
    lookahead = Settings(decoder="lookahead")
    assert settings_for("http://h/v1", lookahead, "demo").decoder == "server"
    assert settings_for("org/model", Settings(decoder="server"), "http://h/v1").decoder == "auto"


def test_the_only_model_of_the_settings_file_may_be_on_a_server(tmp_path: Path) -> None:
    with ScriptedServer(pages_of("vllm", "small", "large"), STREAM) as server:
        (tmp_path / "ladechat").mkdir()
        (tmp_path / "ladechat" / "settings.toml").write_text(f'model = "{server.url} large"\n')
        asked = ladechat("ask", "Hi?", "--json", XDG_CONFIG_HOME=str(tmp_path))
        events = [decode_event(line.encode()) for line in asked.stdout.splitlines()]
        assert [event.model for event in events if isinstance(event, Ready)] == ["large"]
        other = ladechat("ask", "--server", server.url, "Hi?", XDG_CONFIG_HOME=str(tmp_path))
        assert "has 2 models: small, large" in other.stderr


def command_lines() -> str:
    """Those of all processes."""
    found = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found += path.read_text(encoding="utf-8", errors="replace")
    return found


def files_with(text: str, *folders: Path) -> list[Path]:
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [path for path in files if text.encode() in path.read_bytes()]


@pytest.mark.terminal
def test_a_key_is_found_nowhere(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in recordings, logs, settings, conversations, lists of processes, nor on the screen, whoever repeats it."""
    for name in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("LADECHAT_SERVER_KEY", KEY)
    repeats = vllm_stream([(1, "Your"), (2, " key"), (3, f" is {KEY}.")])
    refuses = page({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)
    recording = tmp_path / "talk.ladechat.jsonl"
    with ScriptedServer(None, repeats, refuses, Reply([b"oops " + KEY.encode()], 500), STREAM) as server:
        terminal = start((100, 30), "--server", server.url, "--record", str(recording))
        seen, commands = "", ""
        terminal.wait_for("The server", lambda screen: "ready" in screen)
        for waits_for in (r"1 pass\b", "refuses the key", r"failed \(500", r"2 passes"):
            terminal.ask("What is my key?")
            seen += terminal.wait_for(waits_for, re.compile(waits_for).search)
            commands += command_lines()
            terminal.press("C-u")
        terminal.type("/save")
        terminal.press("Enter")
        seen += terminal.wait_for("The settings", lambda screen: "begins with these settings" in words(screen))
        terminal.press("C-q")
        terminal.wait_for_exit()
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert any(isinstance(event, Step) for event in Recording.read(recording).events)
    assert "‹key›" in seen and KEY not in seen and KEY not in commands
    assert (tmp_path / "config" / "ladechat" / "settings.toml").read_text()
    assert files_with(KEY, tmp_path) == []
