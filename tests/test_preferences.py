"""The settings file: what is right in it holds, what is wrong is said and left alone, and comments survive changes."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.preferences import Preferences, SettingsFile, SettingsRefused, edited

BY_HAND = """# mine
theme = "nord"  # a dark one # really
system = \"\"\"
look = 5
Be brief.
\"\"\"

[parameters]
# wide
window = 7
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "settings.toml"


def test_without_a_file_all_has_its_default(path: Path) -> None:
    file = SettingsFile(path)
    assert (file.preferences, file.problems) == (Preferences(), [])
    assert not path.exists()


def test_what_is_kept_is_there_the_next_time_for_its_user_alone(path: Path) -> None:
    SettingsFile(path).keep({"theme": "nord", "panels": False, "parameters": {"window": 9}})
    SettingsFile(path).keep({"temperature": 0.7, "parameters": {"ngram": 4}})
    expected = Preferences(theme="nord", panels=False, temperature=0.7, parameters={"window": 9, "ngram": 4})
    assert SettingsFile(path).preferences == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_comments_and_all_else_stay_where_a_setting_changes() -> None:
    changed = edited(BY_HAND, {"theme": "gruvbox", "look": "demo", "parameters": {"window": 8}})
    expected = BY_HAND.replace('"nord"', '"gruvbox"').replace("window = 7", "window = 8")
    assert changed == expected.replace('\n"""\n\n', '\n"""\nlook = "demo"\n\n')


def test_a_text_of_several_lines_is_replaced_whole() -> None:
    assert tomllib.loads(edited(BY_HAND, {"system": "Rhyme."})) == {
        "theme": "nord", "system": "Rhyme.", "parameters": {"window": 7}
    }  # fmt: skip


VALUES = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(0, 5), st.text(max_size=30))


@given(st.dictionaries(st.sampled_from(["theme", "look", "system", "seed"]), VALUES))
def test_whatever_value_is_written_is_read_again(changes: dict[str, Any]) -> None:
    assert tomllib.loads(edited(BY_HAND, changes)) == {**tomllib.loads(BY_HAND), **changes}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("look = 'blue'", "line 2: look has to be hues or demo, not 'blue'."),
        ("temperature = nan", "line 2: temperature has to be a number from 0 to 5, not nan."),
        ("colour = 3", "line 2: there is no setting 'colour'."),
        ("decoder = 'magic'", "line 2: there is no decoder 'magic'; there are auto, "),
        ("[parameters]\nwindow = 99", "line 3: window has to be from 1 to 64, not 99."),
        ("[parameters]\nspeed = 9", "line 3: no decoder has a parameter 'speed'."),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_rest_holds(path: Path, line: str, named: str) -> None:
    path.parent.mkdir()
    path.write_text(f'theme = "nord"\n{line}\n')
    file = SettingsFile(path)
    assert file.preferences == Preferences(theme="nord")
    assert len(file.problems) == 1 and named in file.problems[0]


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe", b"#" * 70_000])
def test_what_cannot_be_read_is_said_and_never_written_over(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    file = SettingsFile(path)
    assert file.preferences == Preferences() and len(file.problems) == 1
    with pytest.raises(SettingsRefused):
        file.keep({"theme": "nord"})
    assert path.read_bytes() == content


def test_a_line_that_is_not_understood_is_not_written_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("look = 'blue'\n")
    with pytest.raises(SettingsRefused):
        SettingsFile(path).keep({"look": "demo"})
    assert path.read_text() == "look = 'blue'\n"


def test_dotted_keys_are_changed_in_their_place(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("parameters.window = 5  # narrow\n")
    SettingsFile(path).keep({"parameters": {"window": 6}})
    assert path.read_text() == "parameters.window = 6  # narrow\n"


def test_with_no_save_nothing_is_written(path: Path) -> None:
    with pytest.raises(SettingsRefused, match="--no-save"):
        SettingsFile(path, writable=False).keep({"theme": "nord"})
    assert not path.exists()
