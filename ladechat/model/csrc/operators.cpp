// What most of a pass of a small model on a CPU is, as operators of torch: linear layers, and attention of a few slots.
//
// The usual libraries are made for many rows. Here weights lie in the order in which they are read, in 16 bits where
// that is exact, and all sums are of 32 bits. A row is summed up in the same order however many there are beside it.
//
// Called by compiled passes through torch's C interface for them, and by `ladechat.model.kernels` through ctypes. Besides,
// for a greedy step, what it reads of the logits.

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include "attention.h"
#include "likeliest.h"
#include "linear.h"

namespace {

using namespace ladechat;

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

// For every row of logits (rows, columns) the likeliest token and the natural logarithm of its probability.
__attribute__((visibility("default"))) void ladechat_likeliest(const float* logits, int64_t rows, int64_t columns,
                                                               int64_t* tokens, double* logprobs) {
    for (int64_t row = 0; row < rows; ++row, logits += columns) {
        tokens[row] = first_of_the_largest(logits, columns);
        logprobs[row] = 0.0 - std::log(sum_of_exponentials(logits, columns, logits[tokens[row]]));
    }
}

}  // extern "C"
