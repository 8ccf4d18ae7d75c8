// Attention of a few slots over the rows of a KV cache.

#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "linear.h"
#include "registers.h"

namespace ladechat {

constexpr int64_t ROWS_AHEAD = 48;  // to prefetch
constexpr int64_t SLOTS = 32;  // whose queries share what is read of the cache

// Of two rows of a square, exchanges each group of `half` numbers of the one with that of the other beside it.
template <int half, int... lane>
inline void exchange(Floats& one, Floats& other, std::integer_sequence<int, lane...>) {
#ifdef __clang__
    const Floats upper = __builtin_shufflevector(one, other, (lane & half ? lane + LANES - half : lane)...);
    other = __builtin_shufflevector(one, other, (lane & half ? lane + LANES : lane + half)...);
#else
    const Floats upper = __builtin_shuffle(one, other, Ints{(lane & half ? lane + LANES - half : lane)...});
    other = __builtin_shuffle(one, other, Ints{(lane & half ? lane + LANES : lane + half)...});
#endif
    one = upper;
}

// Makes the rows of a square its columns.
template <int half = LANES / 2>
inline void transpose(Floats* rows) {
    if constexpr (half > 0) {
#pragma GCC unroll 16
        for (int row = 0; row < LANES; ++row)
            if (!(row & half)) exchange<half>(rows[row], rows[row + half], std::make_integer_sequence<int, LANES>());
        transpose<half / 2>(rows);
    }
}

// Numbers (dim) of each of COLUMNS rows, to (dim, COLUMNS).
inline void transpose(const float* const* rows, int64_t dim, float* to) {
    for (int column = 0; column < COLUMNS; column += LANES) {
        int64_t d = 0;
        for (; d + LANES <= dim; d += LANES) {
            Floats square[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; ++i) square[i] = load(rows[column + i] + d);
            transpose(square);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; ++i) store(to + (d + i) * COLUMNS + column, square[i]);
        }
        for (; d < dim; ++d)
            for (int i = 0; i < LANES; ++i) to[d * COLUMNS + column + i] = rows[column + i][d];
    }
}

// e^x as (1 + rest) · power.
struct Exponential {
    Floats rest, power;
};

// For x ≤ 0, to the last bit or two: 2^n · e^r, with the integer n such that |r| ≤ ln 2 / 2, and e^r by Taylor.
inline Exponential in_parts(Floats x) {
    x = x < -87.0f ? Floats{} - 87.0f : x;
    const Floats n = (x * 1.44269504f + ROUNDING) - ROUNDING;
    const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    Floats sum = Floats{} + 1.0f / 5040;
    for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f}) sum = sum * r + factor;
    return {sum * r, (Floats)((__builtin_convertvector(n, Ints) + 127) << 23)};
}

inline Floats exponential(const Floats& x) {
    const auto [rest, power] = in_parts(x);
    return (rest + 1.0f) * power;
}

// By e^y - 1, of which small numbers keep all their digits.
inline Floats hyperbolic_tangent(const Floats& x) {
    const auto [rest, power] = in_parts(x < 0.0f ? 2.0f * x : -2.0f * x);
    const Floats less = rest * power + (power - 1.0f), size = less / (2.0f + less);
    return x < 0.0f ? size : -size;
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

// The inputs of attention, and its output: (T, heads, value_dim). The last T tokens are those of the slots.
//
// Of the tokens that a slot sees, each has the place that it would have if there were no others. So the sums of a slot
// are made in the same order in every shape of pass, and have the same bits as in a pass of one slot.
struct Attention {
    const float* queries;
    int64_t query_head, query_slot;  // strides
    Rows keys, values;
    const bool* seen;
    int64_t seen_slot;  // stride
    float* out;
    int64_t heads, key_value_heads, slots, tokens;
    float scale, cap;  // scores are scaled, and then kept below the cap, if it is not 0, by a hyperbolic tangent
};

// A group of slots, and what each of them sees.
class SlotGroup {
   public:
    SlotGroup(const Attention& attention, int64_t first, int64_t count)
        : of_(attention), first_(first), count_(count), together_(attention.tokens), paths_(count) {
        for (int64_t slot = 0; slot < count_; ++slot)
            if (const void* unseen = std::memchr(sees(slot), false, together_))
                together_ = static_cast<const bool*>(unseen) - sees(slot);
        length_ = end_ = together_;
        for (int64_t slot = 0; slot < count_; ++slot) {
            for (int64_t token = together_; token < of_.tokens; ++token)
                if (sees(slot)[token]) paths_[slot].push_back(token);
            length_ = std::max<int64_t>(length_, together_ + paths_[slot].size());
            if (!paths_[slot].empty()) end_ = std::max(end_, paths_[slot].back() + 1);
        }
        length_ = (length_ + LANES - 1) / LANES * LANES;
        end_ = (end_ + COLUMNS - 1) / COLUMNS * COLUMNS;
    }

    // The attention of `heads` heads from `head` on, into `out`. They share keys and values, which are read once.
    void attend(int64_t head, int64_t heads) const {
        static thread_local std::vector<float> weights;
        weights.resize(count_ * heads * end_);
        score(head, heads, weights.data());
        for (int64_t row = 0; row < count_ * heads; ++row) {
            float* const scores = &weights[row * end_];
            const auto& path = paths_[row / heads];
            for (size_t j = 0; j < path.size(); ++j) scores[together_ + j] = scores[path[j]];
            std::fill(scores + together_ + path.size(), scores + length_, NEVER);
            softmax(scores, length_);
        }
        add_up(head, heads, weights.data());
    }

   private:
    const bool* sees(int64_t slot) const { return of_.seen + (first_ + slot) * of_.seen_slot; }

    const float* row(const Rows& rows, int64_t head, int64_t token) const {
        return rows.data + head * of_.key_value_heads / of_.heads * rows.head + token * rows.token;
    }

    // Prefetches a row that is read soon: those of a head do not lie side by side, so a processor does not do it itself.
    void fetch_row(const Rows& rows, int64_t head, int64_t token) const {
        const float* from = row(rows, head, token);
        for (int64_t d = 0; d < rows.dim; d += LINE / sizeof(float)) __builtin_prefetch(from + d);
    }

    // Scores (count, heads, end), of all tokens: some keys at a time, whose columns all queries are multiplied with.
    void score(int64_t head, int64_t heads, float* scores) const {
        static thread_local std::vector<float> queries, columns;
        const int64_t rows = count_ * heads, dim = of_.keys.dim;
        queries.resize(rows * dim);
        columns.resize(dim * COLUMNS);
        for (int64_t row = 0; row < rows; ++row)
            std::copy_n(of_.queries + (head + row % heads) * of_.query_head + (first_ + row / heads) * of_.query_slot, dim,
                        &queries[row * dim]);
        for (int64_t j = 0; j < end_; j += COLUMNS) {
            const float* keys[COLUMNS];
            for (int64_t i = 0; i < COLUMNS; ++i) keys[i] = row(of_.keys, head, std::min(j + i, of_.tokens - 1));
            for (int64_t i = 0; i < COLUMNS; ++i) fetch_row(of_.keys, head, j + ROWS_AHEAD + i);
            transpose(keys, dim, columns.data());
            any_rows<true>(rows, queries.data(), dim, columns.data(), COLUMNS, scores + j, end_, dim);
        }
        for (int64_t i = 0; i < rows * end_; i += LANES) {
            Floats some = load(scores + i) * of_.scale;
            if (of_.cap != 0) some = hyperbolic_tangent(some / of_.cap) * of_.cap;
            store(scores + i, some);
        }
    }

    // Values times their weights, some tokens at a time.
    void add_up(int64_t head, int64_t heads, const float* weights) const {
        static thread_local std::vector<float> sums, copies;
        const int64_t dim = of_.values.dim, width = (dim + COLUMNS - 1) / COLUMNS * COLUMNS;
        sums.assign(count_ * heads * width, 0.0f);
        copies.assign(TOKENS * width, 0.0f);
        const auto add = [&](int64_t slot, int64_t slots, int64_t place, const float* from, int64_t stride, int64_t count) {
            const int64_t row = slot * heads;
            for (int64_t d = 0; d < width; d += COLUMNS)
                any_rows<true>(slots * heads, weights + row * end_ + place, end_, from + d, stride,
                         &sums[row * width + d], width, count, true);
        };
        for (int64_t j = 0; j < together_; j += TOKENS) {
            const int64_t count = std::min<int64_t>(TOKENS, together_ - j);
            for (int64_t i = 0; i < TOKENS; ++i) fetch_row(of_.values, head, j + ROWS_AHEAD + i);
            if (width == dim) {
                add(0, count_, j, row(of_.values, head, j), of_.values.token, count);
                continue;
            }
            for (int64_t i = 0; i < count; ++i) std::copy_n(row(of_.values, head, j + i), dim, &copies[i * width]);
            add(0, count_, j, copies.data(), width, count);  // a block would be read beyond its last value
        }
        for (int64_t slot = 0; slot < count_; ++slot) {
            const auto& path = paths_[slot];
            for (size_t j = 0; j < path.size(); j += TOKENS) {
                const int64_t count = std::min<int64_t>(TOKENS, path.size() - j);
                for (int64_t i = 0; i < count; ++i) std::copy_n(row(of_.values, head, path[j + i]), dim, &copies[i * width]);
                add(slot, 1, together_ + j, copies.data(), width, count);
            }
        }
        for (int64_t row = 0; row < count_ * heads; ++row)
            std::copy_n(&sums[row * width], dim,
                        of_.out + ((first_ + row / heads) * of_.heads + head + row % heads) * dim);
    }

    const Attention& of_;
    int64_t first_, count_;
    int64_t together_;  // the first tokens, which all slots of the group see, and which are read for all at once
    std::vector<std::vector<int64_t>> paths_;  // the further tokens that each slot sees
    int64_t length_;  // of the tokens that a slot sees, at most
    int64_t end_;  // after the last one that any of them sees
};

inline void attend(const Attention& attention, int threads) {
    const int64_t slots = attention.slots, heads = attention.heads;
    if (heads * slots * attention.tokens * attention.keys.dim < WORTH_SHARING) threads = 1;
    std::vector<SlotGroup> groups;
    for (int64_t first = 0; first < slots; first += SLOTS)
        groups.emplace_back(attention, first, std::min<int64_t>(SLOTS, slots - first));
    // Heads that share keys are attended at once, in as few pieces as give all threads the same work.
    const int64_t sources = attention.key_value_heads, shared = heads / sources;
    const int64_t least = std::min<int64_t>(shared, threads / std::gcd<int64_t, int64_t>(sources, threads));
    const int64_t most = (shared + least - 1) / least, pieces = (shared + most - 1) / most;
    pool().run(sources * pieces * groups.size(), threads, [&](int64_t chunk) {
        const int64_t group = chunk / (sources * pieces), source = chunk / pieces % sources, first = chunk % pieces * most;
        groups[group].attend(source * shared + first, std::min(most, shared - first));
    });
}

}  // namespace ladechat
