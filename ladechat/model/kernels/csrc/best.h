// The largest number of each row, and its share in the softmax of the row.

#pragma once

#include <cmath>

#include "attention.h"
#include "pool.h"

namespace ladechat {

struct Best {
    int64_t index;  // the first of equal ones
    float log_share;
};

inline Best best_of(const float* x, int64_t count) {
    Floats highest = Floats{} + NEVER, sums{};
    Ints at{};
    const int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        const Floats some = load(x + i);
        const auto larger = some > highest;
        highest = larger ? some : highest;
        at = larger ? Ints{} + int32_t(i) : at;
    }
    Best best{0, 0};
    float top = NEVER;
    for (int lane = 0; lane < LANES; ++lane) {
        const int64_t index = at[lane] + lane;
        if (highest[lane] > top || (highest[lane] == top && index < best.index)) top = highest[lane], best.index = index;
    }
    for (int64_t i = whole; i < count; ++i)
        if (x[i] > top) top = x[i], best.index = i;
    for (int64_t i = 0; i < whole; i += LANES) sums += exponential(load(x + i) - top);
    float total = 0;
    for (int lane = 0; lane < LANES; ++lane) total += sums[lane];
    for (int64_t i = whole; i < count; ++i) total += std::exp(x[i] - top);
    best.log_share = -std::log(total);
    return best;
}

}  // namespace ladechat
