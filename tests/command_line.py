"""Running a command line in the process: one that is refused, and one that does what it is there for."""

from pathlib import Path

from typer.testing import CliRunner, Result

from ladechat.shell import cli


def check_refused(*arguments: str | Path, says: str | tuple[str, ...] = (), typed: str | bytes | None = None) -> None:
    """Check that a command line is a usage error that is said in one line with these words, and prints nothing."""
    result = CliRunner().invoke(cli.app, list(map(str, arguments)), input=typed)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    assert [words for words in ((says,) if isinstance(says, str) else says) if words not in result.stderr] == []


def check_runs(*arguments: str | Path, typed: str | None = None) -> Result:
    """Run a command line, and check that its exit status is 0."""
    result = CliRunner().invoke(cli.app, list(map(str, arguments)), input=typed)
    assert result.exit_code == 0, result.output
    return result
