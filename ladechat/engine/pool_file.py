"""The n-gram pool in a file, for the next session: token ids, and whose tokens they are. Nothing in it is ever run."""

from pathlib import Path

import msgspec

from ladechat.decoder.drafters.drafter import EARLIER
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.files import read_file, replace_file

FORMAT = "ladechat pool"
VERSION = 1
UNKNOWN = "unknown"
"""The fingerprint of a tokenizer that has no file of its own."""
MAX_BYTES = 64 * 1024 * 1024
"""Of the file; a pool keeps far less."""
OWNER_ONLY = 0o600


class PoolFileError(Exception):
    """A file that is no pool of this model, or cannot be read or written: what, why and what to do."""


class _Content(msgspec.Struct, frozen=True):
    format: str
    version: int
    tokenizer: str
    ngrams: list[tuple[int, ...]]


def read(path: Path, pool: NGramPool, tokenizer: str, vocabulary: int) -> int:
    """Teach a pool what a file holds, the latest used last; how many n-grams. A file that is not there holds none.

    Args:
        path: of the file.
        pool: what learns.
        tokenizer: fingerprint of the tokenizer whose ids they have to be.
        vocabulary: ids from here on are refused.

    Raises:
        PoolFileError: the file cannot be read, is something else or damaged, or belongs to another tokenizer.
    """
    if tokenizer == UNKNOWN:
        raise PoolFileError("The model's tokenizer cannot be told from others, so no file is sure to be its own pool.")
    try:
        content = msgspec.msgpack.decode(read_file(path, MAX_BYTES), type=_Content)
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
    """Put all that a pool holds into a file that only its user can read, whole or not at all.

    With the model's tokenizer, what was said can be read from it.

    Raises:
        PoolFileError: it cannot be written.
    """
    content = _Content(FORMAT, VERSION, tokenizer, list(pool.ngrams()))
    try:
        replace_file(path, msgspec.msgpack.encode(content), OWNER_ONLY, make_folder=False)
    except OSError as error:
        why = error.strerror or error
        raise PoolFileError(f"{path} cannot be written: {why}; give --pool another name.") from error
