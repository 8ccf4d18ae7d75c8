"""The settings file: what is right in it holds, what is wrong is said and left alone, and comments survive changes."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit
from hypothesis import given, strategies as st

from ladechat.preferences import Preferences, SettingsFile, SettingsRefused
from ladechat.toml_text import NotToml, edited, parsed

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
    (tmp_path / "settings").mkdir()
    return tmp_path / "settings" / "settings.toml"


def test_without_a_file_all_has_its_default(path: Path) -> None:
    file = SettingsFile(path)
    assert (file.preferences, file.problems) == (Preferences(), [])
    assert not path.exists()


def test_what_is_kept_is_there_the_next_time_for_its_user_alone(path: Path) -> None:
    path.parent.rmdir()
    SettingsFile(path).save({"theme": "nord", "panels": False, "parameters": {"window": 9}})
    SettingsFile(path).save({"temperature": 0.7, "parameters": {"ngram": 4}})
    expected = Preferences(theme="nord", panels=False, temperature=0.7, parameters={"window": 9, "ngram": 4})
    assert SettingsFile(path).preferences == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_comments_and_all_else_stay_where_a_setting_changes() -> None:
    changed = edited(BY_HAND, {"theme": "gruvbox", "look": "demo", "parameters": {"window": 8}})
    expected = BY_HAND.replace('"nord"', '"gruvbox"').replace("window = 7", "window = 8")
    assert changed == expected.replace('\n"""\n\n', '\n"""\nlook = "demo"\n\n')


def test_dotted_keys_are_changed_in_their_place() -> None:
    changed = edited("parameters.window = 5  # narrow\n", {"parameters": {"window": 6}})
    assert changed == "parameters.window = 6  # narrow\n"


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
        ("[parameters]\nlook = 'demo'", "line 3: look is no parameter of a decoder: it belongs above the line [parame"),
        ("parameters.window = 99", "line 2: window has to be from 1 to 64, not 99."),
        ("parameters = {ngram = 3, window = 99}", "line 2: window has to be from 1 to 64, not 99."),
        ("[parameters]\n'window' = 'five'", "line 3: window has to be a whole number, or true or false, not 'five'."),
        pytest.param(
            f"[parameters]\nwindow = {'9' * 400}",
            "line 3: window has to be a whole number, or true or false, not 99",
            id="parameter of 400 digits",
        ),
        pytest.param(
            f"top_k = {'9' * 400}", "line 2: top_k has to be a whole number, 0 or more, not 9999", id="400 digits"
        ),
        pytest.param(
            f"top_k = 0x{'f' * 5000}",
            "line 2: top_k has to be a whole number, 0 or more, not a number of thousands",
            id="5000 hexadecimal digits",
        ),
        ("panels = [\n 1,\n 2,\n]", "line 2: panels has to be true or false, not [1, 2]."),
        ('system = """\nlook = 5\n"""\n\'look\' = \'blue\'', "line 5: look has to be hues or demo, not 'blue'."),
        ("[colour]\nlook = 5", "line 2: there is no setting 'colour'."),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_rest_holds(path: Path, line: str, named: str) -> None:
    path.write_text(f'theme = "nord"\n{line}\n')
    file = SettingsFile(path)
    assert msgspec.structs.replace(file.preferences, system="", parameters={}) == Preferences(theme="nord")
    assert len(file.problems) == 1 and named in file.problems[0].sentence


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"theme = ", "line 1"),
        (b"a = 1\n\xff\xfe", "line 2"),
        pytest.param(b"#" * 70_000, "larger than 64 KiB", id="too large"),
        pytest.param(b"\n\nseed = " + b"9" * 5000, "line 3", id="5000 digits"),
        pytest.param(b'system = """\n"""\nseed = ' + b"[" * 9000, "line 3", id="nesting"),
        (b"theme = 'a'\rlook = 'demo'\r", "line 1"),
    ],
)
def test_what_cannot_be_read_is_said_and_never_written_over(path: Path, content: bytes, line: str) -> None:
    path.write_bytes(content)
    file = SettingsFile(path)
    assert file.preferences == Preferences() and len(file.problems) == 1
    assert line in file.problems[0].sentence and str(path) in file.problems[0].sentence
    with pytest.raises(SettingsRefused):
        file.save({"theme": "nord"})
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("look = 'blue'\n", {"look": "demo"}),
        ("parameters = 5\n", {"parameters": {"window": 7}}),
        ("[parameters]\nwindow = 99\n", {"parameters": {"window": 7}}),
        ("parameters.window = 'five'\n", {"parameters": {"window": 7, "ngram": 3}}),
    ],
)
def test_a_line_that_is_not_understood_is_not_written_over(path: Path, line: str, changes: dict[str, Any]) -> None:
    path.write_text(line)
    with pytest.raises(SettingsRefused, match="correct it there"):
        SettingsFile(path).save(changes)
    assert path.read_text() == line


def test_a_line_that_became_wrong_meanwhile_is_not_written_over(path: Path) -> None:
    file = SettingsFile(path)
    file.save({"parameters": {"window": 7}})
    path.write_text("[parameters]\nwindow = 99\n")
    with pytest.raises(SettingsRefused, match="window"):
        file.save({"parameters": {"window": 7}})
    assert path.read_text() == "[parameters]\nwindow = 99\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbflook = 'demo'\n", b"\xef\xbb\xbflook = 'demo'\ntheme = \"nord\"\n"),
        (b"look = 'demo'\r\n", b"look = 'demo'\r\ntheme = \"nord\"\r\n"),
        (b"look = 'demo' # mine", b"look = 'demo' # mine\ntheme = \"nord\"\n"),
        (b"x.y.z = 1", b'x.y.z = 1\ntheme = "nord"\n'),
        (b"top_p = nan\n", b'top_p = nan\ntheme = "nord"\n'),
        (b"theme = 'a'\r\nlook = 'demo'\n", b"theme = \"nord\"\r\nlook = 'demo'\n"),
        (b'system = """\r\n a\r\n"""\r\n', b'system = """\r\n a\r\n"""\r\ntheme = "nord"\r\n'),
    ],
)
def test_what_the_file_was_written_in_stays(path: Path, before: bytes, after: bytes) -> None:
    path.write_bytes(before)
    file = SettingsFile(path)
    assert b"nan" in before or b"x.y" in before or file.problems == []
    file.save({"theme": "nord"})
    assert path.read_bytes() == after
    assert SettingsFile(path).preferences.theme == "nord"


def test_what_would_say_something_else_than_it_has_to_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("look = 'demo'\n")
    for wrong in ('look = 1theme = "nord"\n', 'theme = "nord"\n'):
        monkeypatch.setattr(tomlkit, "dumps", lambda _, wrong=wrong: wrong)
        with pytest.raises(SettingsRefused, match="by hand"):
            SettingsFile(path).save({"theme": "nord"})
    assert path.read_text() == "look = 'demo'\n"


def test_a_text_that_would_make_the_file_too_large_to_be_read_is_not_written(path: Path) -> None:
    with pytest.raises(SettingsRefused, match="64 KiB"):
        SettingsFile(path).save({"system": "x" * 70_000})
    assert not path.exists()


def test_a_key_that_is_added_by_hand_below_what_was_saved_is_understood(path: Path) -> None:
    SettingsFile(path).save({"parameters": {}, "model": "demo"})
    path.write_text(path.read_text() + "theme = 'nord'\n")
    file = SettingsFile(path)
    assert (file.problems, file.preferences.theme) == ([], "nord")


def test_a_link_stays_one(path: Path) -> None:
    path.symlink_to("mine.toml")
    SettingsFile(path).save({"theme": "nord"})
    assert path.is_symlink() and "nord" in path.with_name("mine.toml").read_text()


LINES = st.lists(
    st.sampled_from(["# a", "x.y.z = 1", "look = 'demo'", "[parameters]", "window = 7", "[[z]]", "a = [\n1,\n]", ""]),
    max_size=6,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_any_file_says_the_same_after_a_change_but_for_what_was_changed(
    lines: list[str], end: str, whole: bool, marked: bool
) -> None:
    before = ("\ufeff" if marked else "") + end.join(lines) + (end if whole else "")
    changes = {"theme": "nord", "seed": None, "parameters": {"ngram": 3}}
    try:
        says = parsed(before)
        changed = edited(before, changes)
    except NotToml:
        return
    parameters = {**says.get("parameters", {}), "ngram": 3}
    assert parsed(changed) == {**says, "theme": "nord", "parameters": parameters}


def test_with_no_save_nothing_is_written(path: Path) -> None:
    with pytest.raises(SettingsRefused, match="--no-save"):
        SettingsFile(path, writable=False).save({"theme": "nord"})
    assert not path.exists()
