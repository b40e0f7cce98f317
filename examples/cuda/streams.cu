/* Several host threads feed streams of one GPU: kernels, copies, fills, events, captured graphs, and
 * calls that block. The last line names how many operations of each kind a recorder must have seen,
 * and how many of them each thread submitted.
 *
 *     nvcc -O2 -std=c++17 -o streams streams.cu && ./streams [ROUNDS] [blocking|shared|edges|exit]
 *
 * "blocking": one thread, one stream, calls that return when the device is done.
 * "shared": eight threads use the default stream and block at once.
 * "edges": forms that are rare: empty copies, copies within the host, several copies in one call,
 *          cooperative launches, host functions, a stream destroyed while it works, launches that fail.
 * "exit": the program ends while kernels run. */
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

static void check(cudaError_t status, int line) {
    if (status != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(status));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

__global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 1.000001f + 0.5f;
}

template <typename T> __global__ void sum(const T *x, T *result, int n) {
    T own = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) own += x[i];
    atomicAdd(result, own);
}

/* Runs for about this many nanoseconds. */
__global__ void spin(long long nanos) {
    long long first, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(first));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - first < nanos);
}

__global__ void cooperative(float *x) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) x[blockIdx.x] += 1;
}

__constant__ float factors[64];

/* What a thread has submitted. */
struct Counts {
    long tid = 0, kernels = 0, copies = 0, fills = 0, graphs = 0, waits = 0;
    long all() const { return kernels + copies + fills + graphs; }
    void add(const Counts &other) {
        kernels += other.kernels, copies += other.copies, fills += other.fills, graphs += other.graphs;
        waits += other.waits;
    }
};

static const int elements = 1 << 16;
static const size_t bytes = elements * sizeof(float);

struct Memory {
    float *device, *pinned;
    Memory() {
        CHECK(cudaMalloc(&device, 2 * bytes));
        CHECK(cudaMallocHost(&pinned, bytes));
        memset(pinned, 0, bytes);
    }
};

/* Two streams of its own, tied by events; the thread's default stream; blocking calls now and then. */
static void work(int rounds, Counts *counts) {
    counts->tid = syscall(SYS_gettid);
    Memory memory;
    cudaStream_t streams[2];
    cudaEvent_t events[2];
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    for (int round = 0; round < rounds; round++) {
        CHECK(cudaMemcpyAsync(memory.device, memory.pinned, bytes, cudaMemcpyHostToDevice, streams[0]));
        CHECK(cudaEventRecord(events[0], streams[0]));
        CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
        for (int i = 0; i < 4; i++) scale<<<elements / 256, 256, 0, streams[i % 2]>>>(memory.device, elements);
        CHECK(cudaMemsetAsync(memory.device + elements, 0, bytes, streams[1]));
        sum<float><<<1, 256, 0, streams[1]>>>(memory.device, memory.device + elements, elements);
        scale<<<elements / 256, 256, 0, cudaStreamPerThread>>>(memory.device + elements, elements);
        CHECK(cudaMemcpyAsync(memory.pinned, memory.device, bytes / 2, cudaMemcpyDeviceToHost, streams[1]));
        counts->kernels += 6, counts->copies += 2, counts->fills += 1;
        if (round % 8 == 7) {
            CHECK(cudaEventRecord(events[1], streams[1]));
            CHECK(cudaEventSynchronize(events[1]));
            CHECK(cudaStreamSynchronize(streams[0]));
            counts->waits += 2;
        }
        if (round % 16 == 15) {
            float pageable[64];
            CHECK(cudaMemcpy(pageable, memory.device, sizeof pageable, cudaMemcpyDeviceToHost));
            counts->copies += 1;
        }
    }
    CHECK(cudaStreamSynchronize(streams[0]));
    CHECK(cudaStreamSynchronize(streams[1]));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    counts->waits += 3;
}

/* A graph that a second stream joins, launched into two streams in turn. */
static void graphs(int launches, Counts *counts) {
    Memory memory;
    cudaStream_t first, second;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemcpyAsync(memory.device, memory.pinned, bytes, cudaMemcpyHostToDevice, first));
    CHECK(cudaEventRecord(fork, first));
    CHECK(cudaStreamWaitEvent(second, fork, 0));
    for (int i = 0; i < 3; i++) {
        scale<<<elements / 256, 256, 0, first>>>(memory.device, elements);
        scale<<<elements / 256, 256, 0, second>>>(memory.device + elements, elements);
    }
    CHECK(cudaEventRecord(join, second));
    CHECK(cudaStreamWaitEvent(first, join, 0));
    spin<<<1, 1, 0, first>>>(20000);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamEndCapture(first, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int launch = 0; launch < launches; launch++) {
        CHECK(cudaGraphLaunch(executable, launch % 2 ? second : first));
        scale<<<elements / 256, 256, 0, second>>>(memory.device + elements, elements);
        counts->graphs += 1, counts->kernels += 1;
    }
    CHECK(cudaDeviceSynchronize());
    counts->waits += 1;
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

/* 5 ms of kernel, read back by a copy of the default stream: the thread waits in the copy. */
static void blocking(int rounds, Counts *counts) {
    Memory memory;
    std::vector<float> pageable(elements);
    for (int round = 0; round < rounds; round++) {
        CHECK(cudaMemcpy(memory.device, pageable.data(), bytes, cudaMemcpyHostToDevice));
        spin<<<1, 1>>>(5000000);
        CHECK(cudaMemcpy(pageable.data(), memory.device, bytes, cudaMemcpyDeviceToHost));
        spin<<<1, 1>>>(2000000);
        CHECK(cudaDeviceSynchronize());
        counts->kernels += 2, counts->copies += 2, counts->waits += 1;
    }
}

/* With others in the default stream. */
static void shared(int rounds, Counts *counts) {
    counts->tid = syscall(SYS_gettid);
    Memory memory;
    float pageable[64];
    for (int round = 0; round < rounds; round++) {
        scale<<<elements / 256, 256>>>(memory.device, elements);
        CHECK(cudaMemcpy(pageable, memory.device, sizeof pageable, cudaMemcpyDeviceToHost));
        counts->kernels += 1, counts->copies += 1;
    }
}

static void host_function(void *) {
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
}

static void edges(Counts *counts) {
    Memory memory;
    float host[64] = {0}, other[64];
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    /* Nothing is copied or filled, so there is no operation. */
    CHECK(cudaMemcpyAsync(memory.device, memory.pinned, 0, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpy(memory.device, memory.pinned, 0, cudaMemcpyHostToDevice));
    CHECK(cudaMemsetAsync(memory.device, 0, 0, stream));
    /* Within the host. */
    CHECK(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToHost));
    counts->copies += 1;
    if (cudaLaunchKernel((const void *)scale, dim3(1), dim3(4096), NULL, 0, stream) == cudaSuccess) exit(1);
    cudaGetLastError();
    /* Rarer forms. */
    CHECK(cudaMemcpyAsync(memory.pinned, host, sizeof host, cudaMemcpyDefault, stream));
    CHECK(cudaMemcpy2DAsync(memory.device, 1024, memory.pinned, 512, 256, 16, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyToSymbolAsync(factors, host, sizeof host, 0, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(memory.device, memory.device + elements, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemset2DAsync(memory.device, 1024, 1, 256, 16, stream));
    counts->copies += 4, counts->fills += 1;
    float *pooled;
    CHECK(cudaMallocAsync((void **)&pooled, bytes, stream));
    CHECK(cudaMemsetAsync(pooled, 0, bytes, stream));
    counts->fills += 1;
    CHECK(cudaLaunchHostFunc(stream, host_function, NULL));
    void *arguments[] = {&pooled};
    CHECK(cudaLaunchCooperativeKernel((const void *)cooperative, dim3(4), dim3(32), arguments, 0, stream));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1), config.blockDim = dim3(1), config.stream = stream;
    CHECK(cudaLaunchKernelEx(&config, spin, 100000ll));
    counts->kernels += 2;
    CHECK(cudaFreeAsync(pooled, stream));
    /* Destroyed while it works; the next one may get its handle. */
    CHECK(cudaStreamDestroy(stream));
    for (int i = 0; i < 8; i++) {
        CHECK(cudaStreamCreate(&stream));
        spin<<<1, 1, 0, stream>>>(200000);
        CHECK(cudaStreamDestroy(stream));
        counts->kernels += 1;
    }
    CHECK(cudaDeviceSynchronize());
    counts->waits += 1;
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 400;
    std::string mode = count > 2 ? arguments[2] : "";
    std::vector<Counts> counts(1);
    counts[0].tid = syscall(SYS_gettid);
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(NULL));
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (mode == "blocking") {
        blocking(rounds, &counts[0]);
    } else if (mode == "shared") {
        counts.resize(9);
        std::vector<std::thread> threads;
        for (int i = 1; i < 9; i++) threads.emplace_back(shared, rounds, &counts[i]);
        for (auto &thread : threads) thread.join();
    } else if (mode == "edges") {
        edges(&counts[0]);
    } else if (mode == "exit") {
        cudaStream_t stream;
        CHECK(cudaStreamCreate(&stream));
        for (int i = 0; i < 50; i++) spin<<<1, 1, 0, stream>>>(20000000);
        counts[0].kernels += 50;
    } else {
        counts.resize(5);
        std::vector<std::thread> threads;
        for (int i = 1; i < 5; i++) threads.emplace_back(work, rounds, &counts[i]);
        graphs(rounds, &counts[0]);
        for (auto &thread : threads) thread.join();
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    Counts all;
    for (auto &one : counts) all.add(one);
    printf("{\"seconds\": %.6f, \"kernels\": %ld, \"copies\": %ld, \"fills\": %ld, \"graphs\": %ld, \"waits\": %ld, \"threads\": {",
           (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9, all.kernels, all.copies, all.fills,
           all.graphs, all.waits);
    for (size_t i = 0; i < counts.size(); i++) printf("%s\"%ld\": %ld", i ? ", " : "", counts[i].tid, counts[i].all());
    printf("}}\n");
    return 0;
}
