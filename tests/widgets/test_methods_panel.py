"""Claims about the table of methods: the figures are those of the model that runs, and none is made up."""

import pytest

from ladechat.protocol import TrainedPart
from ladechat.widgets.panels.methods_panel import WHY, MethodsPanel
from tests.fake_model import TRAINED
from tests.widgets.hosting import hosted, lines


def shown(trained: list[TrainedPart]) -> MethodsPanel:
    panel = MethodsPanel()
    panel.trained = trained
    return panel


async def test_each_method_has_its_measured_figures_and_lookahead_none() -> None:
    async with hosted(shown(TRAINED), 60, 14) as (_, panel):
        text = lines(panel)
        rows = {line.split("  ")[0]: line.split() for line in text[2:5]}
        assert rows["lookahead"][-4:] == ["nothing", "–", "–", "–"]
        assert rows["Medusa"][-3:] == [".52", ".47", ".43"] and rows["hidden tr."][-3:] == [".69", ".55", ".47"]
        assert "500 steps" in " ".join(text)


async def test_of_a_model_that_lacks_some_nothing_is_made_up() -> None:
    async with hosted(shown([TRAINED[0]]), 60, 14) as (_, panel):
        assert next(line for line in lines(panel) if line.startswith("Medusa")).split()[-3:] == ["–"] * 3
    async with hosted(shown([]), 60, 14) as (_, panel):
        assert "Nothing was trained for this model." in lines(panel)
        assert not any("." + digit in line for line in lines(panel)[:5] for digit in "0123456789")


@pytest.mark.parametrize("size", [(8, 4), (24, 8), (36, 9), (42, 9), (50, 14), (84, 20)])
async def test_it_fits_any_room(size: tuple[int, int]) -> None:
    async with hosted(shown(TRAINED), *size) as (_, panel):
        text = lines(panel)
        assert size[0] < 30 or any(".69" in line for line in text), "the figures are the last to go"


@pytest.mark.parametrize("size", [(50, 13), (34, 10)])
async def test_the_reason_stands_there_in_full_beside_a_lesson(size: tuple[int, int]) -> None:
    async with hosted(shown(TRAINED), *size) as (_, panel):
        assert WHY in " ".join(line.strip() for line in lines(panel))
