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

// The rows of each tile, as the processor reads them: of sums 0 and 1 and of x 6 `upper` ones, of sums 2 and 3 and of x 7
// `lower` ones, all of weights, 4 and 5. Tiles without rows are not used.
struct Shape {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};

    Shape(int upper, int lower) {
        const int all[] = {upper, upper, lower, lower, HEIGHT, HEIGHT, upper, lower};
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
        Shape shape{0, 0};
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
    Split(const float* x, int64_t rows, int64_t inner) : steps((inner + DEPTH - 1) / DEPTH) {
        static thread_local std::vector<Line> lines;
        lines.resize(std::max<size_t>(lines.size(), rows * steps * PARTS));
        tiles = lines.data();
        for (int64_t row = 0; row < rows; ++row) {
            const int64_t above = row / HEIGHT * HEIGHT, height = std::min<int64_t>(HEIGHT, rows - above);
            Line* to = lines.data() + above * steps * PARTS + (row - above);
            for (int64_t step = 0; step < steps; ++step) {
                float rest[DEPTH] = {};
                std::copy_n(x + row * inner + step * DEPTH, std::min<int64_t>(DEPTH, inner - step * DEPTH), rest);
                for (int part = 0; part < PARTS; ++part, to += height)
                    for (int i = 0; i < DEPTH; ++i) {
                        to->numbers[i] = first_bits(rest[i]);
                        rest[i] -= as_float(to->numbers[i]);
                    }
            }
        }
    }

    // The tiles from a row on, a multiple of HEIGHT.
    const Line* from(int64_t row) const { return tiles + row * steps * PARTS; }

    int64_t steps;

   private:
    static BFloat first_bits(float number) {
        uint32_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        return {uint16_t(bits >> 16)};
    }

    const Line* tiles;
};

// `upper` rows of x, and `lower` ones in the tiles after theirs, times a block of weights (steps, 2, HEIGHT), into y.
template <typename Tiles, bool with_lower>
void tiled_block(const Line* x, int upper, int lower, int64_t steps, const Line* weights, float* y) {
    const Line* below = x + upper * steps * PARTS;
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    if constexpr (with_lower) Tiles::template zero<2>(), Tiles::template zero<3>();
    for (int64_t step = 0; step < steps; ++step, weights += 2 * HEIGHT) {
        Tiles::template load<4>(weights);
        Tiles::template load<5>(weights + HEIGHT);
        for (int part = 0; part < PARTS; ++part, x += upper, below += lower) {
            Tiles::template load<6>(x);
            Tiles::template multiply<0, 6, 4>();
            Tiles::template multiply<1, 6, 5>();
            if constexpr (with_lower) {
                Tiles::template load<7>(below);
                Tiles::template multiply<2, 7, 4>();
                Tiles::template multiply<3, 7, 5>();
            }
        }
    }
    Tiles::template store<0>(y, COLUMNS);
    Tiles::template store<1>(y + COLUMNS / 2, COLUMNS);
    if constexpr (with_lower) {
        Tiles::template store<2>(y + HEIGHT * COLUMNS, COLUMNS);
        Tiles::template store<3>(y + HEIGHT * COLUMNS + COLUMNS / 2, COLUMNS);
    }
}

// `count` rows from row `first` on, a multiple of HEIGHT, times a block of weights, into y (count, COLUMNS).
template <typename Tiles>
void tiled_rows(int64_t count, const Split& x, int64_t first, const Line* weights, float* y) {
    for (int64_t row = 0; row < count; row += 2 * HEIGHT) {
        const int upper = int(std::min<int64_t>(HEIGHT, count - row));
        const int lower = int(std::min<int64_t>(HEIGHT, count - row - upper));
        Tiles::shape(Shape(upper, lower));
        const auto block = lower ? tiled_block<Tiles, true> : tiled_block<Tiles, false>;
        block(x.from(first + row), upper, lower, x.steps, weights, y + row * COLUMNS);
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
    for (int i = 0; i < rows * DEPTH; ++i) x[i] = float(i * 7919 % 4001 - 2000);  // integers: any order gives their sum
    for (int i = 0; i < 2 * HEIGHT * DEPTH; ++i) weights[i / DEPTH].numbers[i % DEPTH] = as_bfloat(float(i % 31 - 15));
    const Split split(x, rows, DEPTH);
    tiled_rows<Amx>(rows, split, 0, weights, found);
    tiled_rows<TileModel>(rows, split, 0, weights, expected);
    return std::equal(found, found + rows * COLUMNS, expected);
#else
    return false;
#endif
}

inline const bool amx_runs = find_amx();  // found when the library is loaded

// `count` rows times a block of weights by the tiles that there are. Weights are packed for them only where AMX runs.
inline void tiled(int64_t count, const Split& x, int64_t first, const Line* weights, float* y) {
#ifdef WITH_AMX
    if (amx_runs) return tiled_rows<Amx>(count, x, first, weights, y);
#endif
    tiled_rows<TileModel>(count, x, first, weights, y);
}

}  // namespace ladechat
