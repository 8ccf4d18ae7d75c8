// The largest number of each row and its share in the softmax of the row; and the largest few.

#pragma once

#include <cmath>
#include <vector>

#include "attention.h"
#include "pool.h"

namespace ladechat {

struct Best {
    int64_t index;  // the first of equal ones
    float log_share;
};

inline Best best_of(const float* x, int64_t count) {
    Floats highest = Floats{} + NEVER, sums{};
    Ints at{};
    const int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        const Floats some = load(x + i);
        const auto larger = some > highest;
        highest = larger ? some : highest;
        at = larger ? Ints{} + int32_t(i) : at;
    }
    Best best{0, 0};
    float top = NEVER;
    for (int lane = 0; lane < LANES; ++lane) {
        const int64_t index = at[lane] + lane;
        if (highest[lane] > top || (highest[lane] == top && index < best.index)) top = highest[lane], best.index = index;
    }
    for (int64_t i = whole; i < count; ++i)
        if (x[i] > top) top = x[i], best.index = i;
    for (int64_t i = 0; i < whole; i += LANES) sums += exponential(load(x + i) - top);
    float total = 0;
    for (int lane = 0; lane < LANES; ++lane) total += sums[lane];
    for (int64_t i = whole; i < count; ++i) total += std::exp(x[i] - top);
    best.log_share = -std::log(total);
    return best;
}

constexpr int64_t SEGMENT = 64 * LANES;

// The largest of the numbers that are offered, in falling order; of equal ones, those offered first.
class Largest {
   public:
    explicit Largest(int64_t most) : most_(most) {}

    void offer(float number, int64_t index) {
        if (int64_t(found_.size()) == most_) {
            if (!(number > found_.back().number)) return;
            found_.pop_back();
        }
        auto at = found_.end();
        while (at != found_.begin() && number > at[-1].number) --at;
        found_.insert(at, {number, index});
    }

    struct Found {
        float number;
        int64_t index;
    };
    const std::vector<Found>& found() const { return found_; }

   private:
    int64_t most_;
    std::vector<Found> found_;
};

// The indices of the `most` largest numbers, the largest first.
//
// Each lane of the vectors of a segment is a group, of which only the maximum is found. The largest numbers are in the
// groups with the largest maxima.
inline void largest_of(const float* x, int64_t count, int64_t most, int64_t* indices) {
    Largest groups(most), numbers(most);
    for (int64_t segment = 0; segment < count; segment += SEGMENT) {
        const int64_t end = std::min(segment + SEGMENT, count), whole = segment + (end - segment) / LANES * LANES;
        Floats highest = Floats{} + NEVER;
        for (int64_t i = segment; i < whole; i += LANES) {
            const Floats some = load(x + i);
            highest = some > highest ? some : highest;
        }
        for (int64_t i = whole; i < end; ++i) highest[i - whole] = std::max(highest[i - whole], x[i]);
        for (int lane = 0; lane < std::min<int64_t>(LANES, end - segment); ++lane) groups.offer(highest[lane], segment + lane);
    }
    for (const auto& group : groups.found())
        for (int64_t i = group.index; i < std::min(group.index / SEGMENT * SEGMENT + SEGMENT, count); i += LANES)
            numbers.offer(x[i], i);
    for (const auto& one : numbers.found()) *indices++ = one.index;
}

}  // namespace ladechat
