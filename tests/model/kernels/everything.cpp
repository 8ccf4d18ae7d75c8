// Calls every kernel with matrices, caches and trees of many shapes, in arrays that are exactly as large as they say, so
// that a sanitizer finds what is read or written beyond their ends. The results are compared elsewhere.

#include <cstdlib>
#include <random>
#include <vector>

#include "kernels.cpp"

static std::mt19937 dice(1);

static int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(dice);
}

static std::vector<float> numbers(int64_t count) {
    std::vector<float> drawn(count);
    for (float& number : drawn) number = std::normal_distribution<float>()(dice);
    return drawn;
}

// A matrix of any kind, with the memory that it points to.
struct Made {
    std::vector<uint8_t> packed;
    std::vector<Line> lines;
    std::vector<float> bias;
    Matrix matrix;

    Made(Kind kind, int64_t inner, int64_t columns) : bias(numbers(columns)) {
        const int64_t blocks = (columns + COLUMNS - 1) / COLUMNS, groups = (inner + GROUPED - 1) / GROUPED;
        if (kind == Kind::int8 || kind == Kind::int4) {
            const int bits = kind == Kind::int8 ? 8 : 4;
            packed.resize(blocks * groups * (bits == 8 ? sizeof(Group<8>) : sizeof(Group<4>)));
            pack(numbers(inner * columns).data(), packed.data(), columns, inner, bits);
        } else if (kind == Kind::tiled) {
            lines.resize(blocks * ((inner + DEPTH - 1) / DEPTH) * 2 * HEIGHT);
            for (Line& line : lines)
                for (BFloat& number : line.numbers) number = as_bfloat(std::normal_distribution<float>()(dice));
        } else {
            packed.resize(blocks * inner * COLUMNS * (kind == Kind::float32 ? 4 : 2));
        }
        const void* const weights = kind == Kind::tiled ? static_cast<const void*>(lines.data()) : packed.data();
        matrix = {kind, weights, between(0, 1) ? bias.data() : nullptr, inner, columns};
    }
};

static void products(Kind kind) {
    const int64_t rows = between(1, 30), inner = between(1, 200), columns = between(1, 200);
    const Made made(kind, inner, columns);
    std::vector<float> y(rows * columns);
    linear(&made.matrix, numbers(rows * inner).data(), y.data(), rows, 2);
}

#ifdef WITH_AMX
// What AMX computes where it runs has the bits of the model, of one block and of two.
static void compare_tiles() {
    const int64_t rows = between(1, 100), inner = between(1, 200);
    const Made made(Kind::tiled, inner, 2 * COLUMNS);
    Split split;
    split.read(numbers(rows * inner).data(), rows, inner);
    std::vector<float> found[2], expected[2], alone(rows * COLUMNS);
    for (auto* both : {found, expected}) both[0].resize(rows * COLUMNS), both[1].resize(rows * COLUMNS);
    const Line* const blocks[] = {made.lines.data(), made.lines.data() + split.steps * 2 * HEIGHT};
    float *const ours[] = {found[0].data(), found[1].data()}, *const models[] = {expected[0].data(), expected[1].data()};
    float* const one = alone.data();
    tiled_rows<Amx, 2>(rows, split, blocks, ours);
    tiled_rows<TileModel, 2>(rows, split, blocks, models);
    tiled_rows<Amx, 1>(rows, split, blocks, &one);
    if (found[0] != expected[0] || found[1] != expected[1] || alone != found[0]) std::abort();
}
#endif

static void a_pass(Kind kind) {
    const int64_t slots = between(1, 40), cached = between(0, 40), tokens = cached + slots, dim = 2 * between(1, 20);
    const int64_t shared = between(1, 3), kv_heads = between(1, 3), heads = shared * kv_heads, width = between(1, 100);
    const Made query(kind, width, heads * dim), key(kind, width, kv_heads * dim), value(kind, width, kv_heads * dim);
    const Made output(kind, heads * dim, width), gate(kind, width, 70), up(kind, width, 70), down(kind, 70, width);
    const auto norms = numbers(width), head_norms = numbers(dim), angles = numbers(slots * dim);
    auto keys = numbers(tokens * kv_heads * dim), values = keys, states = numbers(slots * width);
    std::vector<int64_t> rows(slots);
    std::vector<uint8_t> seen(slots * tokens);
    for (int64_t slot = 0; slot < slots; ++slot) {
        rows[slot] = between(0, slots - 1);
        for (int64_t token = 0; token < tokens; ++token)
            seen[slot * tokens + token] = token < cached || token == cached + slot || (token < cached + slot && between(0, 1));
    }
    const float* own = between(0, 1) ? head_norms.data() : nullptr;
    const float* after = between(0, 1) ? norms.data() : nullptr;
    const Layer weights{query.matrix, key.matrix, value.matrix, output.matrix, gate.matrix, up.matrix, down.matrix,
                        norms.data(), own, own, after, norms.data(), after, dim,
                        between(0, 1) ? Activation::silu : Activation::gelu, 1e-5f, 0.5f, between(0, 1) ? 2.0f : 0.0f};
    const LayerPass pass{keys.data(), values.data(), dim, kv_heads * dim, dim, kv_heads * dim, slots, cached,
                         angles.data(), angles.data(), rows.data(), reinterpret_cast<const bool*>(seen.data()), tokens};
    layer(&weights, &pass, states.data(), 2);
    const Made tied(kind, width, 50);
    auto logits = numbers(slots * 50);
    const Model model{tied.matrix, 2.0f, &weights, 1, norms.data(), 1e-5f, tied.matrix};
    std::vector<Best> found(slots);
    best(logits.data(), slots, 50, found.data(), 2);
    std::vector<int64_t> likeliest(slots * 8);
    largest(logits.data(), slots, 50, 8, likeliest.data(), 2);
    ::pass(&model, &pass, rows.data(), states.data(), between(1, slots), logits.data(), 2);
}

int main() {
    for (int round = 0; round < 20; ++round) {
        for (const Kind kind : {Kind::float32, Kind::bfloat16, Kind::float16, Kind::int8, Kind::int4, Kind::tiled}) {
            products(kind);
            a_pass(kind);
        }
#ifdef WITH_AMX
        if (amx_runs) compare_tiles();
#endif
    }
}
