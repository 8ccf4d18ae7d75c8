"""How far the reader is: kept privately, and a damaged file costs a sentence and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.lessons.progress import Progress, ProgressFile, Score
from ladechat.lessons.scenes import CHAPTERS
from ladechat.shell.learn import CHAPTERS as COUNTED

PROGRESS = Progress("pool", 3, [1], {"one_token": Score(1, 1), "jacobi": Score(0, 1)})


def test_what_is_kept_comes_back_and_only_its_user_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "learn.json"
    ProgressFile(path).write(PROGRESS)
    assert ProgressFile(path).read() == (PROGRESS, "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (PROGRESS.number, PROGRESS.right, PROGRESS.made) == (3, 1, 2)


def test_without_a_file_one_begins_with_the_first_scene(tmp_path: Path) -> None:
    assert ProgressFile(tmp_path / "learn.json").read() == (Progress(), "")
    assert Progress().number == Progress(scene="of another version").number == 0


@given(content=st.binary() | st.sampled_from([b'{"card": -1}', b'{"card": "3"}', b"[" * 100_000, b'{"choices": [-1]}']))
def test_a_damaged_file_begins_anew_and_says_so(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("learn") / "learn.json"
    path.write_bytes(content)
    progress, problem = ProgressFile(path).read()
    assert progress == Progress() and str(path) in problem and not path.exists()
    assert path.with_name("learn.json.damaged").read_bytes() == content


def test_what_cannot_be_written_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ProgressFile(tmp_path / "file" / "learn.json").write(PROGRESS)


def test_the_command_knows_how_many_scenes_there_are() -> None:
    assert len(CHAPTERS) == COUNTED
