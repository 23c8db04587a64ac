// C++'s operators, in every form, with exceptions; linked with libjemalloc or not.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static void fail(const char *what) {
    std::fprintf(stderr, "wrong: %s\n", what);
    std::_Exit(3);
}

struct alignas(256) Wide {
    unsigned char bytes[12345];
};

struct Throws {
    unsigned char bytes[40000];
    Throws() { throw 7; }
};

static void exceptions() {
    volatile std::size_t most = SIZE_MAX / 4;
    int caught = 0;
    try { ::operator delete(::operator new(most)); } catch (const std::bad_alloc &) { caught++; }
    try { delete[] new char[most]; } catch (const std::bad_alloc &) { caught++; }
    try { delete new Throws; } catch (int) { caught++; }
    try { ::operator delete(::operator new(most, std::align_val_t(64)), std::align_val_t(64)); }
    catch (const std::bad_alloc &) { caught++; }
    if (caught != 4) fail("exceptions");
    if (::operator new(most, std::nothrow)) fail("nothrow");
}

static std::string text(unsigned seed, std::size_t size) { return std::string(size, static_cast<char>('a' + seed % 26)); }

static void work(unsigned seed) {
    std::map<unsigned, std::string> words;
    std::vector<std::unique_ptr<Wide>> wide;
    std::vector<std::shared_ptr<std::vector<int>>> shared;
    for (unsigned i = 0; i < 6000; i++) {
        unsigned random = (i * 2654435761u + seed) >> 7;
        std::size_t size = random % 10 == 0 ? random % 30000 : random % 300;
        words[random % 2000] = text(random, size);
        if (i % 50 == 0) wide.push_back(std::make_unique<Wide>());
        if (!wide.empty() && reinterpret_cast<std::uintptr_t>(wide.back().get()) % 256) fail("alignment");
        if (i % 20 == 0) shared.push_back(std::make_shared<std::vector<int>>(random % 5000, static_cast<int>(random)));
        // From C, by way of the library and back.
        if (i % 100 == 0) {
            char *copy = strdup(words[random % 2000].c_str());
            if (std::strlen(copy) != size) fail("a copy");
            std::free(copy);
        }
    }
    for (auto &[key, word] : words)
        for (char byte : word)
            if (byte != word[0]) fail("content");
    for (auto &numbers : shared)
        for (int number : *numbers)
            if (number != numbers->front()) fail("numbers");
}

int main() {
    exceptions();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) threads.emplace_back(work, i * 77);
    for (auto &thread : threads) thread.join();
    exceptions();
    std::puts("all as it was");
    std::puts("end");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}
