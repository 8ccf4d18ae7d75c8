// Rows divided by the root of the mean of their squares.

#pragma once

#include <cmath>

#include "registers.h"

namespace ladechat {

inline void rms_norm_row(const float* x, const float* weight, float* y, int64_t width, float epsilon) {
    Floats squares[4] = {};
    int64_t i = 0;
    for (; i + 4 * LANES <= width; i += 4 * LANES)
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
            const Floats some = load(x + i + part * LANES);
            squares[part] += some * some;
        }
    const Floats sums = (squares[0] + squares[1]) + (squares[2] + squares[3]);
    float sum = 0;
    for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
    for (; i < width; ++i) sum += x[i] * x[i];
    const float factor = 1.0f / std::sqrt(sum / float(width) + epsilon);
    for (i = 0; i < width; ++i) y[i] = weight[i] * (x[i] * factor);
}

// The same for rows (rows, width) in place of one; y may be x.
inline void rms_norm(const float* x, const float* weight, float* y, int64_t rows, int64_t width, float epsilon) {
    for (int64_t row = 0; row < rows; ++row) rms_norm_row(x + row * width, weight, y + row * width, width, epsilon);
}

}  // namespace ladechat
