#define SPLAT_EMULATED
#include "../../cuda/kernels/all.cu"
#include "../../cuda/kernels/list.hpp"

#include "kernels.hpp"

namespace splat::standin {
namespace {

template <class Arguments>
Kernel describe(const char* name, void (*function)(Arguments), int threads) {
  return {name, sizeof(Arguments), threads,
          [function](const void* arguments) { function(*static_cast<const Arguments*>(arguments)); }};
}

// Bytes of one parameter: ".param .align 8 .b8 project_param_0[360]" or ".param .u64 name".
size_t parameter_bytes(const std::string& text) {
  const size_t dot = text.rfind(" .") + 2, bracket = text.find('[');
  const std::string type = text.substr(dot, text.find_first_of(" \t", dot) - dot);
  const size_t bits = std::stoul(type.substr(1)),
               count = bracket == std::string::npos ? 1 : std::stoul(text.substr(bracket + 1));
  return bits / 8 * count;
}

}  // namespace

const std::vector<Kernel>& kernels() {
#define DESCRIBE(name, arguments) describe<const card::arguments>(#name, card::name, card::name##_threads),
#define DESCRIBE_SORT(name, key) \
  describe<const card::SortArguments<card::key>>(#name, card::name, card::name##_threads),
  static const std::vector<Kernel> all = {SPLAT_CARD_KERNELS(DESCRIBE) SPLAT_CARD_SORTS(DESCRIBE_SORT)};
  return all;
}

std::map<std::string, std::vector<size_t>> entries_of(const std::string& ptx) {
  std::map<std::string, std::vector<size_t>> entries;
  for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at)) {
    at += 7;
    const size_t open = ptx.find('(', at), close = ptx.find(')', open);
    if (close == std::string::npos) return {};
    std::vector<size_t>& sizes = entries[ptx.substr(at, open - at)];
    for (size_t p = ptx.find(".param", open); p < close; p = ptx.find(".param", p + 1))
      sizes.push_back(parameter_bytes(ptx.substr(p, std::min(ptx.find(',', p), close) - p)));
    at = close;
  }
  return entries;
}

}  // namespace splat::standin
