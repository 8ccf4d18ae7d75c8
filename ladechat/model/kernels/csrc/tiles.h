// Products of rows with weights of 16 bits in tiles, registers of 16 rows of 64 bytes that AMX multiplies at once.
//
// Weights are bfloat16. A number of x is the exact sum of three parts in bfloat16, each of which is multiplied with them:
// products are exact, and sums are float32. A row's sum has the same order in every tile and beside any other rows.

#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "registers.h"

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__linux__)
#define WITH_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ladechat {

constexpr int HEIGHT = 16;  // rows of a tile
constexpr int DEPTH = 32;   // inputs in a row of a tile; `ladechat.model.kernels.packing.DEPTH`
constexpr int PARTS = 3;    // of 8 bits, of the 24 of a float32 number

// A row of a tile: DEPTH inputs of a row of x, or two inputs for each of 16 columns of weights.
struct alignas(LINE) Line {
    BFloat numbers[DEPTH];
};

// The rows of each of the tiles, as the processor reads them. Tiles without rows are not used.
struct Shape {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};

    Shape() = default;
    explicit Shape(const int (&all)[8]) {
        for (int tile = 0; tile < 8; ++tile) rows[tile] = uint8_t(all[tile]), bytes[tile] = all[tile] ? LINE : 0;
    }
};

static_assert(sizeof(Shape) == 64);

#ifdef WITH_AMX
// The tiles of the processor. The compiler's own functions for them do not tell it what memory they read.
struct Amx {
    static void shape(const Shape& shape) { asm volatile("ldtilecfg %0" ::"m"(shape)); }
    static void release() { asm volatile("tilerelease"); }
    template <int tile>
    static void zero() {
        asm volatile("tilezero %%tmm%c0" ::"i"(tile));
    }
    template <int tile>
    static void load(const Line* from) {
        asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(sizeof(Line)), "i"(tile) : "memory");
    }
    template <int sums, int x, int weights>
    static void multiply() {
        asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(x), "i"(weights));
    }
    template <int tile>
    static void store(float* to, int64_t stride) {
        asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride * sizeof(float)), "i"(tile) : "memory");
    }
};
#endif

// Tiles in plain C++: what AMX computes, to the bit, on any processor. What AMX refuses ends the program here too.
struct TileModel {
    static void shape(const Shape& shape) { own() = {shape, {}}; }
    static void release() { own() = {}; }
    template <int tile>
    static void zero() {
        std::fill_n(lines<tile>(), rows<tile>(), Line{});
    }
    template <int tile>
    static void load(const Line* from) {
        std::copy_n(from, rows<tile>(), lines<tile>());
    }
    // Of each row with each column: the sums over the first inputs of pairs and over the second, then these two, and that
    // to what was there before. Numbers below the least normal one count as 0.
    template <int sums, int x, int weights>
    static void multiply() {
        if (rows<x>() != rows<sums>() || rows<weights>() != HEIGHT) std::abort();
        for (int row = 0; row < rows<sums>(); ++row)
            for (int column = 0; column < LINE / 4; ++column) {
                float both[2] = {}, before;
                for (int pair = 0; pair < DEPTH / 2; ++pair)
                    for (int i = 0; i < 2; ++i) {
                        const float one = as_float(lines<x>()[row].numbers[2 * pair + i]);
                        const float other = as_float(lines<weights>()[pair].numbers[2 * column + i]);
                        both[i] = normal(std::fma(normal(one), normal(other), both[i]));
                    }
                char* const at = reinterpret_cast<char*>(lines<sums>() + row) + column * sizeof before;
                std::memcpy(&before, at, sizeof before);
                before = normal(normal(before) + normal(both[0] + both[1]));
                std::memcpy(at, &before, sizeof before);
            }
    }
    template <int tile>
    static void store(float* to, int64_t stride) {
        for (int row = 0; row < rows<tile>(); ++row) std::memcpy(to + row * stride, lines<tile>() + row, sizeof(Line));
    }

   private:
    struct State {
        Shape shape;
        Line lines[8][HEIGHT];
    };
    static State& own() {
        static thread_local State state;
        return state;
    }
    template <int tile>
    static Line* lines() {
        return own().lines[tile];
    }
    template <int tile>
    static int rows() {
        if (!own().shape.rows[tile]) std::abort();
        return own().shape.rows[tile];
    }
    static float normal(float number) { return std::fabs(number) < FLT_MIN ? 0 * number : number; }
};

// Rows x (rows, inner) in parts: tiles (rows / HEIGHT, steps, PARTS), the last ones with fewer lines than HEIGHT.
class Split {
   public:
    void read(const float* x, int64_t rows, int64_t inner) {
        steps = (inner + DEPTH - 1) / DEPTH;
        lines_.resize(std::max<size_t>(lines_.size(), rows * steps * PARTS));
        for (int64_t row = 0; row < rows; ++row) {
            const int64_t above = row / HEIGHT * HEIGHT, height = std::min<int64_t>(HEIGHT, rows - above);
            Line* to = lines_.data() + above * steps * PARTS + (row - above);
            for (int64_t step = 0; step < steps; ++step, to += PARTS * height) {
                float padded[DEPTH] = {};
                const float* from = x + row * inner + step * DEPTH;
                if (const int64_t left = inner - step * DEPTH; left < DEPTH) from = std::copy_n(from, left, padded) - left;
                for (int i = 0; i < DEPTH; i += LANES) split(load(from + i), to, height, i);
            }
        }
    }

    // The tiles from a row on, a multiple of HEIGHT.
    const Line* from(int64_t row) const { return lines_.data() + row * steps * PARTS; }

    int64_t steps = 0;

   private:
    // Numbers i to i + LANES of a row, into the lines of the parts.
    static void split(Floats numbers, Line* to, int64_t height, int i) {
        for (int part = 0; part < PARTS; ++part) {
            const Unsigned bits = (Unsigned)numbers >> 16;
            const Shorts first = __builtin_convertvector(bits, Shorts);
            std::memcpy(to[part * height].numbers + i, &first, sizeof first);
            numbers -= (Floats)(bits << 16);
        }
    }

    std::vector<Line> lines_;
};

// `rows` rows of x, at most HEIGHT, times one or two blocks of weights (steps, 2, HEIGHT), each into its y.
template <typename Tiles, int blocks>
void flat_product(const Line* x, int rows, int64_t steps, const Line* const* weights, float* const* y) {
    Tiles::shape(Shape({rows, rows, rows, rows, HEIGHT, rows, rows, rows}));
    const auto add = [](auto sums, const Line* from) {
        Tiles::template load<4>(from);
        Tiles::template multiply<sums, 5, 4>();
        Tiles::template multiply<sums, 6, 4>();
        Tiles::template multiply<sums, 7, 4>();
    };
    const auto each = [](auto act) {
        act(std::integral_constant<int, 0>(), std::integral_constant<int, 1>(), 0);
        if constexpr (blocks > 1) act(std::integral_constant<int, 2>(), std::integral_constant<int, 3>(), 1);
    };
    each([](auto left, auto right, int) { Tiles::template zero<left>(), Tiles::template zero<right>(); });
    for (int64_t step = 0; step < steps; ++step, x += PARTS * rows) {
        Tiles::template load<5>(x);
        Tiles::template load<6>(x + rows);
        Tiles::template load<7>(x + 2 * rows);
        each([&](auto left, auto right, int block) {
            const Line* const from = weights[block] + step * 2 * HEIGHT;
            fetch<2 * HEIGHT * DEPTH>(from[BYTES_AHEAD / LINE].numbers);
            add(left, from);
            add(right, from + HEIGHT);
        });
    }
    each([&](auto left, auto right, int block) {
        Tiles::template store<left>(y[block], COLUMNS);
        Tiles::template store<right>(y[block] + COLUMNS / 2, COLUMNS);
    });
}

// HEIGHT rows of x, and `lower` ones in the tiles after theirs, times a block of weights (steps, 2, HEIGHT), into y.
template <typename Tiles>
void tall_product(const Line* x, int lower, int64_t steps, const Line* weights, float* y) {
    Tiles::shape(Shape({HEIGHT, HEIGHT, lower, lower, HEIGHT, HEIGHT, HEIGHT, lower}));
    const Line* below = x + HEIGHT * steps * PARTS;
    Tiles::template zero<0>(), Tiles::template zero<1>(), Tiles::template zero<2>(), Tiles::template zero<3>();
    for (int64_t step = 0; step < steps; ++step, weights += 2 * HEIGHT) {
        fetch<2 * HEIGHT * DEPTH>(weights[BYTES_AHEAD / LINE].numbers);
        Tiles::template load<4>(weights);
        Tiles::template load<5>(weights + HEIGHT);
        for (int part = 0; part < PARTS; ++part, x += HEIGHT, below += lower) {
            Tiles::template load<6>(x);
            Tiles::template multiply<0, 6, 4>();
            Tiles::template multiply<1, 6, 5>();
            Tiles::template load<7>(below);
            Tiles::template multiply<2, 7, 4>();
            Tiles::template multiply<3, 7, 5>();
        }
    }
    Tiles::template store<0>(y, COLUMNS);
    Tiles::template store<1>(y + COLUMNS / 2, COLUMNS);
    Tiles::template store<2>(y + HEIGHT * COLUMNS, COLUMNS);
    Tiles::template store<3>(y + HEIGHT * COLUMNS + COLUMNS / 2, COLUMNS);
}

// `count` rows times one or two blocks of weights, each into its y (count, COLUMNS). Few rows are multiplied with two
// blocks at once, since x then has to be read half as often.
template <typename Tiles, int blocks>
void tiled_rows(int64_t count, const Split& x, const Line* const* weights, float* const* y) {
    for (int64_t row = 0; row < count; row += 2 * HEIGHT) {
        const Line* const from = x.from(row);
        float* to[blocks];
        for (int block = 0; block < blocks; ++block) to[block] = y[block] + row * COLUMNS;
        if (const int64_t left = count - row; left <= HEIGHT)
            flat_product<Tiles, blocks>(from, int(left), x.steps, weights, to);
        else
            for (int block = 0; block < blocks; ++block)
                tall_product<Tiles>(from, int(std::min<int64_t>(HEIGHT, left - HEIGHT)), x.steps, weights[block], to[block]);
    }
    Tiles::release();
}

// Returns whether this processor has tiles and the system lets this process use them, which a virtual machine may refuse:
// it is asked before anything is executed. Then a product is compared with that of the model.
inline bool find_amx() {
#ifdef WITH_AMX
    unsigned a, b, c, d, low, high;
    constexpr unsigned saves_states = 1u << 27, has_tiles = 1u << 24 | 1u << 22, tile_states = 1u << 18 | 1u << 17;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & saves_states)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & has_tiles) != has_tiles) return false;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr long ask_for_states = 0x1023, of_tiles = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    if ((low & tile_states) != tile_states || syscall(SYS_arch_prctl, ask_for_states, of_tiles) != 0) return false;
    constexpr int rows = HEIGHT + 3;
    float x[rows * DEPTH], found[rows * COLUMNS], expected[rows * COLUMNS];
    Line weights[2 * HEIGHT];
    const Line* const block = weights;
    float *const ours = found, *const models = expected;
    for (int i = 0; i < rows * DEPTH; ++i) x[i] = float(i * 7919 % 4001 - 2000);  // integers: any order gives their sum
    for (int i = 0; i < 2 * HEIGHT * DEPTH; ++i) weights[i / DEPTH].numbers[i % DEPTH] = as_bfloat(float(i % 31 - 15));
    Split split;
    split.read(x, rows, DEPTH);
    tiled_rows<Amx, 1>(rows, split, &block, &ours);
    tiled_rows<TileModel, 1>(rows, split, &block, &models);
    return std::equal(found, found + rows * COLUMNS, expected);
#else
    return false;
#endif
}

inline const bool amx_runs = find_amx();  // found when the library is loaded

// The same by the tiles that there are. Weights are packed for them only where AMX runs.
template <int blocks>
void tiled(int64_t count, const Split& x, const Line* const (&weights)[blocks], float* const (&y)[blocks]) {
#ifdef WITH_AMX
    if (amx_runs) return tiled_rows<Amx, blocks>(count, x, weights, y);
#endif
    tiled_rows<TileModel, blocks>(count, x, weights, y);
}

}  // namespace ladechat
