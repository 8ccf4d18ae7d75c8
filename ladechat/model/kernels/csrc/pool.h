// Threads that share the chunks of a task.
//
// A pass has hundreds of tasks of some microseconds. Each thread has a share of the chunks, in a row, since what it
// prefetches in one chunk belongs to the next; then it takes what others have left. So a thread that the system has not
// woken yet, or has taken off its core, is not waited for unless it is in the middle of a chunk.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ladechat {

constexpr int SPINS = 20000;  // about 0.2 ms: longer than Python's work between two tasks of a pass
constexpr int PATIENCE = 2000;
constexpr uint32_t CLOSED = 0xffffffff;
constexpr int MOST_THREADS = 256;

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class Pool {
   public:
    // Calls task(0) … task(count - 1) on up to so many threads, including this one, and returns when all are done.
    template <typename Task>
    void run(int64_t count, int threads, const Task& task) {
        std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
        if (threads == 1 || count == 1 || !lock.try_lock()) {
            for (int64_t chunk = 0; chunk < count; ++chunk) task(chunk);
            return;
        }
        threads = std::min(threads, MOST_THREADS);
        for (; started_ < threads - 1; ++started_) std::thread([this, own = started_ + 1] { serve(own); }).detach();
        call_ = [](const void* task, int64_t chunk) { (*static_cast<const Task*>(task))(chunk); };
        task_ = &task;
        count_ = count;
        threads_ = threads;
        done_ = 0;
        const uint32_t generation = ++generation_;
        for (int share = 0; share < threads; ++share) open(share, generation, start(share, count, threads));
        newest_.store(generation, std::memory_order_release);
        wake_.store(generation, std::memory_order_release);
        wake_.notify_all();
        work(generation, 0);
        for (int spin = 0; done_.load(std::memory_order_acquire) < count; ++spin)
            spin < PATIENCE ? pause() : std::this_thread::yield();  // to a thread that lost its core in a chunk
        for (int share = 0; share < threads; ++share) open(share, generation, CLOSED);  // before the next task is written
    }

   private:
    // The next chunk of a thread's share, with the generation of its task in the upper half.
    struct alignas(64) Share {
        std::atomic<uint64_t> next{CLOSED};
    };

    static int64_t start(int share, int64_t count, int threads) { return count * share / threads; }

    void open(int share, uint32_t generation, uint32_t chunk) {
        shares_[share].next.store(uint64_t(generation) << 32 | chunk, std::memory_order_release);
    }

    [[noreturn]] void serve(int own) {
        for (uint32_t seen = 0;;) {
            const uint32_t asleep_at = wake_.load(std::memory_order_acquire);
            uint32_t generation = seen;
            for (int spin = 0; spin < SPINS && generation == seen; ++spin, pause())
                generation = newest_.load(std::memory_order_acquire);
            if (generation == seen) {
                wake_.wait(asleep_at, std::memory_order_acquire);
                continue;
            }
            seen = generation;
            if (own < threads_.load(std::memory_order_relaxed)) work(generation, own);
        }
    }

    // Its own share, then what is left of the others. A chunk is taken by exchanging `next`, which fails if the task is
    // another one by then.
    void work(uint32_t generation, int own) {
        const auto call = call_.load(std::memory_order_relaxed);
        const auto task = task_.load(std::memory_order_relaxed);
        const auto count = count_.load(std::memory_order_relaxed);
        const int threads = threads_.load(std::memory_order_relaxed);
        for (int i = 0; i < threads; ++i) {
            const int share = (own + i) % threads;
            const int64_t end = start(share + 1, count, threads);
            std::atomic<uint64_t>& at = shares_[share].next;
            uint64_t next = at.load(std::memory_order_acquire);
            while (next >> 32 == generation && int64_t(uint32_t(next)) < end) {
                if (!at.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
                call(task, uint32_t(next));
                done_.fetch_add(1, std::memory_order_acq_rel);
                next = at.load(std::memory_order_acquire);
            }
        }
    }

    std::mutex mutex_;
    int started_ = 0;
    uint32_t generation_ = 0;  // of the task; it may wrap around
    Share shares_[MOST_THREADS];
    alignas(64) std::atomic<uint32_t> newest_{0};  // generation
    alignas(64) std::atomic<int64_t> done_{0};
    alignas(64) std::atomic<uint32_t> wake_{0};
    std::atomic<void (*)(const void*, int64_t)> call_{nullptr};
    std::atomic<const void*> task_{nullptr};
    std::atomic<int64_t> count_{0};
    std::atomic<int> threads_{0};
};

inline Pool& pool() {
    static Pool* const threads = new Pool;  // never destroyed: its threads run until the process ends
    return *threads;
}

}  // namespace ladechat
