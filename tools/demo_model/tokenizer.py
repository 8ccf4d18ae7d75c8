"""The tokenizer of the bundled model: byte-level BPE, trained on the corpus it is to cut."""

from collections.abc import Iterable
from itertools import chain, repeat

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 3072
CONTEXT = 2048

UNKNOWN, BEGIN, END, ASK, ANSWER, SYSTEM, SYSTEM_END = range(7)
SPECIAL = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>")
"""Those of Llama-2-Chat; the marks of a turn are single tokens here."""

WORDS = Regex(r"'(?:s|t|re|ve|m|ll|d)| ?\p{Lu}(?=\p{Lu})| ?\p{L}+| ?\p{N}{1,3}|\n+ *| +(?= )| ?[^\s\p{L}\p{N}]+|\s")
"""Words with the space before them; those in capitals letter by letter, so that writing them is spelling. Numbers of up
to three digits can be one token, so that a tiny model counts by knowing what follows what; a line break takes the
indentation behind it along, so that Python's blocks are single tokens."""

COUNTED = " ".join(map(str, range(1, 201)))
"""Numbers to count with. They are put before the tokenizer often enough to become tokens, whatever else it reads."""

CHAT_TEMPLATE = (
    "{% if messages[0]['role'] == 'system' %}"
    "{% set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}{% set turns = messages[1:] %}"
    "{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}"
    "{% for turn in turns %}"
    "{% if turn['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + (system if loop.first else '') + turn['content'].strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + turn['content'].strip() + ' ' + eos_token }}{% endif %}"
    "{% endfor %}"
)
"""As Llama-2-Chat lays out a conversation."""


def train(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer for texts like these."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(WORDS, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain(texts, repeat(f" {COUNTED}", 500)), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=CHAT_TEMPLATE,
        unk_token=SPECIAL[UNKNOWN],
        bos_token=SPECIAL[BEGIN],
        eos_token=SPECIAL[END],
        pad_token=SPECIAL[END],
        additional_special_tokens=list(SPECIAL[ASK:]),
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
