// Every kernel with its arguments, for whoever must name them all: the loader and the emulator.
#pragma once
#include "arguments.hpp"

#define SPLAT_CARD_KERNELS(X)                \
  X(project, ProjectArguments)               \
  X(count_rows, CountArguments)              \
  X(count_top, CountArguments)               \
  X(compact, CountArguments)                 \
  X(scan_sums, ScanArguments)                \
  X(scan_top, ScanArguments)                 \
  X(scan_apply, ScanArguments)               \
  X(emit, EmitArguments)                     \
  X(tile_begins, TileBeginsArguments)        \
  X(blend_forward, BlendArguments)           \
  X(blend_backward, BlendArguments)          \
  X(blend_backward_absolute, BlendArguments) \
  X(loss_values, LossArguments)              \
  X(loss_gradient, LossArguments)            \
  X(loss_total, TotalArguments)              \
  X(update, UpdateArguments)                 \
  X(gradients, UpdateArguments)              \
  X(settle, SettleArguments)                 \
  X(settled, SettleArguments)                \
  X(explore, ExploreArguments)               \
  X(sampling_distance, FilterArguments)      \
  X(filter_top, FilterArguments)             \
  X(filter_write, FilterArguments)           \
  X(reset_opacities, ResetArguments)         \
  X(summarize, SummaryArguments)             \
  X(summary_top, SummaryArguments)           \
  X(morton_bounds, MortonArguments)          \
  X(morton_top, MortonArguments)             \
  X(morton_codes, MortonArguments)           \
  X(take_rows, TakeArguments)                \
  X(select_count, SelectArguments)           \
  X(select_pick, SelectArguments)            \
  X(select_next, SelectArguments)            \
  X(quantile_level, SelectArguments)         \
  X(growth_look, GrowthArguments)            \
  X(quantile_begin, GrowthArguments)         \
  X(growth_choose, GrowthArguments)          \
  X(growth_budget, GrowthArguments)          \
  X(growth_ties, GrowthArguments)            \
  X(growth_decide, GrowthArguments)          \
  X(growth_total, GrowthArguments)           \
  X(growth_place, GrowthArguments)           \
  X(cut_children, CutArguments)              \
  X(relocate_look, RelocateArguments)        \
  X(wide_scan_sums, WideScanArguments)       \
  X(wide_scan_top, WideScanArguments)        \
  X(wide_scan_apply, WideScanArguments)      \
  X(relocate_draw, RelocateArguments)        \
  X(relocate_keep, RelocateArguments)        \
  X(relocate_share, RelocateArguments)

#define SPLAT_CARD_SORTS(X) \
  X(radix_count, u32)       \
  X(radix_scatter, u32)     \
  X(radix_count_wide, u64)  \
  X(radix_scatter_wide, u64)
