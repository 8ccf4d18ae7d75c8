// Products of rows with weights of 8 or 4 bits, in integers.
//
// Weights lie in groups of GROUPED inputs, with a scale for each column of a group; rows of x are rounded to 8 bits in the
// same groups. The sum of a group is exact, and the sums of groups are added in order: a row has the same bits whatever
// rows are beside it.
//
// They are not in tiles of AMX: each group has scales of its own, so its sums would be stored, read, scaled and added. For
// 16 rows and columns these are about 110 instructions a group, with VNNI 210; for few rows, which take as long as weights
// take to be read, there is nothing to gain.

#pragma once

#include <cmath>
#include <vector>

#include "registers.h"

namespace ladechat {

constexpr float TINY = 1e-30f;  // below it, all numbers of a group are rounded to 0
constexpr int GROUPED = 32;  // `ladechat.model.kernels.packing.GROUPED`

// Rows of x in 8 bits: numbers (rows, groups · GROUPED), and for each group of a row its scale and its sum.
class Rounded {
   public:
    void read(const float* x, int64_t rows, int64_t inner) {
        groups = (inner + GROUPED - 1) / GROUPED;
        const size_t count = std::max<size_t>(scales.size(), rows * groups);
        numbers.resize(count * GROUPED);
        scales.resize(count);
        sums.resize(count);
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t group = 0; group < groups; ++group) {
                const int64_t at = row * groups + group, first = group * GROUPED;
                const int64_t count = std::min<int64_t>(GROUPED, inner - first);
                round(x + row * inner + first, count, &numbers[at * GROUPED], scales[at], sums[at]);
            }
    }

    std::vector<int8_t> numbers;
    std::vector<float> scales;
    std::vector<int32_t> sums;
    int64_t groups = 0;

   private:
    static void round(const float* x, int64_t count, int8_t* to, float& scale, int32_t& sum) {
        float padded[GROUPED] = {};
        if (count < GROUPED) x = std::copy_n(x, count, padded) - count;
        Floats sizes{}, wrong{};  // NaN once a number is not finite
        for (int i = 0; i < GROUPED; i += LANES) {
            const Floats some = load(x + i), size = (Floats)((Ints)some & 0x7fffffff);
            sizes = size > sizes ? size : sizes;
            wrong += some - some;
        }
        const float largest = across(sizes, [](auto one, auto other) { return one > other ? one : other; });
        const float not_finite = across(wrong, [](auto one, auto other) { return one + other; });
        const bool usable = not_finite == 0 && largest > TINY;
        const float factor = usable ? 127.0f / largest : 0.0f;
        scale = usable ? largest / 127.0f : not_finite;
        Ints integers{};
        for (int i = 0; i < GROUPED; i += LANES) {
            const Floats rounded = (load(x + i) * factor + ROUNDING) - ROUNDING;
            const Ints some = usable ? __builtin_convertvector(rounded, Ints) : Ints{};
            const auto bytes = __builtin_convertvector(some, SignedBytes);
            std::memcpy(to + i, &bytes, sizeof bytes);
            integers += some;
        }
        sum = across(integers, [](auto one, auto other) { return one + other; });
    }
};

// The products of four unsigned weights in each lane with four signed numbers, added to `sums`. The weights are stored
// with `offset` added. Where `subtracted` is 0, the offset is taken off here; else the caller takes it off.
template <int offset>
struct Dot {
#if defined(__AVX512VNNI__)
    static constexpr int subtracted = offset;
    static Ints add(const Ints& sums, const Bytes& weights, int32_t four) {
        return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, _mm512_set1_epi32(four));
    }
#elif defined(__AVXVNNI__)
    static constexpr int subtracted = offset;
    static Ints add(const Ints& sums, const Bytes& weights, int32_t four) {
        return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)weights, _mm256_set1_epi32(four));
    }
#elif defined(__AVX2__) && (!defined(__AVX512F__) || defined(__AVX512BW__))
    // Pairs of products are added in 16 bits, which hold them if both factors are below 128.
    static constexpr int subtracted = offset < 128 ? offset : 0;
    static Ints add(const Ints& sums, const Bytes& weights, int32_t four) {
        if constexpr (subtracted != 0) return sums + pairs(weights, (Bytes)(Ints{} + four));
        const Bytes own = weights ^ 128, x = (Bytes)(Ints{} + four);
        return sums + pairs(sizes(x), signed_as(own, x));
    }
#if defined(__AVX512F__)
    static Bytes sizes(const Bytes& x) { return (Bytes)_mm512_abs_epi8((__m512i)x); }
    static Bytes signed_as(const Bytes& own, const Bytes& x) {
        const __mmask64 negative = _mm512_movepi8_mask((__m512i)x);
        return (Bytes)_mm512_mask_sub_epi8((__m512i)own, negative, _mm512_setzero_si512(), (__m512i)own);
    }
    static Ints pairs(const Bytes& large, const Bytes& small) {
        const __m512i sums = _mm512_maddubs_epi16((__m512i)large, (__m512i)small);
        return (Ints)_mm512_madd_epi16(sums, _mm512_set1_epi16(1));
    }
#else
    static Bytes sizes(const Bytes& x) { return (Bytes)_mm256_abs_epi8((__m256i)x); }
    static Bytes signed_as(const Bytes& own, const Bytes& x) {
        return (Bytes)_mm256_sign_epi8((__m256i)own, (__m256i)x);
    }
    static Ints pairs(const Bytes& large, const Bytes& small) {
        const __m256i sums = _mm256_maddubs_epi16((__m256i)large, (__m256i)small);
        return (Ints)_mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    }
#endif
#elif defined(__ARM_FEATURE_DOTPROD)
    static constexpr int subtracted = 0;
    static Ints add(const Ints& sums, const Bytes& weights, int32_t four) {
        const int8x16_t own = vreinterpretq_s8_u8(vsubq_u8((uint8x16_t)weights, vdupq_n_u8(offset)));
        return (Ints)vdotq_s32((int32x4_t)sums, own, vreinterpretq_s8_s32(vdupq_n_s32(four)));
    }
#else
    static constexpr int subtracted = 0;
    static Ints add(Ints sums, const Bytes& weights, int32_t four) {
        int8_t x[4];
        std::memcpy(x, &four, sizeof x);
        for (int lane = 0; lane < LANES; ++lane)
            for (int i = 0; i < 4; ++i) sums[lane] += (int(weights[4 * lane + i]) - offset) * x[i];
        return sums;
    }
#endif
};

// A group of a block of weights: the scales of the columns, then four weights of each column, the next four …
template <int bits>
struct Group {
    static constexpr int offset = 1 << (bits - 1), steps = GROUPED / 4;
    BFloat scales[COLUMNS];
    uint8_t weights[GROUPED * COLUMNS * bits / 8];

    // The weights of a step, of LANES columns. Of 4 bits, those of the first half of the steps are the lower ones.
    Bytes at(int step, int column) const {
        if constexpr (bits == 8) return load_as<Bytes>(weights + (step * COLUMNS + column) * 4);
        const Bytes both = load_as<Bytes>(weights + (step % (steps / 2) * COLUMNS + column) * 4);
        return (step < steps / 2 ? both : both >> 4) & 15;
    }

    // The weight of an input and a column.
    float weight(int input, int column) const {
        const int step = input / 4;
        const uint8_t stored = weights[((bits == 8 ? step : step % (steps / 2)) * COLUMNS + column) * 4 + input % 4];
        const int integer = bits == 8 ? stored : (step < steps / 2 ? stored : stored >> 4) & 15;
        return float(integer - offset) * as_float(scales[column]);
    }

    // Sets the weight of an input and a column, with its offset, in a group whose weights are 0 or have been set before.
    void set(int input, int column, uint8_t weight) {
        const int step = input / 4, i = input % 4;
        if constexpr (bits == 8) {
            weights[(step * COLUMNS + column) * 4 + i] = weight;
        } else {
            uint8_t& both = weights[(step % (steps / 2) * COLUMNS + column) * 4 + i];
            both = step < steps / 2 ? weight : both | weight << 4;
        }
    }
};

// The integers of a column in a group with their scale, by which they are multiplied.
//
// The largest weight becomes the largest integer. Of 4 bits, which are few, some other scales are tried as well, and the
// one with the least squared error is taken.
template <int bits>
inline float round_weights(const float* weights, int* integers) {
    constexpr int least = bits == 8 ? -127 : -8, most = bits == 8 ? 127 : 7;
    constexpr float candidates[] = {bits == 8 ? 127.0f : -8.0f, -7.0f, -7.5f, -8.5f, 7.0f, 7.5f, 6.5f};
    float largest = 0, best_error = std::numeric_limits<float>::infinity(), best = 0;
    for (int i = 0; i < GROUPED; ++i)
        if (std::fabs(weights[i]) > std::fabs(largest)) largest = weights[i];
    const auto rounded = [&](float weight, float factor) {
        const float whole = (weight * factor + ROUNDING) - ROUNDING;
        return std::min(std::max(whole, float(least)), float(most));
    };
    for (int i = 0; i < (bits == 8 ? 1 : 7); ++i) {
        const float scale = as_float(as_bfloat(largest / candidates[i])), factor = scale != 0 ? 1 / scale : 0;
        float error = 0;
        for (int k = 0; k < GROUPED; ++k) {
            const float off = rounded(weights[k], factor) * scale - weights[k];
            error += off * off;
        }
        if (error < best_error) best_error = error, best = scale;
    }
    for (int i = 0; i < GROUPED; ++i) integers[i] = int(rounded(weights[i], best != 0 ? 1 / best : 0));
    return best;
}

// Weights (columns, inner), rounded, into blocks (blocks, groups).
template <int bits>
void pack_integers(const float* weights, int64_t columns, int64_t inner, Group<bits>* groups) {
    const int64_t across = (inner + GROUPED - 1) / GROUPED;
    for (int64_t column = 0; column < (columns + COLUMNS - 1) / COLUMNS * COLUMNS; ++column)
        for (int64_t g = 0; g < across; ++g) {
            Group<bits>& group = groups[column / COLUMNS * across + g];
            float some[GROUPED] = {};
            int integers[GROUPED];
            if (column < columns)
                std::copy_n(weights + column * inner + g * GROUPED, std::min<int64_t>(GROUPED, inner - g * GROUPED), some);
            group.scales[column % COLUMNS] = as_bfloat(round_weights<bits>(some, integers));
            for (int i = 0; i < GROUPED; ++i) group.set(i, column % COLUMNS, uint8_t(integers[i] + Group<bits>::offset));
        }
}

// `rows` rows times parts · LANES columns of a block of weights, into rows of y.
template <int rows, int parts, int bits>
inline void integer_block(const Rounded& x, int64_t first, const Group<bits>* groups, int column, float* y) {
    using Product = Dot<Group<bits>::offset>;
    Floats results[rows][parts] = {};
    for (int64_t g = 0; g < x.groups; ++g) {
        const Group<bits>& group = groups[g];
        fetch<sizeof(group)>(reinterpret_cast<const uint8_t*>(&group) + BYTES_AHEAD);
        const int64_t at = first * x.groups + g;
        Ints sums[rows][parts];
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part)
                sums[row][part] = Ints{} - Product::subtracted * x.sums[at + row * x.groups];
        for (int step = 0; step < Group<bits>::steps; ++step) {
            Bytes some[parts];
#pragma GCC unroll 8
            for (int part = 0; part < parts; ++part) some[part] = group.at(step, column + part * LANES);
            const int8_t* numbers = x.numbers.data() + at * GROUPED + step * 4;
#pragma GCC unroll 16
            for (int row = 0; row < rows; ++row) {
                const int32_t four = load_as<int32_t>(numbers + row * x.groups * GROUPED);
#pragma GCC unroll 8
                for (int part = 0; part < parts; ++part) sums[row][part] = Product::add(sums[row][part], some[part], four);
            }
        }
#pragma GCC unroll 8
        for (int part = 0; part < parts; ++part) {
            const Floats scales = load(group.scales + column + part * LANES);
#pragma GCC unroll 16
            for (int row = 0; row < rows; ++row)
                results[row][part] +=
                    __builtin_convertvector(sums[row][part], Floats) * (scales * x.scales[at + row * x.groups]);
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 8
        for (int part = 0; part < parts; ++part) store(y + row * COLUMNS + column + part * LANES, results[row][part]);
}

// `rows` rows, from row `first` on, times a block of weights, into y (rows, COLUMNS): ROWS at a time, then the
// rest.
template <int bits, int most = ROWS>
void integer_rows(int64_t rows, const Rounded& x, int64_t first, const Group<bits>* groups, float* y) {
    constexpr int all = COLUMNS / LANES, parts = most * all <= 2 * ROWS ? all : 2;
    for (; rows >= most; rows -= most, first += most, y += most * COLUMNS)
        for (int column = 0; column < COLUMNS; column += parts * LANES)
            integer_block<most, parts, bits>(x, first, groups, column, y);
    if constexpr (most > 1)
        if (rows) integer_rows<bits, most - 1>(rows, x, first, groups, y);
}

}  // namespace ladechat
