"""The tokenizer of a checkpoint folder, checked against its tokenizer.json.

transformers 5 rebuilds many tokenizers by the class named in tokenizer_config.json, and takes only the vocabulary from
tokenizer.json. Where a checkpoint names a wrong class, as R1's distillations name Llama's for a byte-level vocabulary,
spaces are lost in prompts and answers. tokenizer.json describes the tokenizer that the model was trained with.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import LoadError

FILE = "tokenizer.json"
PARTS = ("normalizer", "pre_tokenizer", "decoder")
"""The parts of a tokenizer that are compared. The post-processor is not: a chat template already has its tokens."""

TRAITS = ("unk_token", "fuse_unk", "byte_fallback", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
"""The properties of a BPE model that are compared, in addition to its vocabulary."""

TELLING = (
    "Hello world, how are you?", " leading", "trailing ", "two  spaces", "a\n\nb\r\n\tc", "1234567 3.14", "I'll don't",
    "Größe, naïve café – über", "你好，世界", "Привет, мир", "😀🎉", "e\u0301 ﬁ ① ｆｕｌｌ",
    "def f(x):\n    return x+1",
)  # fmt: skip
"""Texts that different kinds of tokenizers split differently."""

HINT = "Put tokenizer.json or tokenizer.model beside the weights."


def checkpoint_tokenizer(folder: Path, name: str) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a checkpoint: the one transformers makes, unless tokenizer.json differs.

    Raises:
        LoadError: none can be read, or none agrees with tokenizer.json.
    """
    file = _file(folder / FILE, name)
    options = {"trust_remote_code": False, "local_files_only": True}
    try:
        made: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder, **options)
        if file is None or same(made, file):
            return made
    except Exception as error:  # on files written by others the libraries may raise anything
        if file is None:
            message = f"{name} has no tokenizer that can be read: {first_sentence(error)}"
            raise LoadError("load_failed", message, HINT) from error
    return _of_file(folder, name, file)


def same(made: PreTrainedTokenizerBase, file: Tokenizer) -> bool:
    """Return whether a tokenizer agrees with a tokenizer.json. It may have further tokens, from other files."""
    backend = getattr(made, "backend_tokenizer", None)
    marks = [str(token) for token in file.get_added_tokens_decoder().values()]
    try:
        return (
            (backend is None or _facts(backend) == _facts(file))
            and file.get_vocab().items() <= made.get_vocab().items()
            and all(_agree(made, file, text) for text in (*TELLING, " ".join(f"a {mark} b{mark}c" for mark in marks)))
        )
    except Exception:  # it does not work at all, as with a `model_max_length` that is no number
        return False


def _agree(made: PreTrainedTokenizerBase, file: Tokenizer, text: str) -> bool:
    """Return whether both encode a text to the same tokens, and decode these to the same text."""
    token_ids = file.encode(text, add_special_tokens=False).ids
    if list(made.encode(text, add_special_tokens=False)) != token_ids:
        return False
    back = made.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return bool(back == file.decode(token_ids, skip_special_tokens=False))


def _facts(tokenizer: Tokenizer) -> list[Any]:
    """Return the settings of a tokenizer apart from its vocabulary."""
    parts = [getattr(tokenizer, part) for part in PARTS]
    states = [None if part is None else json.loads(part.__getstate__()) for part in parts]
    return [*states, type(tokenizer.model), *(getattr(tokenizer.model, trait, None) for trait in TRAITS)]


def _file(path: Path, name: str) -> Tokenizer | None:
    """Return the tokenizer in tokenizer.json, without truncation and padding; None where there is no such file."""
    if not path.exists():
        return None
    try:
        file = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        message = f"The {FILE} of {name} cannot be read: {first_sentence(error)}"
        raise LoadError("load_failed", message, "Copy it again, or use another copy of the model.") from error
    file.no_truncation()
    file.no_padding()
    return file


def _of_file(folder: Path, name: str, file: Tokenizer) -> PreTrainedTokenizerBase:
    """Return the tokenizer of tokenizer.json, with the template, the roles and the further tokens of the other files.

    Raises:
        LoadError: these files contradict tokenizer.json.
    """
    try:
        named: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        if same(named, file):
            return named
        further = sorted(named.added_tokens_decoder.items())
        known = file.get_vocab()
        own = Tokenizer.from_str(file.to_str())
        own.add_tokens([token for _, token in further if str(token) not in known])
        roles = {role: str(token) for role, token in named.special_tokens_map.items() if isinstance(token, str)}
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=own, chat_template=named.chat_template, clean_up_tokenization_spaces=False, **roles
        )
        agrees = same(tokenizer, file)
    except Exception as error:  # as above
        message = f"The tokenizer of {name} cannot be built from its {FILE}: {first_sentence(error)}"
        raise LoadError("load_failed", message, HINT) from error
    if not agrees:
        message = f"The tokenizer_config.json of {name} asks for another tokenizer than its {FILE} holds."
        raise LoadError("load_failed", message, "Use another copy of the model, one as transformers saves it.")
    return tokenizer
