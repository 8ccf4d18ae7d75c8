"""The text to train on: written by the model itself, or read from a file.

A chat model writes its own prompts as well (Xu et al. 2024, "Magpie", arXiv 2406.08464): given the start of a user's
turn, it continues with a message; it then answers that message, formatted by the chat template. So no data is needed,
and the maps learn from the model's own text.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedTokenizerBase,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)

from ladechat.engine.chat_format import ChatFormat, RefusedByTemplate
from ladechat.files import DAMAGE, open_file
from ladechat.model.checkpoint.chat_template import ChatTemplate
from ladechat.model.checkpoint.marks import Marks
from ladechat.model.loaded import LoadedModel
from ladechat.protocol import Message
from ladechat.train.chunks import Text
from ladechat.train.options import TrainRefused

FORMAT = "ladechat-text-1"
TOGETHER = 32
"""The conversations that are written in one batch."""
LONGEST_MESSAGE = 128
"""The maximum tokens of a message that the model writes for the user."""
MESSAGE_TEMPERATURE, MESSAGE_TOP_K = 1.0, 50
"""No top-p, which sorts the vocabulary for each token: with a small model that takes twice as long as all else."""
MARKER = "⟦message⟧"
"""A placeholder for a message, to see what the chat template puts around it."""
CHARACTERS_PER_TOKEN = 16
"""More than the average token of any useful text has."""
WASTED_BATCHES = 4
"""After this many batches in a row without a usable text, writing stops."""


class Draw(LogitsProcessor):
    """Draws one token for each row, and masks all others.

    `generate` itself draws from torch's global generator. Other users of it in this process would get the same numbers
    twice if it were seeded for this and restored afterwards.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores of the next tokens, (B, vocabulary): −inf except for one in each row."""
        drawn = torch.multinomial(scores.softmax(dim=-1), num_samples=1, generator=self._generator)
        return torch.full_like(scores, -torch.inf).scatter(1, drawn, 0.0)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes conversations.

    Attributes:
        longest: the maximum tokens of an answer; without a chat template, of the whole text.
        temperature: the temperature of answers; 0: greedy.
        seed: the seed of the random numbers.
    """

    loaded: LoadedModel
    longest: int
    temperature: float
    seed: int

    def batch(self, number: int, together: int = TOGETHER) -> list[Text]:
        """Return the texts of one batch, which depend only on its number. There may be fewer than `together`."""
        draw = Draw(torch.Generator(self.loaded.model.device).manual_seed(self.seed * 1_000_003 + number))
        opening = self._opening()
        if opening is None:
            return self._written([[self._bos()]] * together, draw)
        before, ends, stop = opening
        longest = min(LONGEST_MESSAGE, self.loaded.context_length // 4)
        how = [TemperatureLogitsWarper(MESSAGE_TEMPERATURE), TopKLogitsWarper(MESSAGE_TOP_K), draw]
        sampled = self._continued([before] * together, longest, self.loaded.eos_ids | ends, stop, how)
        prompts = [prompt for ids in sampled if (prompt := self._prompt(ids, ends, stop))]
        return self._written(prompts, draw) if prompts else []

    def _written(self, prompts: Sequence[list[int]], draw: Draw) -> list[Text]:
        """Return the prompts with their answers."""
        how = [TemperatureLogitsWarper(self.temperature), draw] if self.temperature else []
        room = self.loaded.context_length - max(map(len, prompts))
        answers = self._continued(prompts, min(self.longest, room), self.loaded.eos_ids, None, how)
        return [Text([*prompt, *ids], len(prompt)) for prompt, ids in zip(prompts, answers, strict=True) if ids]

    def _opening(self) -> tuple[list[int], frozenset[int], str | None] | None:
        """Return the tokens before a user's message, and the token or string that ends it; None without template."""
        tokenizer = self.loaded.tokenizer
        if not tokenizer.chat_template:
            return None
        try:
            text = ChatTemplate(tokenizer).text([Message(role="user", content=MARKER)])
        except TemplateError:
            return None
        before, marker, after = text.partition(MARKER)
        # A space at the end would become a token of its own, while the first word brings its own space.
        ids = tokenizer.encode(before.rstrip(" "), add_special_tokens=False)
        if not marker or not ids:
            return None
        known = tokenizer.added_tokens_decoder
        following = [token for token in tokenizer.encode(after, add_special_tokens=False) if token in known]
        if following:
            return ids, frozenset(following[:1]), None
        return ids, frozenset(), after.strip().partition("\n")[0] or None

    def _prompt(self, ids: list[int], ends: frozenset[int], stop: str | None) -> list[int] | None:
        """Return the prompt for a message; None if it is empty, or there is no room for it."""
        included = [token for token in ids if token not in ends and token not in self.loaded.eos_ids]
        tokenizer = self.loaded.tokenizer
        content = str(tokenizer.decode(included, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        content = (content.partition(stop)[0] if stop else content).strip()
        if not content:
            return None
        try:
            prompt = ChatFormat(tokenizer).encode([Message(role="user", content=content)])
        except RefusedByTemplate:
            return None
        return prompt if len(prompt) < self.loaded.context_length // 2 else None

    def _bos(self) -> int:
        loaded = self.loaded
        found = (loaded.tokenizer.bos_token_id, loaded.model.config.get_text_config().bos_token_id)
        return int(next((token for token in found if isinstance(token, int)), min(loaded.eos_ids, default=0)))

    @torch.inference_mode()
    def _continued(
        self,
        prompts: Sequence[list[int]],
        most: int,
        ends: frozenset[int],
        stop: str | None,
        how: Sequence[LogitsProcessor],
    ) -> list[list[int]]:
        """Return what `generate` writes after each prompt, including the end: the argmax after the processors `how`."""
        longest, device = max(map(len, prompts)), self.loaded.model.device
        ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts], device=device)
        seen = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
        config = GenerationConfig(
            max_new_tokens=most,
            do_sample=False,
            eos_token_id=sorted(ends) or None,
            pad_token_id=min(ends, default=0),
            use_cache=True,
            stop_strings=[stop] if stop else None,
        )
        output = self.loaded.model.generate(
            ids,
            attention_mask=seen,
            generation_config=config,
            logits_processor=LogitsProcessorList(how),
            **({"tokenizer": self.loaded.tokenizer} if stop else {}),
        )
        return [_up_to_the_end(row, ends) for row in output[:, longest:].tolist()]


def _up_to_the_end(ids: list[int], ends: frozenset[int]) -> list[int]:
    """Return the ids up to the first end, inclusive."""
    end = next((place for place, token in enumerate(ids) if token in ends), len(ids))
    return ids[: end + 1]


class TextFile:
    """Texts in a file of JSON lines: a header, then one batch a line. A half-written last line is ignored.

    It is created if it is missing. `made_by` is all that the text depends on: the model, the seed …

    Raises:
        TrainRefused: the file is something else, damaged, or was made with other options, or has ids beyond the
            vocabulary.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: Path, made_by: dict[str, Any], vocabulary: int) -> None:
        self._path, self.batches = path, 0
        self.texts: list[Text] = []
        header = {"format": FORMAT, **made_by}
        lines = list(_whole_lines(path))
        if not lines:
            self._append(header)
            return
        found = _object(path, lines[0])
        if found.get("format") != FORMAT:
            raise TrainRefused(f"{path} is no text that ladechat wrote; remove it, or give --out another name.")
        other = next((name for name in header if found.get(name) != header[name]), None)
        if other is not None:
            raise TrainRefused(f"{path} was written with another {other}; remove it, or give --out another name.")
        for line in lines[1:]:
            self.texts += _texts(path, line)
            self.batches += 1
        if not _all_below(self.texts, vocabulary):
            raise _damaged(path)

    @property
    def tokens(self) -> int:
        """The number of tokens in all texts."""
        return sum(len(text.tokens) for text in self.texts)

    def add(self, texts: Sequence[Text]) -> None:
        """Append a batch, and flush it to the disk.

        Raises:
            OSError: it cannot be written, as on a full disk; earlier batches are.
        """
        self._append({"texts": [[text.answer, text.tokens] for text in texts]})
        self.texts += texts
        self.batches += 1

    def _append(self, content: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(content, separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def write_text(file: TextFile, writer: Writer, tokens: int, on_tokens: Callable[[int], None]) -> None:
    """Let the model write until there are `tokens` tokens; call `on_tokens` with the present number.

    Raises:
        TrainRefused: the model writes nothing.
    """
    wasted = 0
    while file.tokens < tokens:
        texts = writer.batch(file.batches)
        wasted = 0 if texts else wasted + 1
        if wasted == WASTED_BATCHES:
            raise TrainRefused("The model ends its texts before it begins them; give --text FILE to train on.")
        file.add(texts)
        on_tokens(file.tokens)


def read_text(path: Path, tokenizer: PreTrainedTokenizerBase, tokens: int) -> list[Text]:
    """Return the first tokens of a file: plain text, or a .jsonl that ladechat wrote for a model with the same tokens.

    Raises:
        TrainRefused: it cannot be read, or is empty.
    """
    try:
        if path.suffix == ".jsonl":
            texts = [text for line in list(_whole_lines(path, mend=False))[1:] for text in _texts(path, line)]
        else:
            with TextIOWrapper(open_file(path), encoding="utf-8") as file:
                content = file.read(CHARACTERS_PER_TOKEN * tokens)
            texts = [Text(Marks(tokenizer).whole_text(content)[:tokens])] if content.strip() else []
    except UnicodeDecodeError as error:
        raise TrainRefused(f"{path} is no plain text in UTF-8; give --text another file.") from error
    except OSError as error:
        raise TrainRefused(f"{path} cannot be read: {error.strerror or error}; give --text another file.") from error
    if not texts:
        raise TrainRefused(f"{path} holds no text; give --text another file.")
    if not _all_below(texts, len(tokenizer)):
        raise TrainRefused(f"{path} holds tokens that this model does not have; give --text another file.")
    return list(up_to(texts, tokens))


def up_to(texts: Sequence[Text], tokens: int) -> Iterator[Text]:
    """Yield the first texts, until they have `tokens` tokens."""
    for text in texts:
        if tokens <= 0:
            return
        yield text
        tokens -= len(text.tokens)


def _whole_lines(path: Path, mend: bool = True) -> Iterator[bytes]:
    """Yield the complete lines. With `mend`, an incomplete last one is cut off the file."""
    if mend and not path.exists():
        return
    whole = 0
    with open_file(path) as file:
        for line in file:
            if line.endswith(b"\n"):
                whole += len(line)
                yield line
    if mend and whole < path.stat().st_size:
        os.truncate(path, whole)


def _object(path: Path, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    except DAMAGE:
        pass
    raise _damaged(path)


def _texts(path: Path, line: bytes) -> list[Text]:
    try:
        found = [Text([int(token) for token in tokens], int(answer)) for answer, tokens in _object(path, line)["texts"]]
    except DAMAGE as error:
        raise _damaged(path) from error
    if any(not one.tokens or min(one.tokens) < 0 or not 0 <= one.answer <= len(one.tokens) for one in found):
        raise _damaged(path)
    return found


def _all_below(texts: Sequence[Text], vocabulary: int) -> bool:
    return all(max(text.tokens) < vocabulary for text in texts)


def _damaged(path: Path) -> TrainRefused:
    return TrainRefused(f"{path} is damaged; remove it, or give another file.")
