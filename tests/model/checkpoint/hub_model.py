"""A model on the hub of the tests: its files, how it is fetched, and where its weights go."""

import hashlib
import json
import random
from pathlib import Path

from huggingface_hub import constants

from ladechat.model.checkpoint.files import INDEX, ByteProgress, LoadError, LoadErrorCode
from ladechat.model.checkpoint.hub import download
from tests.model.refusals import assert_refused

NAME = "owner/model"
WEIGHTS = random.Random(0).randbytes(200_000)
SMALL = {"config.json": b"{}", "tokenizer.json": b'{"model": {}}', "chat_template.jinja": b"hello"}
FILES = {**SMALL, "model.safetensors": WEIGHTS}
PARTS = {"model-00001-of-00002.safetensors": WEIGHTS[:120_000], "model-00002-of-00002.safetensors": WEIGHTS[120_000:]}
SHARDED = {
    **SMALL,
    **PARTS,
    INDEX: json.dumps({"weight_map": {f"layer.{number}": file for number, file in enumerate(PARTS)}}).encode(),
}

Seen = list[tuple[int, int]]


def fetched(seen: Seen | None = None) -> Path:
    return download(NAME, lambda done, total: seen.append((done, total)) if seen is not None else None)


def fetched_weights() -> bytes:
    return (fetched() / "model.safetensors").read_bytes()


def assert_not_fetched(
    code: LoadErrorCode, says: str, name: str = NAME, progress: ByteProgress = lambda done, total: None
) -> LoadError:
    """It is refused with this code, in a sentence that says this. The error, whose hint may be looked at."""
    return assert_refused(lambda: download(name, progress), code, says)


def blob() -> Path:
    """Where the weights go."""
    folder = Path(constants.HF_HUB_CACHE) / "models--owner--model" / "blobs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / hashlib.sha256(WEIGHTS).hexdigest()


def partial() -> Path:
    return blob().with_name(f"{blob().name}.ladechat.incomplete")
