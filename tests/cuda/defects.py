# ruff: noqa: E501  (edits are quoted as they stand)
"""Planted defects: one edit each, in a kernel or in the host code, and the tests that must notice it.

A suite that passes with one of these in place is not worth its time. The list grows with the code.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP = ("test_against_cpu.py",)
TRAINING = ("test_training_on_the_card.py",)
SORTING = ("test_sorting_on_the_card.py",)
ROWS = ("test_rows_on_the_card.py",)
GROWTH = ("test_growth_on_the_card.py",)
BAD_STEP = ("test_models_share_the_card.py::test_a_bad_step_is_neither_settled_nor_explored_from",)
HOST = ()
"""The program native/tests/emulator/card_test.cpp."""


@dataclass(frozen=True)
class Defect:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    nth: int = 0
    """Which of several places that read the same."""

    def planted(self, text: str) -> str:
        at = -1
        for _ in range(self.nth + 1):
            at = text.find(self.old, at + 1)
            assert at >= 0, f"{self.name}: {self.file} has no {self.old!r} number {self.nth}"
        return text[:at] + self.new + text[at + len(self.old) :]


def kernel(name: str, file: str, old: str, new: str, tests: tuple[str, ...], nth: int = 0) -> Defect:
    return Defect(f"{file.split('.')[0]}: {name}", f"native/cuda/kernels/{file}", old, new, tests, nth)


def host(name: str, file: str, old: str, new: str = "", nth: int = 0) -> Defect:
    return Defect(f"host: {name}", f"native/cuda/{file}", old, new, HOST, nth)


BARRIER, WARP_BARRIER = "__syncthreads();", "__syncwarp();"

DEFECTS = [
    kernel("one row too many", "project.cu", "row >= u32(a.count)", "row > u32(a.count)", STEP),
    kernel("a quick look that forgets how large Gaussians are", "project.cu", " + f.per_radius[side] * radius", "", STEP),
    kernel("rows one step behind are taken as they stand", "project.cu", "if (age) {", "if (age > 1) {", STEP),
    kernel("the second frame of harmonics", "projection.hpp", "m.x * (k ? rest : dc)", "m.x * rest", STEP),
    kernel("frozen slopes still move", "projection.hpp", "o.free_x = o.slope_x == x", "o.free_x = true", ("test_against_reference.py",)),
    kernel("tiles beyond the last column", "ellipse.hpp", "float(f.width - 1)", "float(f.width + 15)", STEP),
    kernel("subtiles of the second column begin too late", "ellipse.hpp", "right >= 8.5f", "right >= 9.5f", STEP),
    kernel("no barrier before a scan's sums are written again", "block.hpp", BARRIER, "", SORTING, 2),
    kernel("no barrier before a scan's sums are read", "block.hpp", BARRIER, "", SORTING, 3),
    kernel("no barrier before a reduction's sums are written again", "block.hpp", BARRIER, "", STEP),
    kernel("no barrier before a reduction's sums are read", "block.hpp", BARRIER, "", STEP, 1),
    kernel("the scan of blocks forgets what it carries", "sort.cu", "carry + before", "before", SORTING),
    kernel("counters start with what lay there", "sort.cu", "met[k] = 0u", "(void)k", SORTING),
    kernel("a digit's counter is read and written at once", "sort.cu", WARP_BARRIER, "", SORTING),
    kernel("the next keys come before the counter is written", "sort.cu", WARP_BARRIER, "", SORTING, 1),
    kernel("equal keys in the wrong order", "sort.cu", "alike & ((1u << lane) - 1)", "alike & ~((2u << lane) - 1)", SORTING),
    kernel("lanes without a key write too", "sort.cu", "if (i >= count) continue;", "", SORTING),
    kernel("the last key of a block is left out", "sort.cu", "if (i < count) count_up", "if (i + 1 < count) count_up", SORTING),
    kernel("a visible row too many", "bin.cu", "if (row >= a.count || ", "if (row > a.count || ", STEP),
    kernel("the scan of visible rows forgets what it carries", "bin.cu", "carry + before", "before", ("test_many_rows.py",)),
    kernel("each lane writes all tiles of a large Gaussian", "bin.cu", "from + lane_number(); c <= to; c += 32", "from; c <= to; c++", STEP),
    kernel("the last tile has no begin", "bin.cu", "tile <= to", "tile < to", STEP),
    kernel("no barrier between storing and reading a batch", "blend.cu", WARP_BARRIER, "", STEP),
    kernel("forward: no barrier before the next batch", "blend.cu", WARP_BARRIER, "", STEP, 1),
    kernel("backward: no barrier before the next batch", "blend.cu", WARP_BARRIER, "", STEP, 2),
    kernel("a pair too many", "blend.cu", "i + lane_number() < end", "i + lane_number() <= end", STEP),
    kernel("lanes leave before the shuffles", "blend.cu", "if (!__any_sync(kAllLanes, any)) continue;", "if (!any) continue;", STEP),
    kernel("a slot too far", "blend.cu", "size_t(pair) * kSlotWidth + number", "size_t(pair + 1) * kSlotWidth + number", STEP),
    kernel("a wrong distance of a shuffle", "blend.cu", "__shfl_xor_sync(kAllLanes, u[4], 8)", "__shfl_xor_sync(kAllLanes, u[4], 4)", STEP),
    kernel("backward lets dead pixels live on", "blend.cu", "p.T[k] = alive ? rest : -1.f", "p.T[k] = rest", STEP),
    kernel("the cap has a slope", "blend.cu", "q = value <= f.max_alpha ? q : 0.f;", "", ("test_against_reference.py",)),
    kernel("pixels outside of the image are drawn", "blend.cu", "if (tile.x(k) >= f.width || tile.y(k) >= f.height) continue;", "", STEP),
    kernel("no barrier between rows and columns", "loss.cu", BARRIER, "", STEP),
    kernel("beyond the halo", "loss.cu", "at(y * kHaloWide + x + t, v)", "at(y * kHaloWide + x + t + 11, v)", STEP),
    kernel("the image's border is inside", "loss.cu", "x >= 0 && y >= 0", "x >= -1 && y >= 0", STEP),
    kernel("the last sum takes one turn", "loss.cu", "k < a.blocks; k += kThreads", "k < min(a.blocks, 256u); k += kThreads", STEP),
    kernel("a loss that is no number is learned from", "update.cu", "if (fetch(a.stopped, 0)) return;", "", TRAINING),
    kernel("a stop is forgotten", "loss.cu", "before ? before : ", "", TRAINING),
    kernel("harmonics of the wrong row", "update.cu", "__shfl_sync(kAllLanes, row, who)", "__shfl_sync(kAllLanes, row, who ^ 1)", STEP),
    kernel("no barrier before the warp reads its rows", "update.cu", WARP_BARRIER, "", STEP),
    kernel("every second row's harmonics stand still", "update.cu", "two == one)", "two >= one)", STEP),
    kernel("statistics move what is stored", "update.cu", "if (!a.with_step) return;", "", STEP),
    kernel("hidden rows are not visited", "update.cu", "kVisits) + 1.f)", "kVisits) + 0.f)", STEP),
    kernel("both moments fade alike", "rows.cu", "second_moments, at, faded(v, decays.second)", "second_moments, at, faded(v, decays.first)", ROWS),
    kernel("ages beyond the table stop fading", "projection.hpp", "if (age >= kPendingAges)", "if (false)", ROWS),
    kernel("no barrier before the next cameras", "rows.cu", BARRIER, "", ROWS),
    kernel("a step without a number is settled", "rows.cu", "if (row >= u32(a.count) || is_stopped(a.stopped)) return;\n  const int age", "if (row >= u32(a.count)) return;\n  const int age", BAD_STEP),
    kernel("a step without a number counts as settled", "rows.cu", "!is_stopped(a.stopped) && ", "", BAD_STEP),
    kernel("a step without a number is explored from", "rows.cu", "if (row >= u32(a.count) || is_stopped(a.stopped)) return;\n  Row g", "if (row >= u32(a.count)) return;\n  Row g", BAD_STEP),
    kernel("settling asked for by name stops too", "rows.cu", "stopped && fetch(stopped, 0)", "stopped ? fetch(stopped, 0) != 0 : true", BAD_STEP),
    kernel("draws of another key", "random.hpp", "keys[0], keys[3])", "keys[0], keys[2])", ROWS),
    kernel("nobody's rows get the finest filter", "rows.cu", "fetch(a.farthest, 0)", "0.f", ROWS),
    kernel("an infinite colour is a number", "rows.cu", "all &= is_finite(h.x) &&", "all &= true ||", ROWS),
    kernel("a rank too high", "select.cu", "before <= rank && rank < u64(before) + here", "before < rank && rank <= u64(before) + here", GROWTH),
    kernel("the element after is the same", "select.cu", "same ? found : least", "found", GROWTH),
    kernel("no counters for digits", "select.cu", "histogram[threadIdx.x] = 0u;", "", GROWTH),
    kernel("one tie too many", "growth.cu", "fetch(&a.state->below, 0) < room", "fetch(&a.state->below, 0) <= room", GROWTH),
    kernel("children share their draws", "growth.cu", "a.child_keys[child]", "a.child_keys[0]", GROWTH),
    kernel("both halves lie on one side", "growth.cu", "child ? -a.cut_distance : a.cut_distance", "a.cut_distance", GROWTH),
    kernel("of equal axes the last is cut", "growth.cu", "log_scale[2] > fmaxf", "log_scale[2] >= fmaxf", GROWTH),
    kernel("halves are as opaque as the whole", "growth.cu", "a.opacity * sigmoid", "sigmoid", GROWTH),
    kernel("clones keep their moments", "move.cu", "fresh ? nothing : taken_moments", "taken_moments", GROWTH),
    kernel("harmonics of clones keep their moments", "move.cu", "fresh && a.part", "false && a.part", GROWTH),
    kernel("rows that are behind move as they are", "move.cu", "if (!age) return v;", "return v;", GROWTH),
    kernel("geometry that is behind moves as it is", "move.cu", "if (age) v = settled", "if (false) v = settled", GROWTH),
    kernel("moved moments do not fade", "move.cu", "if (!age) return v;", "return v;", GROWTH, 1),
    kernel("who was behind stays behind", "move.cu", "age ? float(a.pending.step) : v.w", "v.w", GROWTH),
    kernel("children of a mean that is behind", "growth.cu", "if (behind) {", "if (false) {", GROWTH),
    kernel("an order of means that are behind", "growth.cu", "if (behind) v = ", "if (false) v = ", GROWTH),
    kernel("a scan of blocks forgets what it carries", "growth.cu", "carry + before", "before", GROWTH),
    kernel("statistics survive", "move.cu", "make_float4(0.f, 0.f, 0.f, age", "make_float4(v.x, v.y, v.z, age", GROWTH),
    kernel("children are as large as their parents", "move.cu", "    v.x -= a.shrink;\n    v.y -= a.shrink;\n", "", GROWTH),
    kernel("bounds of the first block", "move.cu", "block < a.blocks; block += kThreads", "block < 1; block += kThreads", GROWTH),
    kernel("a draw takes the row before", "relocate.cu", "low = middle + 1", "low = middle, high = high > middle ? high : middle; if (high - low == 1) break", GROWTH),
    kernel("hosts keep their opacity", "relocate.cu", "count_up_global(a.times, row);", "", GROWTH),
    kernel("copies are counted without atomics", "relocate.cu", "count_up_global(a.times, row);", "store(a.times, row, load(a.times, row) + 1u);", GROWTH),
    kernel("the sum of weights forgets what it carries", "relocate.cu", "carry + before", "before", SORTING),
    kernel("any number of copies shares like two", "relocate.cu", "min(int(copies) + 1, kMostTogether)", "2", GROWTH),
    host("never waits for the number of pairs", "step.cpp", "card_.wait_for(counters_there_);"),
    host("gradients of the step before", "step.cpp", "card_.fill(touched_.data(), counters_.pairs, 0);"),
    host("pairs find no more room than at first", "step.cpp", "counters_.pairs > pair_capacity_ || !pair_capacity_", "!pair_capacity_"),
    host("reports are read before they are there", "step.cpp", "card_.use();\n    card_.synchronize();\n    while", "card_.use();\n    while"),
    host("the table may go before it was copied", "table.cpp", "card_.synchronize();  // the host's arrays may go now"),
    host("rows are read before they came", "table.cpp", "card_.synchronize();", "", 1),
    host("what is owed is overwritten on its way", "table.cpp", "card_.make_sure_of(ages_taken_);"),
    host("a step does not wait for its photo", "photos.cpp", "if (!place_->waited) photos.card_.stream_waits_for(place_->ready);"),
    host("photos never give way", "photos.cpp", "return give_back_one();", "return false;"),
    host("photos that are forgotten keep their place", "photos.cpp", "found->second->key = kNone;"),
    host("photos take new memory instead of a free place", "photos.cpp", "if (const Place free = place_of_size(bytes, true); free != photos_.end()) return free;"),
    host("a full card is filled by freeing and allocating", "photos.cpp", "if (const Place taken = place_of_size(bytes, false); taken != photos_.end()) return taken;"),
    host("the limit is only looked at", "arena.hpp", "return bytes_ + bytes <= limit_;", "return bytes_ <= limit_ || bytes == 0;"),
    host("memory given up is still counted", "arena.cpp", "bytes_ -= bytes;"),
    host("events stay when their owner goes", "card.hpp", "if (event_) driver_->cuEventDestroy_v2(event_);"),
    host("where all are faint the first row stays", "relocate.cpp", "card_.fill(a.flags, n, 1)", "card_.fill(a.flags, 1, 1)"),
    host("a photo's chunk is overwritten on its way", "photos.cpp", "card_.make_sure_of(taken_[slot]);", ";"),
    host("a photo is overwritten while a step reads it", "photos.cpp", "card_.record(used_);\n  card_.stream_waits_for(used_, card_.copy_stream());"),
    host("growth reads its counts before they came", "growth.cpp", "card_.synchronize();\n  const u32 first_child", "const u32 first_child"),
    host("memory is not given back", "arena.cpp", "driver_->cuMemFree_v2(address);"),
    host("a buffer that is large enough grows", "arena.hpp", "count <= capacity_ && address_", "count < capacity_ && address_"),
]  # fmt: skip
