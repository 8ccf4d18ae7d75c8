// What most of a pass of a small model on a CPU is: products of a few rows with a matrix, and attention of a few slots.
//
// The usual libraries are made for many rows. Here weights lie in the order in which they are read, in 16 bits where that
// is exact, and all sums are of 32 bits. A row is summed up in the same order however many there are beside it.
//
// Called by compiled passes through torch's C interface for them, and by `ladechat.model.kernels` through ctypes.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef THREADS
#define THREADS 1
#endif

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 8;  // as wide as a register, and so many rows that 2 × ROWS sums, and what they are
#elif defined(__AVX__)               // added up from, fit into all of them
constexpr int LANES = 8, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 6;
#endif
constexpr int COLUMNS = 32;               // of a block of packed weights; `ladechat.model.kernels.COLUMNS`
constexpr int TOKENS = 16;                // whose values stay in the cache while all heads and slots read them
constexpr int64_t WORTH_SHARING = 1 << 19;  // products that keep a thread busy for ten times what waking others takes
constexpr float NEVER = -std::numeric_limits<float>::infinity();

typedef float Floats __attribute__((vector_size(sizeof(float) * LANES)));
typedef int32_t Ints __attribute__((vector_size(sizeof(int32_t) * LANES)));
typedef uint16_t Shorts __attribute__((vector_size(sizeof(uint16_t) * LANES)));

struct Half {
    uint16_t bits;
};

struct BFloat {
    uint16_t bits;
};

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
    // Exponent and fraction where float32 has them; the product brings the exponent's offset right, subnormals included.
    const Ints bits = __builtin_convertvector(load_as<Shorts>(from), Ints);
    const Floats size = (Floats)((bits & 0x7fff) << 13) * 0x1p112f;
    return (Floats)((Ints)size | ((bits & 0x8000) << 16));
#endif
}

inline void store(float* to, const Floats& vector) { std::memcpy(to, &vector, sizeof vector); }

// --- products ---------------------------------------------------------------------------------------------------------

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

// (rows, inner) times (blocks, inner, COLUMNS): (rows, columns).
template <typename Weight>
void product(const float* x, const void* packed, float* y, int64_t rows, int64_t inner, int64_t columns) {
    const Weight* weights = static_cast<const Weight*>(packed);
    const int64_t whole = columns / COLUMNS * COLUMNS;
#pragma omp parallel for num_threads(THREADS) if (THREADS > 1 && rows * inner * columns > WORTH_SHARING)
    for (int64_t column = 0; column < whole; column += COLUMNS)
        any_rows(rows, x, inner, weights + column * inner, COLUMNS, y + column, columns, inner);
    if (whole == columns) return;
    std::vector<float> last(rows * COLUMNS);
    any_rows(rows, x, inner, weights + whole * inner, COLUMNS, last.data(), COLUMNS, inner);
    for (int64_t row = 0; row < rows; ++row)
        std::copy_n(&last[row * COLUMNS], columns - whole, y + row * columns + whole);
}

// --- attention --------------------------------------------------------------------------------------------------------

// Two vectors whose groups of 2 · half lanes become groups of half lanes of one, with the same sums.
template <int half, int... lane>
inline Floats halved(const Floats& one, const Floats& other, std::integer_sequence<int, lane...>) {
#ifdef __clang__
    return __builtin_shufflevector(one, other, (lane / half * 2 * half + lane % half)...) +
           __builtin_shufflevector(one, other, (lane / half * 2 * half + lane % half + half)...);
#else
    return __builtin_shuffle(one, other, Ints{(lane / half * 2 * half + lane % half)...}) +
           __builtin_shuffle(one, other, Ints{(lane / half * 2 * half + lane % half + half)...});
#endif
}

// The sums over the lanes of as many vectors as there are lanes, one a lane.
template <int count = LANES>
inline Floats totals(Floats* vectors) {
    if constexpr (count == 1) {
        return vectors[0];
    } else {
        for (int i = 0; i < count / 2; ++i)
            vectors[i] = halved<count / 2>(vectors[2 * i], vectors[2 * i + 1], std::make_integer_sequence<int, LANES>());
        return totals<count / 2>(vectors);
    }
}

// The products of a query with LANES keys; behind the last key, which is the `count`th, with that one again.
inline Floats scores_of(const float* query, const float* keys, int64_t stride, int64_t count, int64_t dim) {
    const float* key[LANES];
    for (int64_t i = 0; i < LANES; ++i) key[i] = keys + std::min(i, count - 1) * stride;
    Floats sums[LANES] = {};
    int64_t d = 0;
    for (; d + LANES <= dim; d += LANES) {
        const Floats part = load(query + d);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; ++i) sums[i] += part * load(key[i] + d);
    }
    for (int lane = 0; d < dim; ++d, ++lane)
        for (int i = 0; i < LANES; ++i) sums[i][lane] += query[d] * key[i][d];
    return totals(sums);
}

// e^x for x ≤ 0, to the last bit or two: 2^n · e^r for the whole n that leaves |r| ≤ ln 2 / 2, and the Taylor sum of e^r.
inline Floats exponential(Floats x) {
    x = x < -87.0f ? Floats{} - 87.0f : x;
    const float rounding = 12582912.0f;  // 1.5 · 2^23: what is added to it loses its fraction
    const Floats n = (x * 1.44269504f + rounding) - rounding;
    const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    Floats sum = Floats{} + 1.0f / 5040;
    for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) sum = sum * r + factor;
    return sum * (Floats)((__builtin_convertvector(n, Ints) + 127) << 23);
}

// Scores to weights whose sum is 1, in place; `length` is a multiple of `LANES`.
void softmax(float* scores, int64_t length) {
    Floats highest = Floats{} + NEVER, sum{};
    for (int64_t j = 0; j < length; j += LANES) {
        const Floats some = load(scores + j);
        highest = some > highest ? some : highest;
    }
    float top = NEVER;
    for (int lane = 0; lane < LANES; ++lane) top = std::max(top, highest[lane]);
    for (int64_t j = 0; j < length; j += LANES) {
        const Floats some = load(scores + j), weights = some == NEVER ? Floats{} : exponential(some - top);
        store(scores + j, weights);
        sum += weights;
    }
    float total = 0;
    for (int lane = 0; lane < LANES; ++lane) total += sum[lane];
    for (int64_t j = 0; j < length; j += LANES) store(scores + j, load(scores + j) / total);
}

// Keys or values of all heads: token by token, as they lie in the cache.
struct Rows {
    const float* data;
    int64_t head, token, dim;  // strides, in numbers, and how many belong together
};

// What a pass asks of its cache, and where the results go: (T, heads, value_dim).
struct Attention {
    const float* queries;
    int64_t query_head, query_slot;  // strides
    Rows keys, values;
    const bool* seen;
    int64_t seen_slot;  // stride
    float* out;
    int64_t heads, key_value_heads, slots, tokens;
    float scale;

    int64_t padded() const { return (tokens + LANES - 1) / LANES * LANES; }
    int64_t group(int64_t head) const { return head * key_value_heads / heads; }
    void score(float* scores) const;
    void add_up(const float* weights) const;
};

// (heads, T, padded) scores. Keys are read once, in the order in which they lie.
void Attention::score(float* scores) const {
    for (int64_t j = 0; j < tokens; j += LANES) {
        const int64_t count = std::min<int64_t>(LANES, tokens - j);
        for (int64_t head = 0; head < heads; ++head)
            for (int64_t slot = 0; slot < slots; ++slot) {
                const Floats some = scores_of(queries + head * query_head + slot * query_slot,
                                              keys.data + group(head) * keys.head + j * keys.token, keys.token, count, keys.dim);
                const bool* visible = seen + slot * seen_slot + j;
                float* to = scores + (head * slots + slot) * padded() + j;
                for (int64_t i = 0; i < LANES; ++i) to[i] = i < count && visible[i] ? some[i] * scale : NEVER;
            }
    }
}

// Values times their weights, read once, some tokens at a time.
void Attention::add_up(const float* weights) const {
    static thread_local std::vector<float> sums, last;
    const int64_t dim = values.dim, width = (dim + COLUMNS - 1) / COLUMNS * COLUMNS;
    sums.assign(heads * slots * width, 0.0f);
    for (int64_t j = 0; j < tokens; j += TOKENS) {
        const int64_t count = std::min<int64_t>(TOKENS, tokens - j);
        for (int64_t head = 0; head < heads; ++head)
            for (int64_t d = 0; d < dim; d += COLUMNS) {
                const float* from = values.data + group(head) * values.head + j * values.token + d;
                int64_t stride = values.token;
                if (d + COLUMNS > dim) {  // a block would be read beyond its last value
                    last.assign(count * COLUMNS, 0.0f);
                    for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * stride, dim - d, &last[i * COLUMNS]);
                    from = last.data();
                    stride = COLUMNS;
                }
                any_rows(slots, weights + head * slots * padded() + j, padded(), from, stride,
                         &sums[head * slots * width + d], width, count, true);
            }
    }
    for (int64_t head = 0; head < heads; ++head)
        for (int64_t slot = 0; slot < slots; ++slot)
            std::copy_n(&sums[(head * slots + slot) * width], dim, out + (slot * heads + head) * dim);
}

// --- torch's tensors --------------------------------------------------------------------------------------------------

struct Tensor {
    void* data;
    int64_t dims, *sizes, *strides;
    int32_t type;
    bool readable;

    explicit Tensor(AtenTensorHandle handle) {
        readable = aoti_torch_get_data_ptr(handle, &data) == AOTI_TORCH_SUCCESS &&
                   aoti_torch_get_dim(handle, &dims) == AOTI_TORCH_SUCCESS &&
                   aoti_torch_get_sizes(handle, &sizes) == AOTI_TORCH_SUCCESS &&
                   aoti_torch_get_strides(handle, &strides) == AOTI_TORCH_SUCCESS &&
                   aoti_torch_get_dtype(handle, &type) == AOTI_TORCH_SUCCESS;
    }

    bool floats() const { return readable && type == aoti_torch_dtype_float32(); }

    bool heads_of_floats() const { return floats() && dims == 4 && sizes[0] == 1 && strides[3] == 1; }

    bool in_one_piece() const {
        int64_t stride = 1;
        for (int64_t d = dims - 1; d >= 0; stride *= sizes[d--])
            if (sizes[d] != 1 && strides[d] != stride) return false;
        return true;
    }
};

AOTITorchError new_floats(const std::vector<int64_t>& sizes, AtenTensorHandle* result) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
    return aoti_torch_empty_strided(sizes.size(), sizes.data(), strides.data(), aoti_torch_dtype_float32(),
                                    aoti_torch_device_type_cpu(), 0, result);
}

Rows rows_of(const Tensor& tensor) {
    return {static_cast<const float*>(tensor.data), tensor.strides[1], tensor.strides[2], tensor.sizes[3]};
}

}  // namespace

extern "C" {

// `ladechat::packed_linear`: x (…, inner) in one piece, packed (blocks, inner, COLUMNS).
__attribute__((visibility("default"))) AOTITorchError aoti_torch_cpu_packed_linear(
    AtenTensorHandle x_handle, AtenTensorHandle packed_handle, int64_t columns, AtenTensorHandle* result) {
    const Tensor x(x_handle), packed(packed_handle);
    const bool right = x.floats() && x.in_one_piece() && x.dims > 0 && packed.readable && packed.in_one_piece() &&
                       packed.dims == 3 && packed.sizes[0] == (columns + COLUMNS - 1) / COLUMNS &&
                       packed.sizes[1] == x.sizes[x.dims - 1] && packed.sizes[2] == COLUMNS;
    if (!right) return AOTI_TORCH_FAILURE;
    std::vector<int64_t> sizes(x.sizes, x.sizes + x.dims);
    const int64_t inner = sizes.back();
    int64_t rows = 1;
    for (int64_t d = 0; d < x.dims - 1; ++d) rows *= sizes[d];
    sizes.back() = columns;
    if (const AOTITorchError error = new_floats(sizes, result)) return error;
    float* y = static_cast<float*>(Tensor(*result).data);
    const float* from = static_cast<const float*>(x.data);
    if (packed.type == aoti_torch_dtype_float16())
        product<Half>(from, packed.data, y, rows, inner, columns);
    else if (packed.type == aoti_torch_dtype_bfloat16())
        product<BFloat>(from, packed.data, y, rows, inner, columns);
    else if (packed.floats())
        product<float>(from, packed.data, y, rows, inner, columns);
    else
        return AOTI_TORCH_FAILURE;
    return AOTI_TORCH_SUCCESS;
}

// `ladechat::slot_attention`: query (1, heads, T, key_dim), keys and values (1, key_value_heads, L + T, dim), mask
// (1, 1, T, L + T); (1, T, heads, value_dim) comes out.
__attribute__((visibility("default"))) AOTITorchError aoti_torch_cpu_slot_attention(
    AtenTensorHandle query_handle, AtenTensorHandle keys_handle, AtenTensorHandle values_handle,
    AtenTensorHandle mask_handle, double scale, AtenTensorHandle* result) {
    const Tensor query(query_handle), keys(keys_handle), values(values_handle), mask(mask_handle);
    const bool right = query.heads_of_floats() && keys.heads_of_floats() && values.heads_of_floats() && mask.readable &&
                       mask.type == aoti_torch_dtype_bool() && mask.dims == 4 && mask.strides[3] == 1 &&
                       mask.sizes[0] * mask.sizes[1] == 1 && mask.sizes[2] == query.sizes[2] &&
                       mask.sizes[3] == keys.sizes[2] && keys.sizes[2] == values.sizes[2] &&
                       keys.sizes[1] == values.sizes[1] && query.sizes[1] % keys.sizes[1] == 0 &&
                       query.sizes[3] == keys.sizes[3];
    if (!right) return AOTI_TORCH_FAILURE;
    const int64_t heads = query.sizes[1], slots = query.sizes[2], value_dim = values.sizes[3];
    if (const AOTITorchError error = new_floats({1, slots, heads, value_dim}, result)) return error;
    const Attention attention{.queries = static_cast<const float*>(query.data),
                              .query_head = query.strides[1],
                              .query_slot = query.strides[2],
                              .keys = rows_of(keys),
                              .values = rows_of(values),
                              .seen = static_cast<const bool*>(mask.data),
                              .seen_slot = mask.strides[2],
                              .out = static_cast<float*>(Tensor(*result).data),
                              .heads = heads,
                              .key_value_heads = keys.sizes[1],
                              .slots = slots,
                              .tokens = keys.sizes[2],
                              .scale = static_cast<float>(scale)};
    static thread_local std::vector<float> scores;
    scores.resize(heads * slots * attention.padded());
    attention.score(scores.data());
    for (int64_t row = 0; row < heads * slots; ++row) softmax(&scores[row * attention.padded()], attention.padded());
    attention.add_up(scores.data());
    return AOTI_TORCH_SUCCESS;
}

}  // extern "C"
