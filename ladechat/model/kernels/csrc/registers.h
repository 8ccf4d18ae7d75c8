// Vector registers: as many numbers at a time as one holds, and conversion of 16-bit weights to 32 bits.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ladechat {

// As many numbers as a register holds; and so many rows that 2 × ROWS sums, and what is added to them, fit into all.
#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 12;
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 6;
#endif
// The name of what a processor does with them.
constexpr const char* INSTRUCTIONS =
#if defined(__AVX512VNNI__)
    "AVX-512 VNNI";
#elif defined(__AVX512F__)
    "AVX-512";
#elif defined(__AVXVNNI__)
    "AVX2 VNNI";
#elif defined(__AVX2__)
    "AVX2";
#elif defined(__AVX__)
    "AVX";
#elif defined(__aarch64__)
    "NEON";
#else
    "128-bit vectors";
#endif
constexpr int COLUMNS = 32;  // of a block of packed weights; `ladechat.model.kernels.packing.COLUMNS`
constexpr int LINE = 64;     // bytes of a cache line
constexpr int BYTES_AHEAD = 8192;  // of weights, to prefetch: more than processors do by themselves
constexpr int TOKENS = 16;   // whose values stay in the cache while heads and slots that share them read them
constexpr float ROUNDING = 12582912.0f;  // 1.5 · 2^23: adding a number to it rounds away the fraction
constexpr float NEVER = -std::numeric_limits<float>::infinity();

typedef float Floats __attribute__((vector_size(sizeof(float) * LANES)));
typedef int32_t Ints __attribute__((vector_size(sizeof(int32_t) * LANES)));
typedef uint32_t Unsigned __attribute__((vector_size(sizeof(uint32_t) * LANES)));
typedef uint16_t Shorts __attribute__((vector_size(sizeof(uint16_t) * LANES)));
typedef int8_t SignedBytes __attribute__((vector_size(LANES)));
typedef uint8_t Bytes __attribute__((vector_size(4 * LANES)));  // four for each of LANES columns

struct Half {
    uint16_t bits;
};

struct BFloat {
    uint16_t bits;
};

// The nearest number of 16 bits; of two, the even one.
inline BFloat as_bfloat(float number) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline float of_bits(uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

inline float as_float(float number) { return number; }
inline float as_float(BFloat number) { return of_bits(uint32_t(number.bits) << 16); }

// Moves exponent and fraction to float32's places; the product corrects the exponent's bias, also for subnormals.
inline float as_float(Half number) {
    const float size = of_bits(uint32_t(number.bits & 0x7fff) << 13) * 0x1p112f;
    return number.bits & 0x8000 ? -size : size;
}

template <typename Vector>
inline Vector load_as(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

inline Floats load(const float* from) { return load_as<Floats>(from); }

inline Floats load(const BFloat* from) { return (Floats)(__builtin_convertvector(load_as<Shorts>(from), Ints) << 16); }

inline Floats load(const Half* from) {
#if defined(__AVX512F__)
    return (Floats)_mm512_cvtph_ps(load_as<__m256i>(from));
#elif defined(__F16C__)
    return (Floats)_mm256_cvtph_ps(load_as<__m128i>(from));
#elif defined(__aarch64__)
    return (Floats)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)));
#else
    const Ints bits = __builtin_convertvector(load_as<Shorts>(from), Ints);
    const Floats size = (Floats)((bits & 0x7fff) << 13) * 0x1p112f;
    return (Floats)((Ints)size | ((bits & 0x8000) << 16));
#endif
}

// Lanes in another order: each changes places with the one `distance` further or before.
template <int distance, typename Vector, int... lane>
inline Vector swapped(const Vector& vector, std::integer_sequence<int, lane...>) {
#ifdef __clang__
    return __builtin_shufflevector(vector, vector, (lane ^ distance)...);
#else
    return __builtin_shuffle(vector, Ints{(lane ^ distance)...});
#endif
}

// What an operation makes of all lanes.
template <int distance = LANES / 2, typename Vector, typename Act>
inline auto across(const Vector& vector, const Act& act) {
    if constexpr (distance == 0) {
        return vector[0];
    } else {
        const auto lanes = std::make_integer_sequence<int, LANES>();
        return across<distance / 2>(Vector(act(vector, swapped<distance>(vector, lanes))), act);
    }
}

// Prefetches numbers that are read soon. An address after the end of an array has no effect.
template <int count, typename Number>
inline void fetch(const Number* from) {
#pragma GCC unroll 16
    for (int byte = 0; byte < count * int(sizeof(Number)); byte += LINE)
        __builtin_prefetch(reinterpret_cast<const char*>(from) + byte);
}

inline void store(float* to, const Floats& vector) { std::memcpy(to, &vector, sizeof vector); }

}  // namespace ladechat
