"""The files of a checkpoint: which are needed, local ones, and checks before a library reads them. Imports no torch."""

import hashlib
import json
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ladechat.files import seen

DEMO = "demo"
"""The name of the bundled model."""

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
"""The file that maps each weight to its shard."""

OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt")
"""The suffixes of weights in a format that can run code when it is read."""

GGUF = ".gguf"

PART = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)")
"""The end of the name of a GGUF file that is one part of a model."""

NO_MODEL = ("mmproj", "imatrix")
"""Words in the names of GGUF files that hold something else."""

PLAIN_NAME = re.compile(r"[\w. +-]+\.safetensors")
"""The name of a weights file: without a path, so that it is in the checkpoint's folder."""

READ = (".json", ".jinja", ".model", ".tiktoken", ".txt", ".safetensors")
"""The suffixes of the checkpoint files that are read, by us or by a library."""

ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""The files of an adapter (LoRA), as peft saves them."""

OTHER_COPY = "Use another copy of the model, one as transformers saves it."

LoadErrorCode = Literal[
    "model_not_found", "gated", "hub_unreachable", "no_safetensors", "unsupported_architecture", "missing_package",
    "load_failed", "disk_full", "out_of_memory",
]  # fmt: skip

ByteProgress = Callable[[int, int], None]
"""Called with the bytes downloaded so far, and their total."""

OBJECTS = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files that have to be JSON objects, where they exist."""

TEMPLATES = ("chat_template.jinja", "additional_chat_templates/*.jinja")
"""Files that have to be text."""

HINT = "Copy it again, or use another copy of the model, one as transformers saves it."
SPECIAL = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
KINDS: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}


class LoadError(Exception):
    """A model that cannot be loaded: the message says what and why, `hint` what to do."""

    def __init__(self, code: LoadErrorCode, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def local_folder(name: str) -> Path | None:
    """Return the folder of the bundled model or of a local checkpoint; None if there is none."""
    if name == DEMO:
        return Path(str(files("ladechat") / "demo"))
    path = known_path(name)
    return path if path is not None and path.is_dir() else None


def check_searchable(name: str) -> None:
    """Raise an error for a path in a folder without search permission: whether the path exists is unknown then.

    Raises:
        LoadError: it is such a path.
    """
    try:
        Path(name).expanduser().stat()
    except PermissionError as error:
        hint = "Ask for the right to read it, or give another model."
        raise LoadError("model_not_found", f"{name} cannot be looked for: {error.strerror}.", hint) from error
    except (OSError, RuntimeError, ValueError):
        return


def local_gguf(name: str) -> Path | None:
    """Return the GGUF file of this name on this machine, if there is one."""
    path = known_path(name)
    return path if path is not None and is_gguf(path) and seen(path, Path.is_file) else None


def only_gguf(folder: Path) -> Path | None:
    """Return the model in GGUF of a folder that has no other one: its file, or the first of its parts."""
    found: list[Path] = []
    with suppress(OSError):  # `check_kinds` says it
        found = sorted(folder.iterdir())
    packed = [
        file
        for file in found
        if is_gguf(file) and seen(file, Path.is_file) and not any(word in file.name.lower() for word in NO_MODEL)
    ]
    lone = len({PART.sub("-part", file.name) for file in packed}) == 1
    return packed[0] if lone and not any(file.suffix == ".safetensors" for file in found) else None


def known_path(name: str) -> Path | None:
    """Return the path of this name; None where the system allows no such path, such as thousands of characters."""
    try:
        path = Path(name).expanduser()
        path.is_dir()
    except (OSError, RuntimeError, ValueError):
        return None
    return path


def is_gguf(checkpoint: Path) -> bool:
    """Return whether a checkpoint is a GGUF file rather than a folder."""
    return checkpoint.suffix.lower() == GGUF and not seen(checkpoint, Path.is_dir)


def check_kinds(name: str, folder: Path) -> None:
    """Raise an error for named pipes and devices in place of files: reading one may never end.

    Raises:
        LoadError: there is one, or the folder cannot be read.
    """
    try:
        entries = [*folder.iterdir(), *(folder / "additional_chat_templates").glob("*")]
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}."
        raise LoadError("load_failed", message, "Make the folder readable for you, or give another one.") from error
    for path in entries:
        with suppress(OSError):  # a link to nothing
            what = SPECIAL.get(stat.S_IFMT(path.stat().st_mode)) if path.name.endswith(READ) else None
            if what is not None:
                raise LoadError("load_failed", f"The {path.name} of {name} is {what}, not a file.", OTHER_COPY)


def check_names(name: str, found: list[str]) -> None:
    """Raise an error for what is not a checkpoint, by the names of its files.

    Raises:
        LoadError: no config.json, no safetensors weights, or only those of an adapter.
    """
    weights = [file for file in found if file.endswith(".safetensors")]
    if {ADAPTER, ADAPTER_WEIGHTS} & {*found} and not {*weights} - {ADAPTER_WEIGHTS}:
        message = f"{name} is an adapter (LoRA): a change to the weights of another model, and not a whole one."
        hint = "Merge it into the model that it was trained on (peft: merge_and_unload, save_pretrained) ; give that."
        raise LoadError("no_safetensors", message, hint)
    packed = sorted(file for file in found if file.lower().endswith(GGUF))
    if packed and not weights:
        message = f"{name} has no *.safetensors file, but GGUF files such as {packed[0]}."
        of_the_hub = known_path(name) is None or not seen(Path(name).expanduser(), Path.is_dir)
        one = f"{name}:Q4_K_M" if of_the_hub else f"{name.rstrip('/')}/{packed[0]}"
        raise LoadError("no_safetensors", message, f"Name one of them, as in --model {one}.")
    if "config.json" not in found:
        message = f"{name} has no config.json, so it is not a checkpoint in the Hugging Face format."
        hint = "Give the folder or the hub id that has config.json, the tokenizer and the *.safetensors files."
        raise LoadError("model_not_found", message, hint)
    if not weights:
        others = sorted(file for file in found if Path(file).suffix in OTHER_WEIGHTS)
        kind = f"only {others[0]}, a format that can run code when it is read" if others else "no weights"
        hint = "Convert it with transformers: load it where you trust it, then model.save_pretrained(folder)."
        raise LoadError("no_safetensors", f"{name} has no *.safetensors file ({kind}).", hint)


def shards(folder: Path) -> list[str] | None:
    """Return the names of the weight files in a checkpoint's index; None where there is no valid index.

    Raises:
        LoadError: a name leads out of the folder, or is not that of a safetensors file.
    """
    try:
        names = sorted({str(file) for file in read_object(folder / INDEX)["weight_map"].values()})
    except (NoObject, LookupError, AttributeError):
        return None
    elsewhere = next((name for name in names if not PLAIN_NAME.fullmatch(name)), None)
    if elsewhere is not None:
        message = f"{INDEX} puts weights into {elsewhere[:80]!r}, and only *.safetensors files beside it are read."
        raise LoadError("no_safetensors", message, OTHER_COPY)
    return names


def weight_files(folder: Path) -> list[str] | None:
    """Return the names of a checkpoint's weight files, as transformers chooses them; None if there are none.

    Raises:
        LoadError: as `shards`.
    """
    return [SINGLE_FILE] if (folder / SINGLE_FILE).is_file() else shards(folder)


def in_words(count: int) -> str:
    """Return a number of bytes in words: a GB is 10⁹ bytes, as with disks and hubs."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def tokenizer_fingerprint(folder: Path) -> str | None:
    """Return the first 16 hex digits of the SHA-256 of the tokenizer's file: equal fingerprints, equal token ids."""
    for file in ("tokenizer.json", "tokenizer.model", "vocab.json"):
        if (folder / file).is_file():
            return hashlib.sha256((folder / file).read_bytes()).hexdigest()[:16]
    return None


class NoObject(ValueError):
    """A file without a JSON object; the message says what it is instead, as the end of a sentence."""


def check_files(folder: Path, name: str) -> None:
    """Raise an error for a checkpoint with a file that no library could read.

    Raises:
        LoadError: a file is not of the required kind; the message names it.
    """
    check_kinds(name, folder)
    objects = [folder / file for file in (OBJECTS if (folder / SINGLE_FILE).is_file() else (*OBJECTS, INDEX))]
    templates = sorted(path for pattern in TEMPLATES for path in folder.glob(pattern))
    for path in (*(path for path in objects if path.exists()), *templates):
        try:
            (_text if path in templates else read_object)(path)
        except NoObject as error:
            raise LoadError("load_failed", f"The {path.name} of {name} {error}.", HINT) from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        NoObject: it holds none, or cannot be read.
    """
    content = _text(path)
    try:
        found: Any = json.loads(content)
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


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise NoObject(f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise NoObject("is no UTF-8 text") from error
