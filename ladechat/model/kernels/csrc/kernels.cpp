// The kernels in which a float32 model spends its time on a CPU: linear layers, attention, norms, whole decoder layers.
//
// The usual libraries are made for many rows. Ours store weights in the order in which they are read, in 16 bits where
// that is exact, and all sums are in 32 bits. `ladechat.model.kernels.library` calls these functions with tensors whose
// types and shapes it has checked.

#include "attention.h"
#include "best.h"
#include "layer.h"
#include "linear.h"
#include "norm.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace ladechat;

// x (rows, inner) times a matrix into y (rows, columns).
EXPORTED void linear(const Matrix* matrix, const float* x, float* y, int64_t rows, int threads) {
    product(x, *matrix, y, rows, threads);
}

// The weights (count, inner) of some columns of a matrix, as an embedding reads them.
EXPORTED void columns(const Matrix* matrix, const int64_t* columns, int64_t count, float* to) {
    for (int64_t i = 0; i < count; ++i) read_column(*matrix, columns[i], to + i * matrix->inner);
}

// Whether products with bfloat16 run in tiles, for which their weights have to be packed.
EXPORTED bool has_tiles() { return amx_runs; }

// What the other products are computed with.
EXPORTED const char* instructions() { return INSTRUCTIONS; }

// Weights (columns, inner) as integers in groups, see `Group`.
EXPORTED void pack(const float* weights, void* groups, int64_t columns, int64_t inner, int bits) {
    if (bits == 8) return pack_integers(weights, columns, inner, static_cast<Group<8>*>(groups));
    pack_integers(weights, columns, inner, static_cast<Group<4>*>(groups));
}

// x (rows, width), each row divided by the root of the mean of its squares plus epsilon, times weight (width), into y.
EXPORTED void norm(const float* x, const float* weight, float* y, int64_t rows, int64_t width, float epsilon) {
    rms_norm(x, weight, y, rows, width, epsilon);
}

EXPORTED void attention(const Attention* attention, int threads) { attend(*attention, threads); }

// States (slots, width) after a decoder layer, in place.
EXPORTED void layer(const Layer* layer, const LayerPass* pass, float* states, int threads) {
    run_layer(*layer, *pass, states, threads);
}

EXPORTED void pass(const Model* model, const LayerPass* passes, const int64_t* tokens, float* states, int64_t read,
                   float* logits, int threads) {
    run_pass(*model, passes, tokens, states, read, logits, threads);
}

// Of each row of logits (rows, count), the index of the largest and the logarithm of its share in the softmax.
EXPORTED void best(const float* logits, int64_t rows, int64_t count, Best* found, int threads) {
    pool().run(rows, rows * count < WORTH_SHARING ? 1 : threads,
               [&](int64_t row) { found[row] = best_of(logits + row * count, count); });
}

// Of each row of logits (rows, count), the indices (rows, most) of the largest, the largest first.
EXPORTED void largest(const float* logits, int64_t rows, int64_t count, int64_t most, int64_t* found, int threads) {
    pool().run(rows, rows * count < WORTH_SHARING ? 1 : threads,
               [&](int64_t row) { largest_of(logits + row * count, count, most, found + row * most); });
}
