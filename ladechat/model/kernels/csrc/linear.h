// Products of rows with a matrix stored in blocks of columns. The order of a row's sum does not depend on other rows.

#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "integers.h"
#include "pool.h"
#include "registers.h"
#include "tiles.h"

namespace ladechat {

constexpr int64_t AHEAD = 128;        // rows of weights to prefetch: more than processors do by themselves
constexpr int64_t GROUP = 96;         // rows of x that stay in the second-level cache while all weights pass
constexpr int64_t WORTH_SHARING = 1 << 18;  // multiplications from which on sharing among threads pays
static_assert(GROUP % (2 * HEIGHT) == 0);

enum class Kind : int64_t { float32, bfloat16, float16, int8, int4, tiled };

// A linear layer: weights packed as (blocks, inner, COLUMNS), integers as (blocks, groups), see `Group`, tiles as (blocks,
// steps, 2, HEIGHT), see `Line`, all padded with zeros; and a bias or none.
struct Matrix {
    Kind kind;
    const void* packed;
    const float* bias;
    int64_t inner, columns;

    bool is_rounded() const { return kind == Kind::int8 || kind == Kind::int4; }
    int64_t blocks() const { return (columns + COLUMNS - 1) / COLUMNS; }
    int64_t width(int64_t block) const { return std::min<int64_t>(COLUMNS, columns - block * COLUMNS); }
};

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

// Rows x (rows, inner), and the same in 8 bits or in parts if they are multiplied with integers or tiles.
struct Input {
    const float* x;
    std::optional<Rounded> rounded;
    std::optional<Split> split;

    Input(const float* x, int64_t rows, std::initializer_list<const Matrix*> matrices) : x(x) {
        for (const Matrix* matrix : matrices) {
            if (matrix->is_rounded() && !rounded) rounded.emplace(x, rows, matrix->inner);
            if (matrix->kind == Kind::tiled && !split) split.emplace(x, rows, matrix->inner);
        }
    }
};

// `count` rows from row `first` on times a block of a matrix, plus its bias, into y (count, COLUMNS).
inline void multiply(const Input& input, int64_t first, int64_t count, const Matrix& matrix, int64_t block, float* y) {
    const int64_t inner = matrix.inner, column = block * COLUMNS;
    const auto by_floats = [&](const auto* weights) {
        any_rows(count, input.x + first * inner, inner, weights + column * inner, COLUMNS, y, COLUMNS, inner);
    };
    const auto by_integers = [&](const auto* groups) {
        integer_rows(count, *input.rounded, first, groups + block * input.rounded->groups, y);
    };
    switch (matrix.kind) {
        case Kind::float32: by_floats(static_cast<const float*>(matrix.packed)); break;
        case Kind::bfloat16: by_floats(static_cast<const BFloat*>(matrix.packed)); break;
        case Kind::float16: by_floats(static_cast<const Half*>(matrix.packed)); break;
        case Kind::int8: by_integers(static_cast<const Group<8>*>(matrix.packed)); break;
        case Kind::int4: by_integers(static_cast<const Group<4>*>(matrix.packed)); break;
        case Kind::tiled: {
            const Line* const tiles = static_cast<const Line*>(matrix.packed);
            tiled(count, *input.split, first, tiles + block * input.split->steps * 2 * HEIGHT, y);
            break;
        }
    }
    if (matrix.bias)
        for (int64_t row = 0; row < count; ++row)
            for (int64_t i = 0; i < matrix.width(block); ++i) y[row * COLUMNS + i] += matrix.bias[column + i];
}

// The weights (inner) of a column, as an embedding that is tied to the matrix reads them.
inline void read_column(const Matrix& matrix, int64_t column, float* to) {
    const int64_t inner = matrix.inner, block = column / COLUMNS, own = column % COLUMNS;
    const auto floats = [&](const auto* weights) {
        for (int64_t k = 0; k < inner; ++k) to[k] = as_float(weights[(block * inner + k) * COLUMNS + own]);
    };
    const auto integers = [&](const auto* groups) {
        const int64_t across = (inner + GROUPED - 1) / GROUPED;
        for (int64_t k = 0; k < inner; ++k) to[k] = groups[block * across + k / GROUPED].weight(k % GROUPED, own);
    };
    switch (matrix.kind) {
        case Kind::float32: floats(static_cast<const float*>(matrix.packed)); break;
        case Kind::bfloat16: floats(static_cast<const BFloat*>(matrix.packed)); break;
        case Kind::float16: floats(static_cast<const Half*>(matrix.packed)); break;
        case Kind::int8: integers(static_cast<const Group<8>*>(matrix.packed)); break;
        case Kind::int4: integers(static_cast<const Group<4>*>(matrix.packed)); break;
        case Kind::tiled: {
            const int64_t steps = (inner + DEPTH - 1) / DEPTH;
            const Line* const tiles = static_cast<const Line*>(matrix.packed) + block * steps * 2 * HEIGHT;
            for (int64_t k = 0; k < inner; ++k) {
                const Line& line = tiles[(k / DEPTH * 2 + own / HEIGHT) * HEIGHT + k % DEPTH / 2];
                to[k] = as_float(line.numbers[own % HEIGHT * 2 + k % 2]);
            }
            break;
        }
    }
}

// Calls task(first, count, block) for groups of rows and for blocks, on several threads where the work is worth it.
template <typename Task>
void share(int64_t rows, int64_t blocks, int64_t inner, int threads, const Task& task) {
    if (rows * inner * blocks * COLUMNS < WORTH_SHARING) threads = 1;
    const int64_t groups = (rows + GROUP - 1) / GROUP;
    pool().run(groups * blocks, threads, [&](int64_t chunk) {
        const int64_t first = chunk / blocks * GROUP;
        task(first, std::min(GROUP, rows - first), chunk % blocks);
    });
}

// x (rows, inner) times a matrix into y (rows, columns), or added to it.
inline void product(const float* x, const Matrix& matrix, float* y, int64_t rows, int threads, bool adding = false) {
    const Input input(x, rows, {&matrix});
    share(rows, matrix.blocks(), matrix.inner, threads, [&](int64_t first, int64_t count, int64_t block) {
        float some[GROUP * COLUMNS];
        multiply(input, first, count, matrix, block, some);
        const int64_t width = matrix.width(block);
        for (int64_t row = 0; row < count; ++row) {
            float* to = y + (first + row) * matrix.columns + block * COLUMNS;
            const float* from = some + row * COLUMNS;
            for (int64_t column = 0; column < width; ++column) to[column] = (adding ? to[column] : 0) + from[column];
        }
    });
}

}  // namespace ladechat
