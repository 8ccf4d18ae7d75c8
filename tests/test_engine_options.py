"""The command line of an engine says all that its options say."""

import sys

import pytest
from typer.testing import CliRunner

from ladechat import catalog
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Settings


def test_an_engine_is_this_python_running_ladechat() -> None:
    assert EngineOptions().command()[:5] == [sys.executable, "-P", "-m", "ladechat", "engine"]


def test_only_parameters_that_were_given_are_passed() -> None:
    arguments = list(EngineOptions(settings=Settings(parameters={"window": 7, "pool_prompt": False})).arguments())
    assert arguments[arguments.index("--window") + 1] == "7"
    assert "--no-pool-prompt" in arguments
    given = {f"--{name.replace('_', '-')}" for name in catalog.parameters()} & set(arguments)
    assert given == {"--window"}


def test_a_parameter_that_nobody_knows_is_left_out() -> None:
    assert "--magic" not in EngineOptions(settings=Settings(parameters={"magic": 3})).arguments()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(decoder="autoregressive"),
        Settings(decoder="lookahead", parameters={"window": 9, "ngram": 4, "guesses": 0, "pool_accepted": False}),
        Settings(decoder="suffix", parameters={"nodes": 4}),
        Settings(decoder="hidden_transfer", parameters={"nodes": 4, "carriers": 2}),
        Settings(
            decoder="jacobi",
            temperature=0.7,
            top_k=3,
            top_p=0.9,
            min_p=0.05,
            repetition_penalty=1.2,
            seed=5,
            thinking="off",
        ),
    ],
    ids=lambda settings: settings.decoder,
)
@pytest.mark.parametrize(("gpus", "copies", "quantize"), [(1, 1, None), (2, 1, None), (1, 3, None), (1, 1, "int8")])
def test_the_command_says_all_that_the_options_say(
    settings: Settings, gpus: int, copies: int, quantize: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ladechat.engine import server
    from ladechat.shell import cli

    started: list[EngineOptions] = []
    monkeypatch.setattr(server, "serve", started.append)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    options = EngineOptions(
        model="some/where",
        device="cuda:1",
        dtype="bfloat16",
        quantize=quantize,
        pool="a pool",
        maps=["one", "another"],
        layer_search=2.5,
        tensor_parallel=gpus,
        lookahead_parallel=copies,
        settings=settings,
    )
    result = CliRunner().invoke(cli.app, ["engine", *options.arguments()])
    assert result.exit_code == 0, result.output
    assert started == [options]
