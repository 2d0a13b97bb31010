// The one macro that lets constexpr code run on host and device alike.
#pragma once

#ifdef __CUDACC__
#define FLASHBOUND_HD __host__ __device__
#else
#define FLASHBOUND_HD
#endif

// CMake 3.25 can silently compile CUDA as C++17; refuse rather than build something else.
static_assert(__cplusplus >= 202002L, "Flashbound needs C++20, in CUDA sources too");
