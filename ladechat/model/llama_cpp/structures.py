"""The structures of llama.h that pass values to the library, by its own names. The months before had other fields."""

import ctypes
from ctypes import POINTER, c_bool, c_float, c_int, c_int8, c_int32, c_int64, c_size_t, c_uint32, c_void_p

LogCallback = ctypes.CFUNCTYPE(None, c_int, ctypes.c_char_p, c_void_p)
"""Receives a level, a part of a line, and a pointer that is not used."""

ProgressCallback = ctypes.CFUNCTYPE(c_bool, c_float, c_void_p)
"""Receives the fraction of the weights that is read; False stops it."""


class ModelParams(ctypes.Structure):
    """`llama_model_params`: how a file is opened."""

    _fields_ = (
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int),
        ("load_mode", c_int),
        ("lazy_mode", c_int),
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", ProgressCallback),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    )


class Override(ctypes.Structure):
    """`llama_model_kv_override`: a value in place of one of the metadata, `INTEGER` or `TEXT`. The last has no key."""

    class Value(ctypes.Union):
        """The value, of the kind that the tag says."""

        _fields_ = (("number", c_int64), ("text", ctypes.c_char * 128))

    _fields_ = (("tag", c_int), ("key", ctypes.c_char * 128), ("value", Value))


INTEGER, TEXT = 0, 3
"""The tags of `Override`."""


class ContextParams(ctypes.Structure):
    """`llama_context_params`: the size of the cache and of a pass."""

    _fields_ = (
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int),
        ("rope_scaling_type", c_int),
        ("pooling_type", c_int),
        ("attention_type", c_int),
        ("flash_attn_type", c_int),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int),
        ("type_v", c_int),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("newer", c_void_p),  # a field of the pinned version that no published header of that month names
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
    )


class Batch(ctypes.Structure):
    """`llama_batch`: the tokens of one call."""

    _fields_ = (
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(c_void_p)),
        ("logits", POINTER(c_int8)),
    )
