// What a greedy step reads of the logits of a pass.

#pragma once

#include <cmath>

#include "attention.h"

namespace ladechat {

// The first of the largest of `count` numbers.
inline int64_t first_of_the_largest(const float* numbers, int64_t count) {
    Floats highest = Floats{} + NEVER;
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        const Floats some = load(numbers + j);
        highest = some > highest ? some : highest;
    }
    float top = NEVER;
    for (int lane = 0; lane < LANES; ++lane) top = std::max(top, highest[lane]);
    for (; j < count; ++j) top = std::max(top, numbers[j]);
    return std::min<int64_t>(std::find(numbers, numbers + count, top) - numbers, count - 1);  // none, if all are NaN
}

// The sum of e^(x − top) over the numbers x, none of which is larger than top; NaN if one of them is, or top is infinite.
inline double sum_of_exponentials(const float* numbers, int64_t count, float top) {
    Floats sums{};
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) sums += exponential(load(numbers + j) - top);
    double sum = 0;
    for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
    for (; j < count; ++j) sum += std::exp(numbers[j] - top);
    return sum;
}

}  // namespace ladechat
