"""Saves the n-gram pool for the next session: token ids and the tokenizer's fingerprint. Nothing is executed."""

from pathlib import Path

import msgspec

from ladechat.decoder.drafters.drafter import EARLIER
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.files import MOST_BYTES, PRIVATE, read_file, replace_file

FORMAT = "ladechat pool"
VERSION = 1
UNKNOWN = "unknown"
"""The fingerprint of a tokenizer that has no file of its own."""


class PoolFileError(Exception):
    """A file that is no pool of this model, or cannot be read or written. The message says what to do."""


class _Content(msgspec.Struct, frozen=True):
    format: str
    version: int
    tokenizer: str
    ngrams: list[tuple[int, ...]]


def read(path: Path, pool: NGramPool, tokenizer: str, vocabulary: int) -> int:
    """Add the n-grams of a file to a pool, the latest used last, and return how many are new. A missing file has none.

    Raises:
        PoolFileError: the file cannot be read, is something else or damaged, belongs to a tokenizer with another
            fingerprint, or has ids beyond the vocabulary.
    """
    if tokenizer == UNKNOWN:
        raise PoolFileError("The model's tokenizer cannot be told from others, so no file is sure to be its own pool.")
    try:
        content = msgspec.msgpack.decode(read_file(path, MOST_BYTES), type=_Content)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise PoolFileError(f"{path} cannot be read: {error.strerror or error}; give --pool another name.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoolFileError(f"{path} is no pool of n-grams, or damaged; give --pool another name.") from error
    if (content.format, content.version) != (FORMAT, VERSION):
        raise PoolFileError(f"{path} is no pool of n-grams that this ladechat reads; give --pool another name.")
    if content.tokenizer != tokenizer:
        raise PoolFileError(f"{path} was filled with another model's tokens; give --pool another name for this model.")
    if any(len(one) < 2 or min(one) < 0 or max(one) >= vocabulary for one in content.ngrams):
        raise PoolFileError(f"{path} is damaged: not all of it are n-grams of this model's tokens; remove it.")
    return sum(pool.add(ngram, EARLIER) for ngram in content.ngrams)


def write(path: Path, pool: NGramPool, tokenizer: str) -> None:
    """Write all n-grams of a pool to a file that only its user can read, atomically.

    Only the user, because with the model's tokenizer the conversation can be read from it.

    Raises:
        PoolFileError: it cannot be written.
    """
    content = _Content(FORMAT, VERSION, tokenizer, list(pool.ngrams()))
    try:
        replace_file(path, msgspec.msgpack.encode(content), PRIVATE, make_folder=False)
    except OSError as error:
        why = error.strerror or error
        raise PoolFileError(f"{path} cannot be written: {why}; give --pool another name.") from error
