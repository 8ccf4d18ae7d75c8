// Products of rows with a matrix stored in blocks of columns. The order of a row's sum does not depend on other rows.

#pragma once

#include <algorithm>

#include "pool.h"
#include "registers.h"

namespace ladechat {

constexpr int64_t AHEAD = 128;        // rows of weights to prefetch: more than processors do by themselves
constexpr int64_t GROUP = 96;         // rows of x that stay in the second-level cache while all weights pass
constexpr int64_t WORTH_SHARING = 1 << 18;  // multiplications from which on sharing among threads pays

// Adds `rows` rows of x times parts · LANES columns of weights to rows of y, or writes them there.
template <int rows, int parts, typename Weight>
inline void block(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
                  int64_t y_stride, int64_t inner, bool adding) {
    Floats sums[rows][parts] = {};
    if (adding)
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part) sums[row][part] = load(y + row * y_stride + part * LANES);
    for (int64_t k = 0; k < inner; ++k) {
        fetch<parts * LANES>(weights + (k + AHEAD) * weights_stride);
        Floats some[parts];
#pragma GCC unroll 8
        for (int part = 0; part < parts; ++part) some[part] = load(weights + k * weights_stride + part * LANES);
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part) sums[row][part] += x[row * x_stride + k] * some[part];
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
        for (int part = 0; part < parts; ++part) store(y + row * y_stride + part * LANES, sums[row][part]);
}

// The same for `COLUMNS` columns: all at once if there are registers for the sums.
template <int rows, typename Weight>
void blocks(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
            int64_t y_stride, int64_t inner, bool adding) {
    constexpr int all = COLUMNS / LANES, parts = rows * all <= 2 * ROWS ? all : 2;
    for (int column = 0; column < COLUMNS; column += parts * LANES)
        block<rows, parts>(x, x_stride, weights + column, weights_stride, y + column, y_stride, inner, adding);
}

// The same for any number of rows: `ROWS` at a time, then the rest.
template <typename Weight, int most = ROWS>
void any_rows(int64_t rows, const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
              int64_t y_stride, int64_t inner, bool adding = false) {
    for (; rows >= most; rows -= most, x += most * x_stride, y += most * y_stride)
        blocks<most>(x, x_stride, weights, weights_stride, y, y_stride, inner, adding);
    if constexpr (most > 1)
        if (rows) any_rows<Weight, most - 1>(rows, x, x_stride, weights, weights_stride, y, y_stride, inner, adding);
}

// (rows, inner) times packed (blocks, inner, COLUMNS): (rows, columns).
template <typename Weight>
void product(const float* x, const void* packed, float* y, int64_t rows, int64_t inner, int64_t columns, int threads) {
    const Weight* weights = static_cast<const Weight*>(packed);
    const int64_t across = (columns + COLUMNS - 1) / COLUMNS, groups = (rows + GROUP - 1) / GROUP;
    if (rows * inner * columns < WORTH_SHARING) threads = 1;
    pool().run(groups * across, threads, [=](int64_t chunk) {
        const int64_t first = chunk / across * GROUP, column = chunk % across * COLUMNS;
        const int64_t count = std::min(GROUP, rows - first), width = std::min<int64_t>(COLUMNS, columns - column);
        const float* from = x + first * inner;
        float* to = y + first * columns + column;
        if (width == COLUMNS) return any_rows(count, from, inner, weights + column * inner, COLUMNS, to, columns, inner);
        float last[GROUP * COLUMNS];  // the last block has more columns than the result
        any_rows(count, from, inner, weights + column * inner, COLUMNS, last, COLUMNS, inner);
        for (int64_t row = 0; row < count; ++row) std::copy_n(&last[row * COLUMNS], width, to + row * columns);
    });
}

}  // namespace ladechat
