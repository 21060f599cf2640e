// Does one instruction set compute what another one does? Asked once a process, before AVX-512 is trusted: nobody
// who built this library needs to have had such a machine.
#pragma once
#include <string>

#include "engine.hpp"

namespace splat {

// Trains a small built-in scene for one step with both, through every pass; takes milliseconds. Empty if they agree
// to rounding, else the name of the first thing that differs.
std::string disagreement(const Kernels& candidate, const Kernels& trusted);

}  // namespace splat
