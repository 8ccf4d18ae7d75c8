"""The command as a whole, on a tiny model; and what it refuses, in one sentence, before anything is loaded."""

import importlib.util
import json
import os
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from typer.testing import CliRunner, Result

from ladechat import catalog, registry
from ladechat.bench import command, layer_search, methods, options, prompts
from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Proposal, Room
from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter
from ladechat.decoder.layer_skipping_model import LayerSkippingModel
from ladechat.decoder.loop import Decoder
from ladechat.layer_search import write_skipped
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading import device
from ladechat.model.runners.tree import TreeRunner
from ladechat.protocol import DecoderInfo, Parameter
from ladechat.shell import cli
from tests.bench.made_up import Scripted
from tests.checkpoints import save
from tests.engine.tokenizers import byte_level
from tests.gguf_files import write_gguf
from tests.model.parallel.group import forked_workers
from tests.packed import tiny_model
from tests.tiny import random_model


def bench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, ["bench", *map(str, arguments)])


def assert_refused(result: Result, named: str, exit_code: int = 2) -> None:
    assert result.exit_code == exit_code, result.output
    assert named in result.stderr and result.stderr.count("\n") == 1 and result.stdout == ""


def measured(short: list[str], *arguments: str | Path) -> tuple[Any, str]:
    """What a run writes into its file, and what it prints."""
    out = Path(short[short.index("--questions") + 1]).with_name("bench.json")
    result = bench(*short, *arguments, "--json", out)
    assert result.exit_code == 0 or "liar" in result.stdout, result.output
    return json.loads(out.read_text(encoding="utf-8")), result.stdout


@pytest.fixture
def short(checkpoint: Path, tmp_path: Path) -> list[str]:
    """The options of a run that is over at once."""
    questions = tmp_path / "few.toml"
    questions.write_text('prompts = ["the pool", ["the window", "and the pool?"]]', encoding="utf-8")
    given = ["--model", checkpoint, "--device", "cpu", "--dtype", "float32", "--questions", questions]
    return [*map(str, given), "--max-new-tokens", "6", "--rounds", "1"]


def test_one_run_measures_everybody_on_every_prompt(short: list[str]) -> None:
    content, printed = measured(short, "--settings", "3,3,3")
    assert content["prompts"] == {"few": 3}
    names = ["lookahead 3,3,3", *({*catalog.DECODERS} - {"lookahead"}), "transformers", "transformers-prompt-lookup"]
    assert set(content["methods"]) == set(names) and all(name in printed for name in names)
    assert all(each["overall"]["exact"] for each in content["methods"].values())
    assert content["methods"]["autoregressive"]["overall"]["speedup"] == 1.0


@pytest.mark.parametrize("option", ["--tensor-parallel", "--lookahead-parallel"])
def test_several_processes_are_measured_as_one_is(short: list[str], option: str, tmp_path: Path) -> None:
    even = save(tmp_path / "even", random_model(5, vocab_size=len(byte_level()) + len(byte_level()) % 2))
    with forked_workers() as others:
        content, _ = measured(short, "--model", even, option, "2", "--settings", "5,3,5", "--dtype", "float64")
    assert len(others) == 1 and content["device"].startswith("2 × cpu")
    assert {"lookahead 5,3,5", "auto", "suffix", "autoregressive"} <= set(content["methods"])
    assert ("transformers" in content["methods"]) == (option == "--lookahead-parallel")
    assert all(each["overall"]["exact"] for each in content["methods"].values())


def test_what_is_measured_computes_with_the_threads_of_the_app_and_finds_what_that_has_saved(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bfloat16 is torch's alone. Of four cores the app leaves one free; what is compared takes what torch takes."""
    before = torch.get_num_threads()
    monkeypatch.setattr(device, "available_cores", lambda: 4)
    monkeypatch.setattr(device, "default_threads", lambda: 5)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    try:
        with command.stages() as progress:
            taken = [
                command.load_model(str(checkpoint), "cpu", "bfloat16", progress, kernels=own).threads.torch
                for own in (True, False, True)
            ]
    finally:
        torch.set_num_threads(before)
    assert taken == [3, 5, 3]


def test_plain_decoding_takes_part_unasked(short: list[str]) -> None:
    result = bench(*short, "--decoders", "lookahead")
    assert result.exit_code == 0 and "autoregressive" in result.stdout and "transformers" not in result.stdout


@pytest.mark.parametrize(("passes", "says"), [("exact", "Q8_0, exact"), ("fast", "Q8_0, not exact")])
def test_a_gguf_file_is_measured_as_the_passes_are_asked_for(short: list[str], passes: str, says: str) -> None:
    facts = {"general.file_type": ("add_uint32", int(gguf.LlamaFileType.MOSTLY_Q8_0))}
    file = Path(short[short.index("--model") + 1]).with_name("tiny.gguf")
    write_gguf(file, tiny_model(0, wide=True), byte_level(), Kind.Q8_0, facts)
    given = ["--model", str(file), "--dtype", "auto", "--passes", passes, "--decoders", "lookahead"]
    content, printed = measured([*short, *given])
    assert content["quantization"] == says and says in printed.replace("\n", " ")
    assert content["precise"] == (passes == "exact")


def test_a_plot_is_drawn_where_it_is_asked_for(short: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = bench(*short, "--decoders", "lookahead", "--plot", tmp_path / "bench.svg")
    assert result.exit_code == 0 and (tmp_path / "bench.svg").stat().st_size > 0


def test_a_method_that_lies_is_found_out(short: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "Transformers", lambda *_, **__: Scripted("liar"))
    content, printed = measured(short, "--decoders", "transformers")
    assert content["methods"]["liar"]["overall"]["exact"] is False
    assert "3 of 3 answers are not those of plain decoding" in printed


def test_layers_are_searched_for_before_anything_is_measured_and_kept_ones_are_skipped(
    short: list[str], loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped: list[Set[int] | None] = []
    searched: list[frozenset[int]] = []

    class Noting(LayerSkipDrafter):
        def __init__(self, model: LayerSkippingModel, given: Set[int] | None = None) -> None:
            super().__init__(model, given)
            skipped.append(given)

    def found(
        runner: object, model: LayerSkippingModel, prompt: list[int], file: Path, over: Callable[[], bool]
    ) -> None:
        assert model.layers == loaded.layers and len(prompt) > 9 and not over() and not skipped
        searched.append(frozenset({1}))
        write_skipped(file, searched[0])

    monkeypatch.setattr(registry, "LayerSkipDrafter", Noting)
    monkeypatch.setattr(layer_search, "improved", found)
    assert bench(*short, "--decoders", "layer_skip").exit_code == 0
    assert set(skipped) == {None} and not searched
    skipped.clear()
    try:
        assert bench(*short, "--decoders", "layer_skip", "--layer-search", "30").exit_code == 0
        assert bench(*short, "--decoders", "layer_skip").exit_code == 0, "in a later run too"
    finally:
        layer_search._file(loaded).unlink(missing_ok=True)
    assert set(skipped) == {*searched} and len(searched) == 1


def test_a_model_whose_layers_cannot_be_run_one_by_one_is_measured_without_them(
    short: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TreeRunner, "layers", 1)
    content, _ = measured(short)
    assert "layer_skip" not in content["methods"] and "medusa" in content["methods"]
    assert_refused(bench(*short, "--decoders", "layer_skip"), "layer_skip cannot be measured: At least 2 layers")
    assert_refused(bench(*short, "--layer-search", "5"), "can be skipped: At least 2 layers")


class Wild(Drafter):
    """Drafts the same token always."""

    def propose(self, room: Room) -> Proposal:
        return Proposal([Node(ROOT, 7, "wild", "wild", 0.5)] if room.depth else [])


def test_a_decoder_that_is_registered_takes_part_with_no_edit_elsewhere(
    short: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "DECODERS", dict(catalog.DECODERS))
    monkeypatch.setattr(registry, "DECODERS", dict(registry.DECODERS))
    for module in (options, methods):
        monkeypatch.setattr(module, "DECODERS", catalog.DECODERS)
    depth = Parameter("toy_depth", "D", "How deep it digs.", 4, 1, 9)
    catalog.register(DecoderInfo(name="toy", label="a toy", help="Guesses wildly.", parameters=[depth]))
    registry.register("toy", lambda runner, _: Decoder(runner, [Wild()]))
    content, _ = measured(short, "--decoders", "toy")
    toy = content["methods"]["toy"]["overall"]
    assert toy["exact"] and toy["drafts"]["wild"]["tested"] > 0 and toy["slots_per_pass"] > 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--decoders", "magic"], "lookahead"),
        (["--decoders", ","], "No decoder"),
        (["--settings", "3,3"], "W,N,G"),
        (["--settings", "3,x,3"], "W,N,G"),
        (["--settings", "3,1,3"], "2 to 16"),
        (["--settings", "65,3,3"], "1 to 64"),
        (["--rounds", "0"], "at least 1"),
        (["--max-new-tokens", "0"], "from 1 on, not 0"),
        (["--layer-search", "-1"], "from 0 to 86,400 seconds"),
        (["--layer-search", "5", "--decoders", "suffix"], "--layer-search is for layer_skip"),
        (["--settings", "3,3,3", "--decoders", "suffix"], "--settings is for lookahead; name it with --decoders"),
        (["--questions", "poems"], "summary"),
        (["--questions", "nowhere.toml"], "nowhere.toml"),
        (["--plot", "bench.pdf"], ".svg"),
        (["--json", "no/such/folder/bench.json"], "cannot be written"),
        (["--json", "."], "cannot be written"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_model_is_loaded(
    arguments: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "fetch", lambda *_: pytest.fail("it went for the model"))
    assert_refused(bench(*arguments), named)


def test_a_plot_without_matplotlib_is_refused_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert_refused(bench("--plot", "bench.png"), "-m pip install 'matplotlib")


def test_looking_whether_a_file_can_be_written_leaves_it_as_it_is(short: list[str], tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.png"
    old.write_text("precious", encoding="utf-8")
    assert_refused(bench(*short, "--json", old, "--plot", new, "--model", "./nowhere"), "nowhere", exit_code=1)
    assert old.read_text(encoding="utf-8") == "precious" and not new.exists()


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_refused_command_leaves_a_link_that_leads_to_nothing_as_it_is(
    option: str, short: list[str], tmp_path: Path
) -> None:
    link, target = tmp_path / "link.png", tmp_path / "target.png"
    link.symlink_to(target)
    assert_refused(bench(*short, option, link, "--model", "./nowhere"), "nowhere", exit_code=1)
    assert link.is_symlink() and not target.exists()


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_pipe_in_the_place_of_the_file_is_refused_and_not_waited_for(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "fetch", lambda *_: pytest.fail("it went for the model"))
    os.mkfifo(pipe := tmp_path / "pipe.png")
    assert_refused(bench(option, pipe), "cannot be written: it is a named pipe or a device")


def test_an_answer_that_does_not_fit_the_context_is_refused_with_both_numbers(short: list[str]) -> None:
    assert_refused(bench(*short, "--max-new-tokens", "4096"), "context of 4,096")


@pytest.mark.parametrize(
    ("raised", "says", "code"), [(KeyboardInterrupt, "Stopped", 130), (MemoryError, "memory is used up", 1)]
)
def test_ctrl_c_and_memory_that_is_used_up_end_it_in_a_sentence_and_nothing_is_written(
    raised: type[BaseException], says: str, code: int, short: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(prompts, "make_prompts", fail)
    assert_refused(bench(*short, "--json", tmp_path / "bench.json"), says, code)
    assert not (tmp_path / "bench.json").exists()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('Not today.') }}", "Not today."),
        ("{% for _ in range(99999) %}{{ 'a' * 10000 }}{% endfor %}", "more than 16,000,000 characters"),
    ],
)
def test_a_template_that_refuses_a_question_is_told_of(
    short: list[str], checkpoint: Path, tmp_path: Path, template: str, why: str
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((checkpoint / "tokenizer_config.json").read_text())
    refusing = {**config, "chat_template": template}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(refusing))
    assert_refused(bench(*short, "--model", tmp_path), why)
