"""The saved settings: one table for the file, its defaults and docs/settings.md."""

import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import field
from platformdirs import user_config_path

from ladechat import catalog
from ladechat.files import PRIVATE, matching, read_file, replace_file
from ladechat.protocol import SamplingSettings, Value
from ladechat.protocol.values import Positive, Text, setting_meta
from ladechat.toml_text import NotToml, edited, line_of, parsed

NAME = "settings.toml"
MOST_BYTES = 64 * 1024
"""The largest settings file, in bytes: a longer one is something else."""
PARAMETERS = "parameters"
"""The table of the file for the parameters of decoders, by name."""
KEYS = "keys"
"""The table of the file for the user's own keys, by the names of actions."""
NEW_FILE = "# The settings of ladechat: docs/settings.md explains them all.\n"
LEFT_OUT = " It is left out."
NOTHING_SAVED = "Nothing is saved: ladechat was started with --no-save."
PRESET = re.compile(r"[^\W_][\w-]{0,39}")
"""The names of presets."""


class Preferences(SamplingSettings, frozen=True, kw_only=True):
    """The settings that a file can have, each with its description and range."""

    theme: Annotated[str | None, setting_meta("The colour theme.", "the name of a theme")] = None
    look: Annotated[
        Literal["hues", "demo"],
        setting_meta("A hue for each pass, or blue for what came in parallel.", "hues or demo"),
    ] = "hues"
    panels: Annotated[bool, setting_meta("Whether the panels are shown.", "true or false")] = True
    model: Annotated[
        Text,
        setting_meta(
            "A folder, a GGUF file, a hub id, a server's address, or demo, the bundled model.",
            "a name, a path or an address in quotes",
        ),
    ] = "demo"
    engine: Annotated[
        Text | None,
        setting_meta("A command that speaks the protocol, in the place of a model.", "a command in quotes"),
    ] = None
    decoder: Annotated[str | None, setting_meta("How answers are decoded.", "the name of a decoder")] = None
    parameters: Annotated[
        dict[str, Value], setting_meta("Of decoders, by their names: a table of its own.", "a table")
    ] = field(default_factory=dict)
    keys: Annotated[dict[str, str], setting_meta("Of actions, by their names: a table of its own.", "a table")] = field(
        default_factory=dict
    )
    system: Annotated[Text, setting_meta("The system prompt: how the model should behave.", "a text in quotes")] = ""
    max_new_tokens: Annotated[
        Positive | None, setting_meta("The longest answer, in tokens.", "a whole number of at least 1")
    ] = None


class Setting(NamedTuple):
    """A row of the table.

    Attributes:
        name: its key in the file.
        kind: its Python type, with its range.
        plain: the same without the range.
        help: its description, in a sentence.
        wants: its valid values, in words.
        default: its value if it is not set.
        short: its description in at most 48 characters.
        option: its short form on the command line; "" if it has none.
    """

    name: str
    kind: Any
    plain: Any
    help: str
    wants: str
    default: Any
    short: str
    option: str

    def problem(self, value: Any) -> str | None:
        """Return why it cannot have this value, as a sentence; None if it can."""
        try:
            msgspec.convert(value, self.kind)
        except msgspec.ValidationError:
            return f"{self.name} has to be {self.wants}, not {_shortened(value)}."
        return None


def _settings() -> Iterator[Setting]:
    hints = get_type_hints(Preferences, include_extras=True)
    defaults = Preferences()
    for name in sorted(hints, key=lambda name: name in SAMPLING_NAMES):  # the file's own settings first
        described = next(kind for kind in (hints[name], *get_args(hints[name])) if hasattr(kind, "__metadata__"))
        meta = described.__metadata__[-1]
        kind, plain = hints[name], described.__origin__
        yield Setting(name, kind, plain, meta.description, default=getattr(defaults, name), **meta.extra)


SAMPLING_NAMES = SamplingSettings.__struct_fields__
"""The names of the sampling settings."""
SETTINGS = {setting.name: setting for setting in _settings()}
"""All settings, by name."""


class SettingsRefused(Exception):
    """The reason why the file is not changed, in a sentence."""


class Problem(NamedTuple):
    """Something in the file that is invalid.

    Attributes:
        line: its line; None if that is unknown, or if nothing in the file can be read.
        what: what is wrong, and the consequence.
        sentence: the same, with the file and the line.
    """

    line: int | None
    what: str
    sentence: str


class SettingsFile:
    """Reads the settings, and changes single ones; everything else in the file stays as it is. By default it is in the
    user's config folder.

    Settings that cannot be read have their defaults, and are never overwritten.

    Attributes:
        preferences: the settings read.
        problems: the invalid settings, by line.
        begun_with: the name of the preset that the program was started with; "" without any.
    """

    def __init__(self, path: Path | None = None, *, writable: bool = True) -> None:
        self.path = path or user_config_path("ladechat") / NAME
        self.writable = writable
        self.begun_with = ""
        self.problems: list[Problem] = []
        self._refused: dict[str, Any] = {}
        try:
            self._text = _read(self.path)
        except SettingsRefused as refused:
            what = f"{refused} Nothing of it holds, and nothing is written to it."
            self.problems.append(Problem(None, what, what))
            self._text = ""
        self.preferences, wrong = _understood(self._text)
        for keys, problem in wrong.items():
            self.leave_out(keys, problem)

    @property
    def names(self) -> Set[str]:
        """The settings that the file has, with a valid value."""
        return {key for key, value in parsed(self._text).items() if _problem(key, value) is None}

    @property
    def presets(self) -> list[str]:
        """The names of the presets: files of this form, in a folder beside it."""
        return sorted(path.stem for path in matching(self.path.parent, "presets/*.toml") if PRESET.fullmatch(path.stem))

    def preset(self, name: str, *, new: bool = False) -> "SettingsFile":
        """Return the file of a preset.

        Raises:
            SettingsRefused: no preset can have this name; or there is none, or it has a fault, unless it may be `new`.
        """
        if not PRESET.fullmatch(name):
            raise SettingsRefused(f"A preset is named by letters, digits, - and _, at most 40, not {_shortened(name)}.")
        file = SettingsFile(self.path.parent / "presets" / f"{name}.toml", writable=self.writable)
        if not (new or file.names or file.problems):
            raise SettingsRefused(f"There is no preset {name}; there are: {', '.join(self.presets) or 'none'}.")
        if file.problems and not new:
            fault = file.problems[0].sentence.removesuffix(LEFT_OUT)
            raise SettingsRefused(f"The preset {name} cannot be taken: {fault}")
        return file

    def refuse(self, name: str, problem: str) -> None:
        """Ignore a value that only the app can check, such as a theme: it is reported like the other problems."""
        self._refused[name] = getattr(self.preferences, name)
        self.leave_out((name,), problem)

    def leave_out(self, keys: tuple[str, ...], problem: str) -> None:
        """Report why a value is ignored, which is named by its table, if it is in one, and its key."""
        line, what = line_of(self._text, *keys), f"{problem}{LEFT_OUT}"
        place = f"{self.path}, line {line}" if line else f"{self.path}"
        self.problems.append(Problem(line, what, f"{place}: {what}"))
        self.problems.sort(key=lambda one: one.line or 0)

    def save(self, changes: Mapping[str, Any]) -> None:
        """Write these settings, by name; None removes one.

        Raises:
            SettingsRefused: the file cannot be read or written, or has an unreadable value for one of them.
        """
        if not self.writable:
            raise SettingsRefused(NOTHING_SAVED)
        text = _read(self.path)
        says = parsed(text)
        refused = [(name,) for name, value in self._refused.items() if says.get(name) == value]
        for *tables, key in (*_understood(text)[1], *refused):
            if key in (changes.get(tables[0], {}) if tables else changes):
                raise SettingsRefused(f"{self.path}: {key} could not be read, and is left as it is; correct it there.")
        try:
            content = edited(text or NEW_FILE, changes).encode()
            if len(content) > MOST_BYTES:
                raise SettingsRefused(f"{self.path} would be larger than {MOST_BYTES // 1024} KiB; nothing is written.")
            replace_file(self.path, content, PRIVATE)
        except NotToml as error:
            raise SettingsRefused(f"{self.path} is left as it is: {error}; change it by hand.") from error
        except OSError as error:
            raise SettingsRefused(f"{self.path} cannot be written: {error.strerror or error}.") from error


def _understood(text: str) -> tuple[Preferences, dict[tuple[str, ...], str]]:
    """Return the valid settings in a TOML text, and the problems with the others, by table and key."""
    good: dict[str, Any] = {}
    wrong: dict[tuple[str, ...], str] = {}
    for key, value in parsed(text).items():
        problem = _problem(key, value)
        if problem is not None:
            wrong[key,] = problem
        elif (problem_of := _IN_TABLES.get(key)) is not None:
            problems = {name: problem_of(name, one) for name, one in value.items()}
            wrong |= {(key, name): one for name, one in problems.items() if one is not None}
            good[key] = {name: one for name, one in value.items() if problems[name] is None}
        else:
            good[key] = value
    return msgspec.convert(good, Preferences), wrong


def _problem(key: str, value: Any) -> str | None:
    """Return why a setting cannot have this value, as a sentence; None if it can."""
    setting = SETTINGS.get(key)
    if setting is None:
        return f"there is no setting {_shortened(key)}."
    if key == "decoder" and isinstance(value, str) and value not in catalog.DECODERS:
        return f"there is no decoder {_shortened(value)}; there are {', '.join(catalog.DECODERS)}."
    if key in _IN_TABLES and isinstance(value, dict):
        return None  # each of its values is judged alone
    return setting.problem(value)


def _parameter_problem(name: str, value: Any) -> str | None:
    """Return the same for a decoder's parameter; a value has to be valid for all decoders that have it."""
    declared = [one for info in catalog.DECODERS.values() for one in info.parameters if one.name == name]
    if not declared and name in SETTINGS:
        return f"{name} is no parameter of a decoder: it belongs above the line [{PARAMETERS}]."
    if not declared:
        return f"no decoder has a parameter {_shortened(name)}."
    try:
        msgspec.convert(value, Value)
    except msgspec.ValidationError:
        return f"{name} has to be a whole number, or true or false, not {_shortened(value)}."
    problem = next(filter(None, (catalog.problem(one, value) for one in declared)), None)
    return problem and f"{name} {problem}."


def _key_problem(name: str, value: Any) -> str | None:
    """Return the same for a key; whether it can be one, only the app knows."""
    return None if isinstance(value, str) else f"{name} has to be a key in quotes, not {_shortened(value)}."


_IN_TABLES = {PARAMETERS: _parameter_problem, KEYS: _key_problem}
"""The settings that are tables, and what judges their values."""


def _read(path: Path) -> str:
    """Return the text of a file that is valid TOML; "" if there is no file.

    Raises:
        SettingsRefused: the file cannot be read or is not valid TOML.
    """
    try:
        content = read_file(path, MOST_BYTES)
        text = content.decode()
        parsed(text)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise SettingsRefused(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsRefused(f"{path} is not written in UTF-8 (at line {line}).") from error
    except NotToml as error:
        raise SettingsRefused(f"{path} is not TOML: {error}.") from error
    return text


def _shortened(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
