// The kernels in which a float32 model spends its time on a CPU: linear layers, attention of a few slots, norms.
//
// The usual libraries are made for many rows. Ours store weights in the order in which they are read, in 16 bits where
// that is exact, and all sums are in 32 bits. `ladechat.model.kernels.library` calls these functions with tensors whose
// types and shapes it has checked.

#include <array>

#include "attention.h"
#include "linear.h"
#include "norm.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace ladechat;

// x (rows, inner) times packed (blocks, inner, COLUMNS) into y (rows, columns).
#define LINEAR(name, Weight)                                                                                       \
    EXPORTED void name(const float* x, const void* packed, float* y, int64_t rows, int64_t inner, int64_t columns, \
                       int threads) {                                                                              \
        product<Weight>(x, packed, y, rows, inner, columns, threads);                                              \
    }
LINEAR(linear_float16, Half)
LINEAR(linear_bfloat16, BFloat)
LINEAR(linear_float32, float)

// x (rows, width), each row divided by the root of the mean of its squares plus epsilon, times weight (width), into y.
EXPORTED void rms_norm(const float* x, const float* weight, float* y, int64_t rows, int64_t width, float epsilon) {
    for (int64_t row = 0; row < rows; ++row) rms_norm_row(x + row * width, weight, y + row * width, width, epsilon);
}

// Queries (heads, slots, key_dim), keys (key_value_heads, tokens, key_dim) and values (…, value_dim) with their strides
// by head and slot or token, seen (slots, tokens); (slots, heads, value_dim) into out.
EXPORTED void attention(const float* queries, const float* keys, const float* values, const bool* seen, float* out,
                        const int64_t* sizes, float scale, int threads) {
    const auto [heads, key_value_heads, slots, tokens, key_dim, value_dim, query_head, query_slot, key_head, key_token,
                value_head, value_token, seen_slot] =
        *reinterpret_cast<const std::array<int64_t, 13>*>(sizes);
    attend({.queries = queries,
            .query_head = query_head,
            .query_slot = query_slot,
            .keys = {keys, key_head, key_token, key_dim},
            .values = {values, value_head, value_token, value_dim},
            .seen = seen,
            .seen_slot = seen_slot,
            .out = out,
            .heads = heads,
            .key_value_heads = key_value_heads,
            .slots = slots,
            .tokens = tokens,
            .scale = scale},
           threads);
}
