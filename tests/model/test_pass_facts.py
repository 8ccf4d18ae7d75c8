"""By what saved costs are found again: everything that changes what a pass costs here."""

import copy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ladechat.model.loaded import LoadedModel, pass_facts
from ladechat.model.loading.device import Threads
from ladechat.tuning.saved import saved_file
from tests.checkpoints import load_on_cpu
from tests.llama2 import save_checkpoint


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = save_checkpoint(tmp_path_factory.mktemp("checkpoint"))
    return replace(load_on_cpu(folder), threads=Threads(2))


def other_weights(loaded: LoadedModel) -> LoadedModel:
    folder = loaded.folder.with_name("other")
    folder.mkdir()
    for file in loaded.folder.iterdir():
        content = file.read_bytes()
        (folder / file.name).write_bytes(content[:-1] + b"\1" if file.suffix == ".safetensors" else content)
    return replace(loaded, folder=folder)


def other_attention(loaded: LoadedModel) -> LoadedModel:
    model = copy.copy(loaded.model)
    model.config = copy.deepcopy(model.config)
    model.config._attn_implementation = "eager"
    return replace(loaded, model=model)


CHANGES: dict[str, Callable[[LoadedModel], LoadedModel]] = {
    "one thread of the kernels": lambda loaded: replace(loaded, threads=Threads(1, 1)),
    "eight threads of the kernels": lambda loaded: replace(loaded, threads=Threads(1, 8)),
    "torch alone, on one thread": lambda loaded: replace(loaded, threads=Threads(1)),
    "torch alone, on eight": lambda loaded: replace(loaded, threads=Threads(8)),
    "the kernels beside eight threads of torch": lambda loaded: replace(loaded, threads=Threads(8, 8)),
    "quantised weights": lambda loaded: replace(loaded, quantization="int8"),
    "another type": lambda loaded: replace(loaded, dtype="bfloat16"),
    "another device": lambda loaded: replace(loaded, device="cuda:0 (a card)"),
    "two processes": lambda loaded: replace(loaded, device="2 × cuda:0 (a card)"),
    "other weights": other_weights,
    "another attention": other_attention,
}


def test_whatever_changes_the_cost_of_a_pass_has_a_file_of_its_own(loaded: LoadedModel) -> None:
    runs = [loaded, *(change(loaded) for change in CHANGES.values())]
    for kind in ("costs", "skipped"):
        files = {saved_file(kind, **pass_facts(one)) for one in runs}
        assert len(files) == len(runs)


def test_the_same_model_finds_its_costs_again_wherever_it_lies(loaded: LoadedModel, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(loaded.folder, tmp_path / "elsewhere"))
    again = load_on_cpu(folder, name="another name")
    before = replace(loaded, folder=folder, threads=again.threads)
    assert saved_file("costs", **pass_facts(again)) == saved_file("costs", **pass_facts(before))
