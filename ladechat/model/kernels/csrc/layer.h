// One decoder layer of a Llama-like model, Gemma among them.

#pragma once

#include <vector>

#include "attention.h"
#include "linear.h"
#include "norm.h"

namespace ladechat {

// Of the MLP; `ladechat.model.kernels.structures.ACTIVATIONS`.
enum class Activation : int64_t { silu, gelu };

// The weights of a layer. Norms of queries and keys, and of what attention and the MLP add to the states, are null in
// models that have none.
struct Layer {
    Matrix query, key, value, output, gate, up, down;
    const float *attention_norm, *query_norm, *key_norm, *after_attention, *mlp_norm, *after_mlp;
    int64_t head_dim;
    Activation activation;
    float epsilon, scale, cap;

    int64_t width() const { return query.inner; }
    int64_t heads() const { return query.columns / head_dim; }
    int64_t key_value_heads() const { return key.columns / head_dim; }
};

// A pass in a layer: the layer's keys and values in the cache with their strides, the slots, their rotary angles as rows
// (…, head_dim) and the row of each slot, and what each slot sees.
struct LayerPass {
    float *keys, *values;
    int64_t key_head, key_token, value_head, value_token;
    int64_t slots, cached;
    const float *cosines, *sines;
    const int64_t* angles;
    const bool* seen;
    int64_t seen_slot;  // stride
};

// The embedding, whose vectors are the columns of a matrix times a scale, all layers, the norm after them, and the output
// layer.
struct Model {
    Matrix embedding;
    float scale;
    const Layer* layers;
    int64_t count;
    const float* norm;
    float epsilon;
    Matrix output;
};

// SiLU, x · sigmoid(x), or GELU by a hyperbolic tangent, which is the same with another number in the sigmoid:
// (1 + tanh(y)) / 2 = sigmoid(2 · y).
template <Activation activation>
inline Floats activated(const Floats& x) {
    constexpr float twice = 1.59576912f;  // 2 · √(2 / π)
    const Floats y = activation == Activation::silu ? x : twice * (x + 0.044715f * x * x * x);
    const Floats e = exponential(y < 0.0f ? y : -y);
    return x * (y < 0.0f ? e : Floats{} + 1.0f) / (1.0f + e);
}

// A head's vector, rotated: each number of its first half together with one of the second.
inline void rotate(const float* x, const float* cosines, const float* sines, float* y, int64_t dim) {
    const int64_t half = dim / 2;
    for (int64_t i = 0; i < half; ++i) {
        const float one = x[i], other = x[i + half];
        y[i] = one * cosines[i] - other * sines[i];
        y[i + half] = other * cosines[i + half] + one * sines[i + half];
    }
}

// Norms and rotates the heads (heads, head_dim) of a slot; `stride` is that of the result.
inline void place_heads(float* x, const float* norm, int64_t heads, const Layer& layer, const float* cosines,
                        const float* sines, float* to, int64_t stride) {
    if (norm) rms_norm(x, norm, x, heads, layer.head_dim, layer.epsilon);
    for (int64_t head = 0; head < heads; ++head)
        rotate(x + head * layer.head_dim, cosines, sines, to + head * stride, layer.head_dim);
}

// Queries into `queries`, keys and values into the cache, from the normed states (slots, width).
inline void project(const Layer& layer, const LayerPass& pass, const float* normed, float* queries, int threads) {
    static thread_local std::vector<float> projected;
    const Matrix* const parts[] = {&layer.query, &layer.key, &layer.value};
    const int64_t dim = layer.head_dim, key_columns = layer.key.columns;
    const int64_t starts[] = {0, layer.query.columns, layer.query.columns + key_columns};
    const int64_t total = starts[2] + layer.value.columns;
    projected.resize(pass.slots * total);
    float* const all = projected.data();
    const int64_t query_blocks = layer.query.blocks(), key_blocks = layer.key.blocks();
    const int64_t blocks = query_blocks + key_blocks + layer.value.blocks();
    const Input input(normed, layer.width());
    share(pass.slots, blocks, layer.width(), threads, [&](int64_t first, int64_t count, int64_t block) {
        const int part = block < query_blocks ? 0 : block < query_blocks + key_blocks ? 1 : 2;
        const int64_t own = block - (part > 0 ? query_blocks : 0) - (part > 1 ? key_blocks : 0);
        float some[GROUP * COLUMNS];
        multiply(input, first, count, {*parts[part], own, some});
        for (int64_t row = 0; row < count; ++row)
            std::copy_n(some + row * COLUMNS, parts[part]->width(own),
                        all + (first + row) * total + starts[part] + own * COLUMNS);
    });
    for (int64_t slot = 0; slot < pass.slots; ++slot) {
        float* const of = all + slot * total;
        const float *cosines = pass.cosines + pass.angles[slot] * dim, *sines = pass.sines + pass.angles[slot] * dim;
        const int64_t place = pass.cached + slot;
        place_heads(of, layer.query_norm, layer.heads(), layer, cosines, sines,
                    queries + slot * layer.query.columns, dim);
        place_heads(of + starts[1], layer.key_norm, layer.key_value_heads(), layer, cosines, sines,
                    pass.keys + place * pass.key_token, pass.key_head);
        for (int64_t head = 0; head < layer.key_value_heads(); ++head)
            std::copy_n(of + starts[2] + head * dim, dim, pass.values + place * pass.value_token + head * pass.value_head);
    }
}

// activation(gate) · up of the normed states (slots, width), into `gated` (slots, columns).
template <Activation activation>
inline void gate_up(const Layer& layer, int64_t slots, const float* normed, float* gated, int threads) {
    const int64_t columns = layer.gate.columns;
    const Input input(normed, layer.width());
    share(slots, layer.gate.blocks(), 2 * layer.width(), threads, [&](int64_t first, int64_t count, int64_t block) {
        float gates[GROUP * COLUMNS], ups[GROUP * COLUMNS];
        multiply(input, first, count, {layer.gate, block, gates}, {layer.up, block, ups});
        for (int64_t i = 0; i < count * COLUMNS; i += LANES)
            store(gates + i, activated<activation>(load(gates + i)) * load(ups + i));
        for (int64_t row = 0; row < count; ++row)
            std::copy_n(gates + row * COLUMNS, layer.gate.width(block), gated + (first + row) * columns + block * COLUMNS);
    });
}

// Adds the product of x with a matrix to states (slots, width); with a norm, the norm of the product.
inline void add_product(const float* x, const Matrix& matrix, const float* norm, float epsilon, float* states,
                        int64_t slots, int threads) {
    static thread_local std::vector<float> added;
    if (!norm) return product(x, matrix, states, slots, threads, true);
    added.resize(slots * matrix.columns);
    product(x, matrix, added.data(), slots, threads);
    rms_norm(added.data(), norm, added.data(), slots, matrix.columns, epsilon);
    for (size_t i = 0; i < added.size(); ++i) states[i] += added[i];
}

// States (slots, width) after the layer, in place.
inline void run_layer(const Layer& layer, const LayerPass& pass, float* states, int threads) {
    static thread_local std::vector<float> normed, queries, attended, gated;
    const int64_t slots = pass.slots, width = layer.width(), dim = layer.head_dim;
    normed.resize(slots * width);
    queries.resize(slots * layer.query.columns);
    attended.resize(slots * layer.query.columns);
    gated.resize(slots * layer.gate.columns);
    rms_norm(states, layer.attention_norm, normed.data(), slots, width, layer.epsilon);
    project(layer, pass, normed.data(), queries.data(), threads);
    attend({.queries = queries.data(),
            .query_head = dim,
            .query_slot = layer.query.columns,
            .keys = {pass.keys, pass.key_head, pass.key_token, dim},
            .values = {pass.values, pass.value_head, pass.value_token, dim},
            .seen = pass.seen,
            .seen_slot = pass.seen_slot,
            .out = attended.data(),
            .heads = layer.heads(),
            .key_value_heads = layer.key_value_heads(),
            .slots = slots,
            .tokens = pass.cached + slots,
            .scale = layer.scale,
            .cap = layer.cap},
           threads);
    add_product(attended.data(), layer.output, layer.after_attention, layer.epsilon, states, slots, threads);
    rms_norm(states, layer.mlp_norm, normed.data(), slots, width, layer.epsilon);
    const auto run_gate_up = layer.activation == Activation::silu ? gate_up<Activation::silu> : gate_up<Activation::gelu>;
    run_gate_up(layer, slots, normed.data(), gated.data(), threads);
    add_product(gated.data(), layer.down, layer.after_mlp, layer.epsilon, states, slots, threads);
}

// A whole pass over tokens (slots): the states (slots, width) after the final norm, and the logits (read, vocabulary) of
// the last `read` slots.
inline void run_pass(const Model& model, const LayerPass* passes, const int64_t* tokens, float* states, int64_t read,
                     float* logits, int threads) {
    const int64_t slots = passes->slots, width = model.embedding.inner;
    for (int64_t slot = 0; slot < slots; ++slot) {
        float* const state = states + slot * width;
        read_column(model.embedding, tokens[slot], state);
        for (int64_t i = 0; i < width; ++i) state[i] *= model.scale;
    }
    for (int64_t i = 0; i < model.count; ++i) run_layer(model.layers[i], passes[i], states, threads);
    rms_norm(states, model.norm, states, slots, width, model.epsilon);
    product(states + (slots - read) * width, model.output, logits, read, threads);
}

}  // namespace ladechat
