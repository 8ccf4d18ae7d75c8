"""A tiny checkpoint that always writes one given text, whatever it is asked, and ends."""

from functools import lru_cache
from itertools import pairwise

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

END = "</s>"
MARKS = (
    *("<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>"),
    *("<end_of_turn>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<|user|>", "<|assistant|>"),
    *("<|system|>", "<|end|>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|START_OF_TURN_TOKEN|>"),
    *("<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|SYSTEM_TOKEN|>"),
)
"""Special tokens of the formats that chat models are trained on."""
OTHER_MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<｜User｜>", "<｜Assistant｜>")
"""Marks that have a text of their own: decoding does not leave them out."""


@lru_cache
def writers_tokenizer(text: str) -> PreTrainedTokenizerBase:
    """Byte-level BPE with the marks of many formats; every word of a text is one token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    words = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<unk>", "<s>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([_spaced(text)], words)
    backend.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in MARKS])
    backend.add_tokens([AddedToken(mark, normalized=False) for mark in OTHER_MARKS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token=END,
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


@torch.inference_mode(False)
def writer_of(text: str, ends: bool = True) -> LlamaForCausalLM:
    """A model of the tokens of `writers_tokenizer`: each is followed by the next of the text, any other by the first.

    Its layer does nothing: what comes next depends on the last token alone, so no token may come twice in the text.
    Without an end, it begins again after its last token.
    """
    tokenizer = writers_tokenizer(text)
    chain = [*tokenizer.encode(text, add_special_tokens=False), *([tokenizer.eos_token_id] if ends else [])]
    assert len({*chain}) == len(chain), "no token of the text may come twice"
    size = len(tokenizer)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size + size % 2,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    model.eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        for norm in (model.model.norm.weight, *(layer.input_layernorm.weight for layer in model.model.layers)):
            norm.fill_(1.0)
        model.model.embed_tokens.weight[:, :size] = torch.eye(size)
        model.lm_head.weight[chain[0]] = 1.0
        for token, following in pairwise(chain):
            model.lm_head.weight[chain[0], token] = 0.0
            model.lm_head.weight[following, token] = 1.0
    return model


def _spaced(text: str) -> str:
    """Its marks as spaces: they are no words."""
    for mark in OTHER_MARKS:
        text = text.replace(mark, "\n")
    return text
