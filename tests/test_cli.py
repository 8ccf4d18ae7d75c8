"""The command line: answers on standard output, everything else on standard error, and exit codes that tell."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from ladechat import catalog, protocol
from ladechat.engine_options import EngineOptions
from ladechat.options import chosen_decoder
from ladechat.protocol import Message, Settings
from ladechat.session.conversations.conversation import Conversation
from ladechat.shell import ask, cli
from tests.command_line import check_refused, check_runs

QUESTION = "What is the n-gram pool?"


# --- what is wrong is said in one sentence ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--window", "0"], "1 to 64"),
        (["-W", "65"], "1 to 64"),
        (["--ngram", "1"], "2 to 16"),
        (["-G", "-1"], "0 to 64"),
        (["--decoder", "jacobi", "-W", "65"], "W has to be from 1 to 64, not 65; set it with --window."),
        (["--decoder", "jacobi", "--nodes", "3"], "jacobi has no such setting; leave it out, or choose another"),
        (["--decoder", "auto", "-W", "3"], "--window is for the decoders lookahead, prompt_lookup and jacobi"),
        (["--auto", "-W", "3"], "--window is for the decoders"),
        (["--decoder", "suffix", "-W", "3"], "suffix has no such setting"),
        (["--decoder", "suffix", "--no-pool-prompt"], "--pool-prompt is for the decoder lookahead, and suffix"),
        (["--decoder", "autoregressive", "-N", "3"], "autoregressive has no such setting"),
        (["--model", "owner/x", "--nodes", "3"], "auto has no such setting"),
        (["-W", "3", "--nodes", "3"], "lookahead has no such setting"),
        (["--decoder", "magic"], "use --decoder auto, lookahead, "),
        (["--auto", "--decoder", "jacobi"], "--auto and --decoder jacobi contradict each other"),
        (["--no-auto", "--decoder", "suffix"], "--no-auto and --decoder suffix contradict each other"),
        (["--no-auto", "--decoder", "auto"], "--no-auto and --decoder auto contradict each other"),
        (["--temperature", "-0.1"], "0 to 5"),
        (["-T", "nan"], "0 to 5"),
        (["--top-p", "0"], "at most 1"),
        (["--tensor-parallel", "0"], "among 0 GPUs"),
        (["--tensor-parallel", "2", "--quantize", "int8"], "leave out --quantize or --tensor-parallel"),
        (["--lookahead-parallel", "0"], "among 0 GPUs"),
        (["--lookahead-parallel", "2", "--quantize", "int8"], "leave out --quantize or --lookahead-parallel"),
        (["--lookahead-parallel", "2", "--tensor-parallel", "2"], "cannot be combined; leave one of them out"),
        (["--layer-search", "-1"], "from 0 to 86,400 seconds, not -1"),
        (["--layer-search", "nan"], "from 0 to 86,400 seconds"),
        (["--quantize", "int3"], "use --quantize int8 or int4"),
        (["--min-p", "1"], "up to, but not, 1, not 1.0; set it with --min-p"),
        (["--top-k", "-1"], "top_k has to be a whole number, 0 or more, not -1; set it with --top-k."),
        (["--repetition-penalty", "0"], "0.1 to 10"),
        (["--seed", "-3"], "a whole number, 0 or more, not -3"),
        (["--max-new-tokens", "0"], "a whole number from 1 on, not 0."),
        (["--max-new-tokens", "9" * 30], "is more than any model has use for"),
    ],
)
@pytest.mark.parametrize("command", [["ask", QUESTION], []], ids=["ask", "app"])
def test_a_value_out_of_range_is_a_usage_error_that_names_the_range(
    command: list[str], arguments: list[str], named: str
) -> None:
    check_refused(*command, *arguments, says=named)


@pytest.mark.parametrize(
    ("arguments", "typed", "named"),
    [
        (["ask", ""], None, "empty"),
        (["ask", "  \n"], None, "empty"),
        (["ask", "-"], "  ", "empty"),
        (["ask"], "", "empty"),
        (["ask", *QUESTION.split()], None, "quotation marks"),
        ([QUESTION], None, "ladechat ask"),
        ([], None, "ladechat ask"),
        (["--window", "9", "ask", QUESTION], None, "--window"),
    ],
    ids=str,
)
def test_a_question_that_is_none_or_stands_in_the_wrong_place_is_a_usage_error(
    arguments: list[str], typed: str | None, named: str
) -> None:
    check_refused(*arguments, says=named, typed=typed)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to try")
def test_help_on_a_full_disk_ends_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-P", "-m", "ladechat", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr and done.stderr.count("\n") == 1


def test_the_version_is_printed() -> None:
    assert check_runs("--version").stdout.startswith("ladechat ")


# --- which decoder ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "auto", "given", "decoder"),
    [
        (None, None, {}, "auto"),
        (None, True, {}, "auto"),
        (None, False, {}, "lookahead"),
        (None, None, {"window": 7}, "lookahead"),
        (None, None, {"guesses": 0}, "lookahead"),
        (None, None, {"pool_prompt": False}, "lookahead"),
        (None, None, {"nodes": 4}, "auto"),  # neither of the two has it
        (None, True, {"ngram": 4}, "auto"),
        ("auto", None, {"window": 7}, "auto"),
        ("auto", True, {}, "auto"),
        ("jacobi", None, {}, "jacobi"),
        ("lookahead", False, {}, "lookahead"),
        ("suffix", None, {"window": 7}, "suffix"),
    ],
)
def test_the_decoder_chooses_by_itself_unless_it_is_set_by_hand(
    named: str | None, auto: bool | None, given: dict[str, Any], decoder: str
) -> None:
    assert chosen_decoder(named, auto, given) == decoder


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Takes down the settings that an engine is started with."""
    settings: list[Settings] = []

    def serve(options: EngineOptions) -> int:
        settings.append(options.settings)
        return 0

    monkeypatch.setitem(sys.modules, "ladechat.engine.server", SimpleNamespace(serve=serve))
    return settings


def test_settings_hold_the_parameters_that_were_given_and_no_others(served: list[Settings]) -> None:
    check_runs("engine", "-W", "7", "--no-pool-prompt", "--nodes", "3")
    check_runs("engine")
    assert served[0].decoder == "lookahead"
    assert served[0].parameters == {"window": 7, "pool_prompt": False, "nodes": 3}  # another decoder may need the last
    assert served[1] == Settings(decoder="lookahead")


def test_the_bundled_model_shows_lookahead_and_any_other_is_decoded_as_fast_as_can_be(served: list[Settings]) -> None:
    for options in ([], ["--model", "owner/other"], ["--model", "owner/other", "--no-auto"], ["--auto"]):
        check_runs("engine", *options)
    assert [settings.decoder for settings in served] == ["lookahead", "auto", "lookahead", "auto"]


def test_what_starts_an_engine_is_what_it_is_started_with(served: list[Settings]) -> None:
    parameters: dict[str, protocol.Value] = {"window": 7, "pool_accepted": False, "nodes": 3}
    settings = Settings(decoder="jacobi", parameters=parameters, temperature=0.5, top_k=9, seed=4)
    arguments = EngineOptions(settings=settings).arguments()
    check_runs("engine", *arguments)
    assert served == [settings]


REGISTERS_A_TOY = """
import json, sys
from ladechat import catalog
from ladechat.protocol import DecoderInfo, Parameter

depth = Parameter("toy_depth", "D", "How deep it digs.", 4, 1, 9)
clash = Parameter("turbo", "T", "Whether it is fast.", False)
catalog.register(DecoderInfo(name="toy", label="a toy", help="Guesses wildly.", parameters=[depth, clash]))

from typer.testing import CliRunner
from ladechat.shell.cli import app

results = [CliRunner().invoke(app, line, env={"COLUMNS": "200"}) for line in json.loads(sys.argv[1])]
print(json.dumps([(result.exit_code, result.output) for result in results]))
"""


@pytest.fixture(scope="module")
def with_toy() -> dict[str, tuple[int, str]]:
    """What lines come to in a process that has registered a decoder before it imports the options."""
    lines = [[*command, "--help"] for command in ([], ["ask"], ["engine"], ["bench"])]
    lines.append(["ask", "--decoder", "toy", "--toy-depth", "10"])
    command = [sys.executable, "-c", REGISTERS_A_TOY, json.dumps(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return dict(zip(map(" ".join, lines), json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command", ["--help", "ask --help", "engine --help"], ids=["app", "ask", "engine"])
def test_a_decoder_of_the_catalog_has_its_options_with_no_edit_elsewhere(
    command: str, with_toy: dict[str, tuple[int, str]]
) -> None:
    shown = " ".join(with_toy[command][1].split())
    assert "toy: Guesses wildly." in shown
    assert "-D, --toy-depth" in shown and "toy: How deep it digs (1 to 9, default: 4)." in shown
    assert "--turbo / --no-turbo" in shown and "toy: Whether it is fast (default: off)." in shown
    assert "-T, --temperature" in shown


def test_a_decoder_of_the_catalog_takes_part_in_bench_and_its_ranges_hold(with_toy: dict[str, tuple[int, str]]) -> None:
    assert "toy" in with_toy["bench --help"][1]
    exit_code, refused = with_toy["ask --decoder toy --toy-depth 10"]
    assert exit_code == 2 and "D has to be from 1 to 9, not 10; set it with --toy-depth." in refused


def test_a_parameter_that_several_decoders_have_is_one_option_that_names_them() -> None:
    owners: dict[protocol.Parameter, list[str]] = {}
    for info in catalog.DECODERS.values():
        for parameter in info.parameters:
            if parameter.name == "nodes":
                owners.setdefault(parameter, []).append(info.name)
    help_text = " ".join(CliRunner().invoke(cli.app, ["ask", "--help"]).stdout.split())
    for parameter, names in owners.items():
        said = f"{', '.join(names)}: {parameter.help.removesuffix('.')} (1 to 64, default: {parameter.default})"
        assert len(names) > 1 and said in help_text


# --- the settings file ------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[EngineOptions, list[Message], int | None]]:
    """What `ask` would have asked, with a settings file of the user's."""
    calls: list[tuple[EngineOptions, list[Message], int | None]] = []

    def run(options: EngineOptions, conversation: Conversation, question: str, *, as_json: bool) -> int:
        command = conversation.ask(question)
        calls.append((options, command.messages, command.max_new_tokens))
        return 0

    monkeypatch.setattr(ask, "run", run)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "ladechat").mkdir()
    (tmp_path / "ladechat" / "settings.toml").write_text(
        'model = "owner/mine"\ndecoder = "suffix"\ntemperature = 0.5\nsystem = "Be brief."\n[parameters]\nnodes = 3\n'
    )
    return calls


def test_what_no_option_says_is_as_in_the_settings_file(asked: list[Any]) -> None:
    check_runs("ask", QUESTION)
    options, messages, limit = asked[0]
    assert (options.model, options.settings.temperature, limit) == ("owner/mine", 0.5, None)
    assert (options.settings.decoder, options.settings.parameters) == ("suffix", {"nodes": 3})
    assert messages[0].content == "Be brief."


@pytest.mark.parametrize(
    ("given", "decoder", "parameters"),
    [
        (["--nodes", "5"], "suffix", {"nodes": 5}),
        (["-W", "7"], "lookahead", {"nodes": 3, "window": 7}),
        (["--auto"], "auto", {"nodes": 3}),
        (["--decoder", "jacobi"], "jacobi", {"nodes": 3}),
    ],
)
def test_options_win_over_the_settings_file(
    given: list[str], decoder: str, parameters: dict[str, int], asked: list[Any]
) -> None:
    check_runs("ask", QUESTION, "--model", "demo", "-T", "0", "--system", "", *given)
    options, messages, _ = asked[0]
    assert (options.model, options.settings.temperature) == ("demo", 0.0)
    assert (options.settings.decoder, options.settings.parameters) == (decoder, parameters)
    assert [message.role for message in messages] == ["user"]


@pytest.mark.parametrize(
    ("arguments", "piped", "question"),
    [
        (["-"], "What is it?\n", "What is it?\n"),
        ([], "What is it?\n", "What is it?\n"),
        (["What is it?"], "One line.\nAnother.\n", "What is it?\n\nOne line.\nAnother.\n"),
    ],
    ids=["dash", "nothing", "a question"],
)
def test_what_comes_through_a_pipe_is_the_question_or_follows_it(
    arguments: list[str], piped: str, question: str, asked: list[Any]
) -> None:
    check_runs("ask", *arguments, typed=piped)
    assert [(one.role, one.content) for one in asked[0][1]] == [("system", "Be brief."), ("user", question)]


def test_a_pipe_of_no_text_or_of_too_much_is_refused_in_a_sentence(asked: list[Any]) -> None:
    for piped in (b"\xff\xfe", b"x" * protocol.MOST_TEXT):
        check_refused("ask", "What is it?", typed=piped)
    assert asked == []


# --- in a locale without the characters that are typed ----------------------------------------------------------------


@pytest.fixture
def c_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are decoded as with LC_ALL=C PYTHONUTF8=0, and encoded again so."""
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))


def as_decoded(text: bytes) -> str:
    return text.decode("ascii", "surrogateescape")


@pytest.mark.usefixtures("c_locale")
def test_arguments_and_pipes_are_utf_8_in_any_locale(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.TextIOWrapper(io.BytesIO("Über Öl.".encode()), encoding="ascii", errors="surrogateescape")
    monkeypatch.setattr(cli, "sys", SimpleNamespace(stdin=piped))
    arguments = [as_decoded(text.encode()) for text in ("Grüße?", "--system", "Sei nett, für 漢字.")]
    check_runs("ask", *arguments)
    assert [message.content for message in asked[0][1]] == ["Sei nett, für 漢字.", "Grüße?\n\nÜber Öl."]


@pytest.mark.parametrize("command", ["ask", "race"])
@pytest.mark.parametrize("wrong", ["The question", "--system"])
def test_a_text_that_is_not_utf_8_is_refused_in_a_sentence(command: str, wrong: str, asked: list[Any]) -> None:
    torn = as_decoded(b"caf\xe9")
    given = [torn] if wrong == "The question" else [QUESTION, "--system", torn]
    check_refused(command, *given, says=f"{wrong} is no text in UTF-8")
    assert asked == []
