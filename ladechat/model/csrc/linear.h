// Products of a few rows with a matrix whose columns lie in blocks.

#pragma once

#include <algorithm>
#include <vector>

#include "registers.h"

#ifndef THREADS
#define THREADS 1
#endif

namespace ladechat {

constexpr int64_t WIDE = 8 * LANES;  // columns that a single row is multiplied with at once
constexpr int64_t AHEAD = 16;         // rows of weights: from page to page a processor does not look ahead by itself
constexpr int64_t WORTH_SHARING = 1 << 19;  // products that keep a thread busy for ten times what waking others takes

// Adds rows of x, times 2 · LANES columns of weights, to rows of y, or puts them there.
template <int rows, typename Weight>
inline void block(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
                  int64_t y_stride, int64_t inner, bool adding) {
    Floats sums[rows][2] = {};
    if (adding)
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
            sums[row][0] = load(y + row * y_stride);
            sums[row][1] = load(y + row * y_stride + LANES);
        }
    for (int64_t k = 0; k < inner; ++k) {
        fetch<2 * LANES>(weights + (k + AHEAD) * weights_stride);
        const Floats left = load(weights + k * weights_stride), right = load(weights + k * weights_stride + LANES);
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
            sums[row][0] += x[row * x_stride + k] * left;
            sums[row][1] += x[row * x_stride + k] * right;
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
        store(y + row * y_stride, sums[row][0]);
        store(y + row * y_stride + LANES, sums[row][1]);
    }
}

// The same for a few rows, and for `COLUMNS` columns.
template <int rows, typename Weight>
inline void blocks(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
                   int64_t y_stride, int64_t inner, bool adding) {
    for (int column = 0; column < COLUMNS; column += 2 * LANES)
        block<rows>(x, x_stride, weights + column, weights_stride, y + column, y_stride, inner, adding);
}

template <typename Weight>
void any_rows(int64_t rows, const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
              int64_t y_stride, int64_t inner, bool adding = false) {
    for (; rows >= ROWS; rows -= ROWS, x += ROWS * x_stride, y += ROWS * y_stride)
        blocks<ROWS>(x, x_stride, weights, weights_stride, y, y_stride, inner, adding);
    switch (rows) {
#define ROWS_LEFT(n) \
    case n:          \
        return blocks<n>(x, x_stride, weights, weights_stride, y, y_stride, inner, adding)
        ROWS_LEFT(1);
        ROWS_LEFT(2);
        ROWS_LEFT(3);
        ROWS_LEFT(4);
        ROWS_LEFT(5);
#if defined(__AVX512F__)
        ROWS_LEFT(6);
        ROWS_LEFT(7);
#endif
#undef ROWS_LEFT
    }
}

// A row times some blocks of columns, each (inner, COLUMNS). The sums of one block are too few to keep a processor busy
// that adds to each of them only when it is done with the last addition.
template <int blocks, typename Weight>
inline void one_row(const float* x, const Weight* weights, float* y, int64_t inner) {
    constexpr int parts = COLUMNS / LANES;
    Floats sums[blocks][parts] = {};
    for (int64_t k = 0; k < inner; ++k)
#pragma GCC unroll 8
        for (int block = 0; block < blocks; ++block) {
            const Weight* row = weights + (block * inner + k) * COLUMNS;
            fetch<COLUMNS>(row + AHEAD * COLUMNS);
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part) sums[block][part] += x[k] * load(row + part * LANES);
        }
    for (int block = 0; block < blocks; ++block)
        for (int part = 0; part < parts; ++part) store(y + block * COLUMNS + part * LANES, sums[block][part]);
}

// (rows, inner) times (blocks, inner, COLUMNS): (rows, columns).
template <typename Weight>
void product(const float* x, const void* packed, float* y, int64_t rows, int64_t inner, int64_t columns) {
    const Weight* weights = static_cast<const Weight*>(packed);
    const int64_t whole = columns / COLUMNS * COLUMNS;
    const int64_t by_one_row = rows == 1 ? columns / WIDE * WIDE : 0;
#pragma omp parallel num_threads(THREADS) if (THREADS > 1 && rows * inner * columns > WORTH_SHARING)
    {
#pragma omp for nowait
        for (int64_t column = 0; column < by_one_row; column += WIDE)
            one_row<WIDE / COLUMNS>(x, weights + column * inner, y + column, inner);
#pragma omp for nowait
        for (int64_t column = by_one_row; column < whole; column += COLUMNS)
            any_rows(rows, x, inner, weights + column * inner, COLUMNS, y + column, columns, inner);
    }
    if (whole == columns) return;
    std::vector<float> last(rows * COLUMNS);
    any_rows(rows, x, inner, weights + whole * inner, COLUMNS, last.data(), COLUMNS, inner);
    for (int64_t row = 0; row < rows; ++row)
        std::copy_n(&last[row * COLUMNS], columns - whole, y + row * columns + whole);
}

}  // namespace ladechat
