// Products of rows with a matrix stored in blocks of columns. The order of a row's sum does not depend on other rows.

#pragma once

#include <algorithm>
#include <atomic>

#include "integers.h"
#include "pool.h"
#include "registers.h"
#include "tiles.h"

namespace ladechat {

constexpr int64_t AHEAD = 128;        // rows of weights to prefetch
constexpr int64_t GROUP = 96;         // rows of x that stay in the second-level cache while all weights pass
constexpr int64_t WORTH_SHARING = 1 << 18;  // multiplications from which on sharing among threads pays
constexpr int64_t MANY_BLOCKS = 32;  // for a thread: it gets two at a time
static_assert(GROUP % (2 * HEIGHT) == 0);

enum class Kind : int64_t { float32, bfloat16, float16, int8, int4, tiled };

// A linear layer: weights packed as (blocks, inner, COLUMNS), integers as (blocks, groups), see `Group`, tiles as (blocks,
// steps, 2, HEIGHT), see `Line`, all padded with zeros; and a bias or none.
struct Matrix {
    Kind kind;
    const void* packed;
    const float* bias;
    int64_t inner, columns;

    int64_t blocks() const { return (columns + COLUMNS - 1) / COLUMNS; }
    int64_t width(int64_t block) const { return std::min<int64_t>(COLUMNS, columns - block * COLUMNS); }
};

// Adds `rows` rows of x times parts · LANES columns of weights to rows of y, or writes them there. Weights that are not in
// the cache are prefetched.
template <int rows, int parts, bool cached, typename Weight>
inline void block(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
                  int64_t y_stride, int64_t inner, bool adding) {
    Floats sums[rows][parts] = {};
    if (adding)
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part) sums[row][part] = load(y + row * y_stride + part * LANES);
    for (int64_t k = 0; k < inner; ++k) {
        if constexpr (!cached) fetch<parts * LANES>(weights + (k + AHEAD) * weights_stride);
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
template <int rows, bool cached, typename Weight>
void blocks(const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
            int64_t y_stride, int64_t inner, bool adding) {
    constexpr int all = COLUMNS / LANES, parts = rows * all <= 2 * ROWS ? all : 2;
    for (int column = 0; column < COLUMNS; column += parts * LANES)
        block<rows, parts, cached>(x, x_stride, weights + column, weights_stride, y + column, y_stride, inner, adding);
}

// The same for any number of rows: `ROWS` at a time, then the rest.
template <bool cached, typename Weight, int most = ROWS>
void any_rows(int64_t rows, const float* x, int64_t x_stride, const Weight* weights, int64_t weights_stride, float* y,
              int64_t y_stride, int64_t inner, bool adding = false) {
    for (; rows >= most; rows -= most, x += most * x_stride, y += most * y_stride)
        blocks<most, cached>(x, x_stride, weights, weights_stride, y, y_stride, inner, adding);
    if constexpr (most > 1)
        if (rows) any_rows<cached, Weight, most - 1>(rows, x, x_stride, weights, weights_stride, y, y_stride, inner, adding);
}

// Rows x (rows, inner), and groups of them in the form in which they are multiplied with integers or tiles. Each thread
// makes its own: what another one has written takes longer to read.
class Input {
   public:
    Input(const float* x, int64_t inner) : x(x), inner(inner), number_(++last_) {}

    // `count` rows from row `first` on.
    template <typename Form>
    const Form& in(int64_t first, int64_t count) const {
        static thread_local Form form;
        static thread_local uint64_t number = 0;
        static thread_local int64_t at;
        if (number != number_ || at != first) form.read(x + first * inner, count, inner);
        number = number_, at = first;
        return form;
    }

    const float* x;
    int64_t inner;

   private:
    static inline std::atomic<uint64_t> last_{0};
    uint64_t number_;
};

// A block of a matrix, and where its products go: (rows, COLUMNS).
struct Block {
    const Matrix& matrix;
    int64_t index;
    float* y;

    const Line* tiles(int64_t steps) const { return static_cast<const Line*>(matrix.packed) + index * steps * 2 * HEIGHT; }

    void add_bias(int64_t rows) const {
        if (!matrix.bias) return;
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t i = 0; i < matrix.width(index); ++i) y[row * COLUMNS + i] += matrix.bias[index * COLUMNS + i];
    }
};

// `count` rows from row `first` on times a block, plus its bias.
inline void multiply(const Input& input, int64_t first, int64_t count, const Block& block) {
    const Matrix& matrix = block.matrix;
    const int64_t inner = matrix.inner;
    const auto by_floats = [&](const auto* weights) {
        any_rows<false>(count, input.x + first * inner, inner, weights + block.index * COLUMNS * inner, COLUMNS, block.y,
                        COLUMNS, inner);
    };
    const auto by_integers = [&](const auto* groups) {
        const Rounded& rounded = input.in<Rounded>(first, count);
        integer_rows(count, rounded, 0, groups + block.index * rounded.groups, block.y);
    };
    switch (matrix.kind) {
        case Kind::float32: by_floats(static_cast<const float*>(matrix.packed)); break;
        case Kind::bfloat16: by_floats(static_cast<const BFloat*>(matrix.packed)); break;
        case Kind::float16: by_floats(static_cast<const Half*>(matrix.packed)); break;
        case Kind::int8: by_integers(static_cast<const Group<8>*>(matrix.packed)); break;
        case Kind::int4: by_integers(static_cast<const Group<4>*>(matrix.packed)); break;
        case Kind::tiled: {
            const Split& split = input.in<Split>(first, count);
            tiled<1>(count, split, {block.tiles(split.steps)}, {block.y});
            break;
        }
    }
    block.add_bias(count);
}

// The same with two blocks, at once if both are in tiles.
inline void multiply(const Input& input, int64_t first, int64_t count, const Block& one, const Block& other) {
    if (one.matrix.kind != Kind::tiled || other.matrix.kind != Kind::tiled) {
        multiply(input, first, count, one);
        return multiply(input, first, count, other);
    }
    const Split& split = input.in<Split>(first, count);
    tiled<2>(count, split, {one.tiles(split.steps), other.tiles(split.steps)}, {one.y, other.y});
    one.add_bias(count);
    other.add_bias(count);
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
    const Input input(x, matrix.inner);
    const auto write = [&](const Block& block, int64_t first, int64_t count) {
        const int64_t width = matrix.width(block.index);
        for (int64_t row = 0; row < count; ++row) {
            float* to = y + (first + row) * matrix.columns + block.index * COLUMNS;
            const float* from = block.y + row * COLUMNS;
            for (int64_t column = 0; column < width; ++column) to[column] = (adding ? to[column] : 0) + from[column];
        }
    };
    const int64_t blocks = matrix.blocks(), pairs = blocks >= MANY_BLOCKS * threads ? blocks / 2 : 0;
    share(rows, blocks - pairs, matrix.inner, threads, [&](int64_t first, int64_t count, int64_t chunk) {
        float some[2][GROUP * COLUMNS];
        const Block one{matrix, chunk < pairs ? 2 * chunk : chunk + pairs, some[0]}, other{matrix, one.index + 1, some[1]};
        if (chunk < pairs) {
            multiply(input, first, count, one, other);
            write(other, first, count);
        } else {
            multiply(input, first, count, one);
        }
        write(one, first, count);
    });
}

}  // namespace ladechat
