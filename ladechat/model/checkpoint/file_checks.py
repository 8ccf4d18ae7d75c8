"""Checks the small files of a checkpoint before a library reads them, so that an error names the file.

The libraries assume a JSON object; for anything else they raise Python's bare errors.
"""

import json
from pathlib import Path
from typing import Any

from ladechat.model.checkpoint.files import INDEX, SINGLE_FILE, LoadError, check_kinds

OBJECTS = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files that have to be JSON objects, where they exist."""

TEMPLATES = ("chat_template.jinja", "additional_chat_templates/*.jinja")
"""Files that have to be text."""

HINT = "Copy it again, or use another copy of the model, one as transformers saves it."

KINDS: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}


class NoObject(ValueError):
    """A file without a JSON object; the message says what it is instead, as the end of a sentence."""


def check_files(folder: Path, name: str) -> None:
    """Raise an error for a checkpoint with a file that no library could read.

    Args:
        folder: the checkpoint's folder.
        name: its name in messages.

    Raises:
        LoadError: a file is not of the required kind; the message names it.
    """
    check_kinds(name, folder)
    objects = OBJECTS if (folder / SINGLE_FILE).is_file() else (*OBJECTS, INDEX)
    for file in objects:
        if (folder / file).exists():
            try:
                read_object(folder / file)
            except NoObject as error:
                raise LoadError("load_failed", f"The {file} of {name} {error}.", HINT) from error
    for path in sorted(path for pattern in TEMPLATES for path in folder.glob(pattern)):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise LoadError("load_failed", f"The {path.name} of {name} is no UTF-8 text.", HINT) from error
        except OSError as error:
            message = f"The {path.name} of {name} cannot be read: {error.strerror or error}."
            raise LoadError("load_failed", message, HINT) from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        NoObject: it holds none, or cannot be read.
    """
    try:
        content = path.read_bytes()
        found: Any = json.loads(content.decode())
    except OSError as error:
        raise NoObject(f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise NoObject("is no UTF-8 text") from error
    except json.JSONDecodeError as error:
        where = f"is no JSON: line {error.lineno}, column {error.colno}"
        raise NoObject(where if content.strip() else "is empty") from error
    except RecursionError:  # no cause: its trace is as long as the nesting is deep
        raise NoObject("is nested too deeply") from None
    except ValueError as error:
        raise NoObject("holds a number of thousands of digits") from error
    if not isinstance(found, dict):
        raise NoObject(f"holds {KINDS.get(type(found), 'null')}, not an object")
    return found
