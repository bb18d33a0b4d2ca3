// Selections by CUB's DeviceSelect, an expert's way in CUDA. `benchmarks.libraries`
// builds a shared library of this file where nvcc is, and calls its functions.
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <thrust/iterator/counting_iterator.h>

template <class T>
struct Above {
  float limit;
  __device__ bool operator()(T x) const { return static_cast<float>(x) > limit; }
};

static void *scratch = nullptr;
static size_t reserved = 0;

// CUB first says how much memory it needs. We keep the memory for the next calls.
template <class Select>
int with_scratch(Select select) {
  size_t needed = 0;
  cudaError_t error = select(nullptr, needed);
  if (error == cudaSuccess && needed > reserved) {
    cudaFree(scratch);
    error = cudaMalloc(&scratch, needed);
    reserved = needed;
  }
  return error == cudaSuccess ? select(scratch, needed) : error;
}

template <class T>
int above(const T *x, T *out, int *count, long long n, float limit) {
  return with_scratch([=](void *memory, size_t &bytes) {
    return cub::DeviceSelect::If(memory, bytes, x, out, count, n, Above<T>{limit});
  });
}

extern "C" {
int above_float32(const float *x, float *out, int *count, long long n, float limit) {
  return above(x, out, count, n, limit);
}
int above_bfloat16(const __nv_bfloat16 *x, __nv_bfloat16 *out, int *count, long long n,
                   float limit) {
  return above(x, out, count, n, limit);
}
// The indices of bytes that are not zero.
int indices(const unsigned char *x, unsigned *out, int *count, long long n) {
  thrust::counting_iterator<unsigned> index(0);
  return with_scratch([=](void *memory, size_t &bytes) {
    return cub::DeviceSelect::Flagged(memory, bytes, index, x, out, count, n);
  });
}
int finish() { return cudaDeviceSynchronize(); }
}
