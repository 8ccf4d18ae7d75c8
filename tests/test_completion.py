"""The shell completes what ladechat offers, by the protocol of its completion script."""

from typer.testing import CliRunner

from ladechat.shell import cli


def completed(line: str) -> list[str]:
    """What bash is offered at the end of a line."""
    words = line.split(" ")
    asked = {"_LADECHAT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    result = CliRunner().invoke(cli.app, env=asked, prog_name="ladechat")
    assert result.exit_code == 0, result.output
    return result.stdout.split()


def test_bash_completes_commands_and_their_options() -> None:
    assert "export" in completed("ladechat exp")
    assert {"--speed", "--size"} <= set(completed("ladechat export --s"))


def test_bash_completes_the_options_of_the_app_and_of_a_command_within_a_command() -> None:
    assert {"--decoder", "--device"} <= set(completed("ladechat --de"))
    assert "--record" in completed("ladechat --rec")
    assert all(word.startswith("--") for word in completed("ladechat train --"))
