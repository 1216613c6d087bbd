// The threads of parallel loops, and how many there may be.
//
// A barrier at the end of a loop, as OpenMP has, makes the caller wait for threads that the
// operating system has not woken yet. Here the caller works through the loop itself. Helpers join
// when they wake, and when no tasks are left, the caller waits only for those that are in the
// middle of one.
#include "threads.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#pragma warning(disable : 4996)  // std::getenv
#endif

namespace kitchenette {

namespace {

// ---------------------------------------------------------------- helpers

using Clock = std::chrono::steady_clock;

// The time for which a thread spins, about as long as waking one takes.
constexpr auto longest_spin = std::chrono::microseconds(40);

// The least work that pays to share with a thread that is awake, and to wake a thread for. Measured
// with transforms, which are the cheapest work: a thread that was asleep has cold caches and branch
// predictors, and the data is in the caches of another processor.
constexpr Size least_shared = Size{1} << 15, least_waking = Size{1} << 18;

void pause_processor() {
#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_pause();
#elif defined(_MSC_VER) && defined(_M_ARM64)
    __yield();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Waits actively until a condition holds, for a short time; returns whether it does.
template <class Condition> bool spin_until(const Condition& condition) {
    const Clock::time_point end = Clock::now() + longest_spin;
    do {
        for (int i = 0; i < 16; ++i) {
            if (condition()) return true;
            pause_processor();
        }
    } while (Clock::now() < end);
    return condition();
}

struct Range {
    Size begin, end;
    bool empty() const { return begin >= end; }
};

// A loop under way; it lives on the stack of its caller.
struct Job {
    explicit Job(const Loop& given) : loop(given), free_seats(given.n_threads - 1) {}

    // The next tasks for one thread. Their number decreases with what is left, so that at the end
    // no thread has much to do when the others have finished.
    Range claim() {
        Size begin = next.load(std::memory_order_relaxed);
        while (begin < loop.tasks) {
            const Size part = (loop.tasks - begin) / (Size{4} * loop.n_threads);
            const Size end = begin + (loop.one_by_one ? 1 : std::max(part, Size{1}));
            if (next.compare_exchange_weak(begin, end, std::memory_order_relaxed))
                return {begin, end};
        }
        return {loop.tasks, loop.tasks};
    }

    // Runs these tasks and then others until none are left.
    void work(Range range, int thread) {
        for (; !range.empty(); range = claim())
            loop.run(loop.context, range.begin, range.end, thread);
    }

    bool wakes_helpers() const { return loop.work >= least_waking; }

    const Loop& loop;
    std::atomic<Size> next{0};
    std::atomic<int> active{0};  // helpers that are at work on it; changed with the mutex held
    int free_seats;              // helpers that may still join
    Job* following = nullptr;    // in the list of open jobs
};

// Threads that help with all loops of the process. A pool is never destroyed, and its threads are
// detached: when the process ends, they sleep or help a loop whose caller is still there.
class Pool {
  public:
    void run(const Loop& loop) {
        Job job(loop);
        open(job);
        job.work(job.claim(), 0);
        close(job);
    }

  private:
    // Lets helpers join. If the work is worth it and none is awake and looking for some, one of
    // them is woken, which will wake others.
    void open(Job& job) {
        std::unique_lock lock(mutex_);
        if (job.wakes_helpers()) create_helpers(job.loop.n_threads - 1);
        job.following = open_jobs_;
        open_jobs_ = &job;
        opened_.fetch_add(1, std::memory_order_release);
        wake_helpers(lock, job.wakes_helpers() ? 1 : 0);
    }

    // Lets no more helpers join, and waits for those that did: first actively, because their
    // last tasks are short, and then asleep, because a busy system may have suspended them.
    void close(Job& job) {
        {
            const std::lock_guard lock(mutex_);
            Job** link = &open_jobs_;
            while (*link != &job) link = &(*link)->following;
            *link = job.following;
        }
        const auto finished = [&] { return job.active.load(std::memory_order_acquire) == 0; };
        if (spin_until(finished)) return;
        std::unique_lock lock(mutex_);
        ++sleeping_callers_;
        helper_left_.wait(lock, finished);
        --sleeping_callers_;
    }

    void create_helpers(int wanted) {
        for (; n_helpers_ < wanted; ++n_helpers_)
            if (!create_helper()) return;
    }

    bool create_helper() {
#if !defined(_WIN32)
        // Signals are for the threads of the program, whose system calls they interrupt.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        bool created = true;
        try {
            std::thread([this] { help(); }).detach();
            ++looking_;
        } catch (const std::exception&) {
            created = false;  // The loop runs with fewer threads.
        }
#if !defined(_WIN32)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
        return created;
    }

    // Wakes at most so many helpers if none is looking for work already, and releases the lock.
    void wake_helpers(std::unique_lock<std::mutex>& lock, int most) {
        const int count = looking_ > 0 ? 0 : std::min(most, sleeping_);
        sleeping_ -= count;
        looking_ += count;
        waking_ += count;
        lock.unlock();
        for (int i = 0; i < count; ++i) work_arrived_.notify_one();
    }

    // The main loop of a helper thread, which never returns.
    void help() {
        std::unique_lock lock(mutex_);
        for (;;) {
            Range range{0, 0};
            int thread = 0;
            Job* job = join(range, thread);
            if (!job) {
                wait_for_work(lock);
                continue;
            }
            --looking_;
            wake_helpers(lock, job->wakes_helpers() && job->free_seats > 0 ? 2 : 0);
            job->work(range, thread);
            lock.lock();
            ++looking_;
            // The job must not be accessed after this, because its caller may return.
            const bool last = job->active.fetch_sub(1, std::memory_order_release) == 1;
            if (last && sleeping_callers_ > 0) helper_left_.notify_all();
        }
    }

    // An open job with tasks and a free seat, the first tasks claimed from it and the number that
    // this thread has there; null if there is none. The mutex must be held.
    Job* join(Range& range, int& thread) {
        for (Job* job = open_jobs_; job; job = job->following) {
            if (job->free_seats == 0 || (range = job->claim()).empty()) continue;
            thread = job->free_seats--;
            job->active.fetch_add(1, std::memory_order_relaxed);
            return job;
        }
        return nullptr;
    }

    // Returns when there may be work. The next loop often follows at once, so a helper looks out
    // for it for a moment before it sleeps.
    void wait_for_work(std::unique_lock<std::mutex>& lock) {
        const unsigned before = opened_.load(std::memory_order_relaxed);
        const auto arrived = [&] { return opened_.load(std::memory_order_acquire) != before; };
        lock.unlock();
        spin_until(arrived);
        lock.lock();
        if (arrived()) return;
        --looking_;
        ++sleeping_;
        work_arrived_.wait(lock, [&] { return waking_ > 0; });
        --waking_;
    }

    std::mutex mutex_;
    std::condition_variable work_arrived_, helper_left_;
    Job* open_jobs_ = nullptr;
    std::atomic<unsigned> opened_{0};  // how many jobs were opened so far
    int n_helpers_ = 0;
    int looking_ = 0;   // helpers that look for work, or have been woken to do so
    int sleeping_ = 0;  // helpers that sleep and have not been woken
    int waking_ = 0;    // helpers that have been woken and have not noticed
    int sleeping_callers_ = 0;
};

// The pool of this process. A forked child has the memory of its parent but none of its threads,
// and a lock may be held by one of these: it forgets the parent's pool without touching it.
std::atomic<Pool*> current_pool{nullptr};

// Null if there is no memory for it.
Pool* pool() {
    Pool* existing = current_pool.load(std::memory_order_acquire);
    if (existing) return existing;
    Pool* created = new (std::nothrow) Pool;
    if (current_pool.compare_exchange_strong(existing, created, std::memory_order_acq_rel))
        return created;
    delete created;  // Another thread was faster, and this one has no helpers yet.
    return existing;
}

// ---------------------------------------------------------------- limits

std::atomic<int> known_processors{0};  // 0: not known yet

int processors_of_affinity() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return static_cast<int>(std::thread::hardware_concurrency());
}

int find_processors() {
    int count = processors_of_affinity();
#if defined(__linux__)
    const double quota = cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < count) count = static_cast<int>(std::ceil(quota));
#endif
    return std::max(count, 1);
}

// Processors that this process may use. The files of the control groups are read once.
int processors() {
    int count = known_processors.load(std::memory_order_relaxed);
    if (count == 0) known_processors = count = find_processors();
    return count;
}

#if !defined(_OPENMP)
// The number in OMP_NUM_THREADS, the first one of a list, or 0 if there is none.
int threads_of_environment() {
    const char* text = std::getenv("OMP_NUM_THREADS");
    const long count = text ? std::strtol(text, nullptr, 10) : 0;
    return static_cast<int>(std::clamp(count, 0L, 1L << 20));
}

const int environment_limit = threads_of_environment();
#endif

// How many forks led to this process, plus one.
std::atomic<int> process_number{1};

#if !defined(_WIN32)
void forget_parent() {
    current_pool = nullptr;
    known_processors = 0;
    ++process_number;
}

[[maybe_unused]] const int fork_is_noticed = pthread_atfork(nullptr, nullptr, forget_parent);
#endif

// The next word of a file; empty if there is none, or no file.
std::string next_word(std::istream& stream) {
    std::string word;
    stream >> word;
    return word;
}

// Processors that one directory of a control group grants; 0 for no limit. Version 2 has both
// numbers, in microseconds, in one file; version 1 has a file for each.
double quota_of_directory(const std::string& directory) {
    std::string quota, period;
    if (std::ifstream both(directory + "/cpu.max"); both) {
        quota = next_word(both);
        period = next_word(both);
    } else {
        std::ifstream first(directory + "/cpu.cfs_quota_us"),
            second(directory + "/cpu.cfs_period_us");
        quota = next_word(first);
        period = next_word(second);
    }
    const double granted = std::atof(quota.c_str()), of = std::atof(period.c_str());
    return granted > 0 && of > 0 ? granted / of : 0;
}

double smaller_quota(double a, double b) {
    return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
}

// The smallest quota of a group and of all groups that contain it. In a container, the path may be
// that of the host, of which only the root is visible.
double quota_of_group(const std::string& hierarchy, std::string path) {
    double smallest = 0;
    while (!path.empty() && path != "/") {
        smallest = smaller_quota(smallest, quota_of_directory(hierarchy + path));
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    return smaller_quota(smallest, quota_of_directory(hierarchy));
}

bool contains_name(const std::string& list, const std::string& name) {
    return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

// A line of the membership file is hierarchy:controllers:path, without controllers in version 2.
double cpu_quota(const std::string& membership, const std::string& mount) {
    std::ifstream file(membership);
    double smallest = 0;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty())
            smallest = smaller_quota(smallest, quota_of_group(mount, path));
        else if (contains_name(controllers, "cpu"))
            smallest = smaller_quota(smallest, quota_of_group(mount + "/" + controllers, path));
    }
    return smallest;
}

bool ProcessMutex::try_lock() {
    const int mine = process_number;
    int holder = 0;
    if (process_.compare_exchange_strong(holder, mine, std::memory_order_acquire)) return true;
    if (holder != mine)
        throw std::runtime_error(
            "This process was forked while another thread was using these statistics, which may "
            "be half changed here. Use a copy, or fork when no thread is using them.");
    return false;
}

void ProcessMutex::lock() {
    // Holders need milliseconds or more, so a waiting thread sleeps.
    while (!try_lock()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

bool built_with_openmp() {
#if defined(_OPENMP)
    return true;
#else
    return false;
#endif
}

int max_threads() {
#if defined(_OPENMP)
    return std::min(omp_get_max_threads(), processors());
#else
    return environment_limit > 0 ? std::min(environment_limit, processors()) : processors();
#endif
}

int threads_for(Size tasks, Size work) {
    if (tasks < 2 || work < least_shared) return 1;
    const Size limit = max_threads();
    return static_cast<int>(std::min(tasks, limit));
}

void run_loop(const Loop& loop) {
    if (Pool* helpers = pool())
        helpers->run(loop);
    else
        loop.run(loop.context, 0, loop.tasks, 0);
}

}  // namespace kitchenette
