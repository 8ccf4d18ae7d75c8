"""A user's TOML text: its values, their lines, and changes of single settings that leave the rest as it is."""

import codecs
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit

BOM = codecs.BOM_UTF8.decode()
"""Some editors write it before the first line."""
MAY_END = re.compile(r"\"\"\"|'''|[\]}]")
"""Matches a line that can end a value of several lines."""
MOST_ENDS = 300
"""The most such lines of one value that are tried: each try parses the value again."""


class NotToml(ValueError):
    """The reason why a text is not valid TOML, with the line, as the end of a sentence."""


def parsed(text: str) -> dict[str, Any]:
    """Return the content of a text.

    Raises:
        NotToml: it is not valid TOML.
    """
    text = text.removeprefix(BOM)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(str(error).replace("at end of document", f"at line {_unreadable(text)}")) from error
    except RecursionError as error:
        raise NotToml(f"a value is nested too deeply (at line {_unreadable(text)})") from error
    except ValueError as error:
        raise NotToml(f"a number has too many digits (at line {_unreadable(text)})") from error


def _unreadable(text: str) -> int:
    """Return the first line of the first statement that cannot be read."""
    return next((line for line, says in _statements(text) if says is None), 1)


def line_of(text: str, *path: str) -> int | None:
    """Return the line, from 1, of the statement that sets a key, given after its tables; None if there is none."""
    for line, says in _statements(text.removeprefix(BOM)):
        value: Any = says
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return line
    return None


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """Return a text with these settings changed; None removes one, and a mapping changes these keys of a table.

    All else stays as it is: comments, order, line ends, a byte order mark.

    Raises:
        NotToml: the result would not be valid TOML, or would have another content.
    """
    clean = {name: _clean(value) for name, value in changes.items()}
    content = text.removeprefix(BOM)
    if content and not content.endswith("\n"):
        content += "\n"
    windows = "\r\n" in content and not re.search(r"(?<!\r)\n", content)
    try:
        document = tomlkit.parse(content)
        for name, value in clean.items():
            if isinstance(value, Mapping):
                if value:  # keys that are added below an empty table by hand would belong to it
                    document.setdefault(name, tomlkit.table()).update(value)
            elif value is None:
                document.pop(name, None)
            else:
                document[name] = value
        content = tomlkit.dumps(document)
    except Exception as error:  # tomlkit accepts less than `tomllib`, and raises many types
        raise NotToml(f"it cannot be changed without changing more: {error}") from error
    if windows:
        content = re.sub(r"(?<!\r)\n", "\r\n", content)
    if not _same(parsed(content), _changed(parsed(text), clean)):
        raise NotToml("it cannot be changed without changing more")
    return (BOM if text.startswith(BOM) else "") + content


def _changed(says: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content that a text has to have after these changes."""
    tables = {name: {**says.get(name, {}), **value} for name, value in changes.items() if isinstance(value, Mapping)}
    merged = {name: value for name, value in {**says, **changes, **tables}.items() if value is not None}
    return {name: value for name, value in merged.items() if name in says or value != {}}


def _clean(value: Any) -> Any:
    """Return a value as a UTF-8 file can contain it."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; NaN equals itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))


def _statements(text: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the first line of each statement, from 1, and its content below its table; None if it cannot be read.

    A statement is a line `key = value` or `[table]`, or several lines if its value spans them.
    """
    header = statement = ""
    began, tried = 1, 0
    for number, line in enumerate(text.split("\n"), start=1):
        began, tried = (began, tried) if statement else (number, 0)
        statement += line + "\n"
        if number > began and not MAY_END.search(line):
            continue
        tried += 1
        if tried > MOST_ENDS:
            break
        is_header = statement.lstrip().startswith("[")
        says = None
        try:
            says = tomllib.loads(statement if is_header else header + statement)
        except tomllib.TOMLDecodeError:
            continue  # its value continues in the next line
        except (ValueError, RecursionError):
            pass
        yield began, says
        header, statement = statement if is_header else header, ""
    if statement:
        yield began, None
