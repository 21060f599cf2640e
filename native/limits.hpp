// What this machine can do at most, and what one step had to do: `splatmeter profile` divides the one by the other.
#pragma once
#include "engine.hpp"

namespace splat {

// Floating point operations a second, multiplication and addition counted apart, in registers on all threads of the
// pool, with the chosen instruction set. Best of a few repetitions.
double measured_flops(ThreadPool&);

// Bytes a second to and from memory: a[i] = b[i] + s c[i] over arrays no cache holds. Four streams, because a line
// that is written is fetched first. Best of a few repetitions.
double measured_bandwidth(ThreadPool&);

// Operations on eight floats a second, whatever they are: rows of blending again and again in the first-level cache,
// with their loads, comparisons, masks and stores. No pass does many more: none is made of multiply-adds alone.
double measured_operations(ThreadPool&);

// Divisions of eight floats a second; a square root takes about as long, and the same unit.
double measured_divisions(ThreadPool&);

struct StepWork {
  uint64_t visible = 0, visible_behind = 0;  // rows: drawn at all, and of these behind with Adam
  uint64_t pairs = 0, walked = 0;            // (Gaussian, tile): listed, and looked at before the tile was full
  uint64_t seen = 0, items = 0, vectors = 0,
           pixels = 0;  // rows some pixel took; strips, vectors of 8 pixels and pixels blended
};

// Recounts the last forward pass from its lists, one pixel at a time, without its shortcuts; never part of a step.
// Call it before the update, which brings rows up to date.
StepWork step_work(Engine&);

}  // namespace splat
