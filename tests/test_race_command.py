"""`ladechat race`, as a shell would run it."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ladechat.catalog import FIRST_QUESTION, FIRST_QUESTIONS
from ladechat.session.measuring import Measuring
from ladechat.session.race import DISTURBED, conclusions
from ladechat.shell import cli, race
from tests.session.test_race import lane
from tests.waiting import patience

QUESTION = "What is the n-gram pool?"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--decoders", "auto,magic"], "There is no decoder 'magic'; give --decoders 2 to 4 of auto, lookahead, "),
        (["--decoders", "auto"], "A race has 2 to 4 decoders, not 1"),
        (["--decoders", "auto,auto"], "not 1"),
        (["--decoders", ","], "not 0"),
        (["--decoders", "auto,lookahead,suffix,recycling,jacobi"], "not 5"),
        (["--decoder", "auto"], "--decoder is for answers of one decoder; name those of a race with --decoders."),
        (
            ["--decoders", "auto,suffix", "-W", "3"],
            "--window is for the decoders lookahead, prompt_lookup and jacobi, and",
        ),
        (["--carriers", "3", "--decoders", "auto,suffix"], "auto and suffix have no such setting"),
        (["--pool", "kept"], "--pool is for answers of one decoder"),
        (["--max-new-tokens", "0"], "from 1 on, not 0"),
        (["--window", "0"], "1 to 64"),
        (["auto", "lookahead"], "--decoders auto,lookahead."),
        (["auto,lookahead", "--max-new-tokens", "9"], "--decoders auto,lookahead."),
        (["auto", "or", "not?"], "needs quotation marks"),
        ([","], "needs quotation marks"),
    ],
)
def test_what_cannot_be_raced_is_a_usage_error_in_one_sentence(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.app, ["race", QUESTION, *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_is_a_usage_error(question: str) -> None:
    result = CliRunner().invoke(cli.app, ["race", question])
    assert result.exit_code == 2 and "empty" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(("words", "asked"), [([QUESTION], QUESTION), ([], FIRST_QUESTION)])
def test_on_a_terminal_it_is_shown_there_with_a_question_or_that_of_the_welcome(
    words: list[str], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Measuring] = []

    def run_race(measuring: Measuring) -> int:
        shown.append(measuring)
        return 0

    monkeypatch.setattr(race, "_in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.checks.drawn_in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.app.run_race", run_race)
    result = CliRunner().invoke(cli.app, ["race", *words, "--system", "Be brief.", "--decoders", "auto, lookahead"])
    assert result.exit_code == 0
    [measuring] = shown
    assert measuring.question == asked and FIRST_QUESTION in FIRST_QUESTIONS


@pytest.mark.parametrize(("refused", "code"), [(False, 1), (True, 2)])
def test_what_went_wrong_on_the_screen_is_said_behind_it(
    refused: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_race(measuring: Measuring) -> int:
        measuring.failure, measuring.refused = "The weights are torn. Mend them.", refused
        return 2 if refused else 0

    monkeypatch.setattr(race, "_in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.checks.drawn_in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.app.run_race", run_race)
    result = CliRunner().invoke(cli.app, ["race", QUESTION])
    assert (result.exit_code, result.stderr) == (code, "ladechat: The weights are torn. Mend them.\n")


def test_a_race_without_plain_decoding_says_why_there_is_no_speed() -> None:
    lanes = [lane(name, [["a", "b"]]) for name in ("lookahead", "jacobi")]
    assert "add autoregressive to --decoders" in race.conclusion(lanes, conclusions(lanes))[-1]
    lanes.append(lane("autoregressive", [["a"], ["b"]]))
    last = race.conclusion(lanes, conclusions(lanes))[-1]
    assert last.startswith("Tokens a pass ÷ cost of a pass = speed, plain 1×: ")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ladechat", "race", QUESTION, *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(), check=False
    )


@pytest.mark.full
def test_in_a_pipe_it_is_a_table_and_the_seal() -> None:
    """With the real engine and the bundled model; `auto` comes last, and must not know the answer by then."""
    done = run("--max-new-tokens", "24")
    assert (done.returncode, done.stderr) == (0, "")
    table, closing = done.stdout.split("\n\n")
    headings, *lanes = table.splitlines()
    seal, passes, time, *_why_auto_lost = closing.splitlines()
    assert re.split(r"\s{2,}", headings) == ["decoder", "tokens", "passes", "tokens a pass", "seconds", "speed"]
    rows = [re.split(r"\s{2,}", lane) for lane in lanes]
    assert [row[0] for row in rows] == ["plain decoding", "lookahead", "hidden transfer", "auto"]
    assert [row[1] for row in rows] == ["24"] * 4
    assert rows[0][2:4] == ["24", "1.00"] and rows[0][5] == "1.00×"
    assert int(rows[2][2]) < 24
    assert int(rows[3][2]) > 24 / 4  # one that knew the answer would need two or three
    assert seal == "✓ 24 of 24 tokens identical" and passes.startswith("Passes saved of 24: ")
    assert time.startswith(("Tokens a pass ÷ cost of a pass = speed, plain 1×: ", DISTURBED))


def test_a_model_that_is_not_there_is_a_failure_in_one_sentence() -> None:
    done = run("--model", "/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "/nowhere" in done.stderr and done.stderr.count("\n") == 1
