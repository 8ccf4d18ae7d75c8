// Attention of a few slots over the rows of a KV cache.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "linear.h"
#include "registers.h"

namespace ladechat {

// Folds two vectors into one: each group of 2 · half lanes becomes a group of half lanes with the same sum.
template <int half, int... lane>
inline Floats halved(const Floats& one, const Floats& other, std::integer_sequence<int, lane...>) {
#ifdef __clang__
    return __builtin_shufflevector(one, other, (lane / half * 2 * half + lane % half)...) +
           __builtin_shufflevector(one, other, (lane / half * 2 * half + lane % half + half)...);
#else
    return __builtin_shuffle(one, other, Ints{(lane / half * 2 * half + lane % half)...}) +
           __builtin_shuffle(one, other, Ints{(lane / half * 2 * half + lane % half + half)...});
#endif
}

// Sums the lanes of LANES vectors, into one vector with a sum per lane.
template <int count = LANES>
inline Floats totals(Floats* vectors) {
    if constexpr (count == 1) {
        return vectors[0];
    } else {
        const auto lanes = std::make_integer_sequence<int, LANES>();
        for (int i = 0; i < count / 2; ++i) vectors[i] = halved<count / 2>(vectors[2 * i], vectors[2 * i + 1], lanes);
        return totals<count / 2>(vectors);
    }
}

// The products of a query with LANES keys; after the last key, which is the `count`th, that one is repeated.
inline Floats scores_of(const float* query, const float* keys, int64_t stride, int64_t count, int64_t dim) {
    const float* key[LANES];
    for (int64_t i = 0; i < LANES; ++i) key[i] = keys + std::min(i, count - 1) * stride;
    Floats sums[LANES] = {};
    int64_t d = 0;
    for (; d + LANES <= dim; d += LANES) {
        const Floats part = load(query + d);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; ++i) sums[i] += part * load(key[i] + d);
    }
    for (int lane = 0; d < dim; ++d, ++lane)
        for (int i = 0; i < LANES; ++i) sums[i][lane] += query[d] * key[i][d];
    return totals(sums);
}

// e^x for x ≤ 0, to the last bit or two: 2^n · e^r, with the integer n such that |r| ≤ ln 2 / 2, and e^r by Taylor.
inline Floats exponential(Floats x) {
    x = x < -87.0f ? Floats{} - 87.0f : x;
    const float rounding = 12582912.0f;  // 1.5 · 2^23: adding a number to it rounds away the fraction
    const Floats n = (x * 1.44269504f + rounding) - rounding;
    const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    Floats sum = Floats{} + 1.0f / 5040;
    for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) sum = sum * r + factor;
    return sum * (Floats)((__builtin_convertvector(n, Ints) + 127) << 23);
}

// Softmax in place: scores to weights whose sum is 1; `length` is a multiple of `LANES`.
inline void softmax(float* scores, int64_t length) {
    Floats highest = Floats{} + NEVER, sum{};
    for (int64_t j = 0; j < length; j += LANES) {
        const Floats some = load(scores + j);
        highest = some > highest ? some : highest;
    }
    float top = NEVER;
    for (int lane = 0; lane < LANES; ++lane) top = std::max(top, highest[lane]);
    for (int64_t j = 0; j < length; j += LANES) {
        const Floats some = load(scores + j), weights = some == NEVER ? Floats{} : exponential(some - top);
        store(scores + j, weights);
        sum += weights;
    }
    float total = 0;
    for (int lane = 0; lane < LANES; ++lane) total += sum[lane];
    for (int64_t j = 0; j < length; j += LANES) store(scores + j, load(scores + j) / total);
}

// Keys or values of all heads: token by token, in the layout of the cache.
struct Rows {
    const float* data;
    int64_t head, token, dim;  // strides, in numbers, and the size of a head
};

// The inputs of attention, and its output: (T, heads, value_dim).
struct Attention {
    const float* queries;
    int64_t query_head, query_slot;  // strides
    Rows keys, values;
    const bool* seen;
    int64_t seen_slot;  // stride
    float* out;
    int64_t heads, key_value_heads, slots, tokens;
    float scale;

    int64_t padded() const { return (tokens + LANES - 1) / LANES * LANES; }
    void score(int64_t head, float* scores) const;
    void add_up(int64_t head, const float* weights) const;
};

// (T, padded) scores of a head.
inline void Attention::score(int64_t head, float* scores) const {
    const float* heads_keys = keys.data + head * key_value_heads / heads * keys.head;
    for (int64_t j = 0; j < tokens; j += LANES) {
        const int64_t count = std::min<int64_t>(LANES, tokens - j);
        for (int64_t slot = 0; slot < slots; ++slot) {
            const float* query = queries + head * query_head + slot * query_slot;
            const Floats some = scores_of(query, heads_keys + j * keys.token, keys.token, count, keys.dim);
            const bool* visible = seen + slot * seen_slot + j;
            float* to = scores + slot * padded() + j;
            for (int64_t i = 0; i < LANES; ++i) to[i] = i < count && visible[i] ? some[i] * scale : NEVER;
        }
    }
}

// Values times their weights, some tokens at a time.
inline void Attention::add_up(int64_t head, const float* weights) const {
    static thread_local std::vector<float> sums, last;
    const int64_t dim = values.dim, width = (dim + COLUMNS - 1) / COLUMNS * COLUMNS;
    const float* heads_values = values.data + head * key_value_heads / heads * values.head;
    sums.assign(slots * width, 0.0f);
    for (int64_t j = 0; j < tokens; j += TOKENS) {
        const int64_t count = std::min<int64_t>(TOKENS, tokens - j);
        for (int64_t d = 0; d < dim; d += COLUMNS) {
            const float* from = heads_values + j * values.token + d;
            int64_t stride = values.token;
            if (d + COLUMNS > dim) {  // a block would be read beyond its last value
                last.assign(count * COLUMNS, 0.0f);
                for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * stride, dim - d, &last[i * COLUMNS]);
                from = last.data();
                stride = COLUMNS;
            }
            any_rows(slots, weights + j, padded(), from, stride, &sums[d], width, count, true);
        }
    }
    for (int64_t slot = 0; slot < slots; ++slot)
        std::copy_n(&sums[slot * width], dim, out + (slot * heads + head) * dim);
}

inline void attend(const Attention& attention, int threads) {
    const int64_t length = attention.padded(), slots = attention.slots;
    if (attention.heads * slots * length * attention.keys.dim < WORTH_SHARING) threads = 1;
    pool().run(attention.heads, threads, [&](int64_t head) {
        static thread_local std::vector<float> scores;
        scores.resize(slots * length);
        attention.score(head, scores.data());
        for (int64_t slot = 0; slot < slots; ++slot) softmax(&scores[slot * length], length);
        attention.add_up(head, scores.data());
    });
}

}  // namespace ladechat
