// Which instruction set is used, and why.
#pragma once
#include <string>

#include "engine.hpp"

namespace splat {

struct Level {
  const Kernels* kernels;
  bool on_trial;  // used only if it computes what the next level does; see self_test.hpp
};
struct Choice {
  const Kernels* kernels;
  std::string note;  // empty, or a sentence about what was not used
};
Choice choose(const Level* levels, int count);  // best first; the last one is never on trial

std::string kernels_note();  // about the choice that kernels() made

}  // namespace splat
