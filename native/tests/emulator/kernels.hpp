// The kernels by name, as the emulator runs them, and what a PTX text says about them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace splat::standin {

struct Kernel {
  const char* name;
  size_t argument_bytes;
  int most_threads;                                // of its launch bounds
  std::function<void(const void* arguments)> run;  // inside a thread of the emulator
};
const std::vector<Kernel>& kernels();

// name -> bytes of each .param of an .entry; empty: not a PTX text
std::map<std::string, std::vector<size_t>> entries_of(const std::string& ptx);

}  // namespace splat::standin
