"""Whatever is in the file of a recording, it is refused in a sentence, or becomes a whole and harmless file.

A run that fails names its seed: `mutated(…, seed)` makes the same recording again.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ladechat.export.command import ExportRefused, Wanted, run
from tests.export.pages import Page
from tests.session.mutations import mutated
from tests.session.streams import GOLDEN
from tests.test_refusals import RAW_CONTROLS

TEXTS = ("html", "md", "json")
SCREENS = ("cast", "cast2", "svg")
OF_THE_APP = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]22;\w+\x07")
"""What a frame may hold: colours, places, and the shape of the pointer."""
HUNG_SECONDS = 10


def check(format_name: str, content: str) -> None:
    """Whole, and nothing in it that would steer a terminal or a browser."""
    if format_name.startswith("cast"):
        _, *events = map(json.loads, content.splitlines())
        times = [seconds for seconds, _, _ in events]
        assert min(times) >= 0 and (format_name == "cast" or times == sorted(times))
        content = "".join(OF_THE_APP.sub("", data) for _, _, data in events)
    elif format_name == "html":
        Page(content)
    elif format_name == "json":
        assert json.loads(content)["format"] == "ladechat-conversation"
    elif format_name == "svg":
        ElementTree.fromstring(content)
        content = content.replace("http://www.w3.org/", "").replace("https://www.textualize.io", "")
        assert "http" not in re.sub(r"<text.*?</text>", "", content)
    assert not RAW_CONTROLS.search(content)


def exported(folder: Path, seeds: Iterable[int], formats: tuple[str, ...]) -> int:
    """How many of the mutated recordings became files, each in one of the formats."""
    whole = 0
    for seed in seeds:
        format_name = formats[seed % len(formats)]
        try:
            whole += is_exported(folder, seed, format_name)
        except Exception as error:
            raise AssertionError(f"seed {seed} as {format_name}") from error
    return whole


def is_exported(folder: Path, seed: int, format_name: str) -> bool:
    source, out = folder / "mutated.jsonl", folder / "out"
    source.write_bytes(mutated(GOLDEN[seed % len(GOLDEN)].read_bytes(), seed))
    out.unlink(missing_ok=True)
    sentence = ""
    try:
        run(source, out, format_name, Wanted((60, 16), 1.0, 0.0, None), force=False)
    except ExportRefused as refused:
        sentence = str(refused)
    assert "\n" not in sentence and bool(sentence) != out.exists()
    if not sentence:
        check(format_name, out.read_text(encoding="utf-8"))
    return not sentence


def test_300_mutated_recordings_become_text_or_are_refused(tmp_path: Path) -> None:
    assert exported(tmp_path, range(300), TEXTS) > 150


def test_mutated_recordings_become_pictures_and_films_or_are_refused(tmp_path: Path) -> None:
    assert exported(tmp_path, range(20_000, 20_004), SCREENS) > 1


@pytest.mark.full
@pytest.mark.timeout(120 * HUNG_SECONDS)
@pytest.mark.parametrize("first", range(30_000, 39_000, 1000))
def test_9000_mutated_recordings_become_text_or_are_refused(tmp_path: Path, first: int) -> None:
    assert exported(tmp_path, range(first, first + 1000), TEXTS) > 500


@pytest.mark.full
@pytest.mark.timeout(120 * HUNG_SECONDS)
@pytest.mark.parametrize("first", range(40_000, 41_000, 100))
def test_1000_mutated_recordings_become_pictures_and_films_or_are_refused(tmp_path: Path, first: int) -> None:
    assert exported(tmp_path, range(first, first + 100), SCREENS) > 40
