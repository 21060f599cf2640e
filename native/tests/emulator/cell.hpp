// Who touched a piece of memory last, and whether a barrier lies between then and now.
#pragma once
#include "machine.hpp"

namespace splat::emulator {

// One element of shared memory, or four bytes (or one) of global memory.
struct Cell {
  uint32_t write_epoch = 0, write_warp_epoch = 0;
  uint32_t read_epoch = 0, read_warp_epoch = 0, read_warps = 0, read_lanes = 0;
  uint32_t blocks_epoch = 0;  // a read by a block that was not the last one to read
  uint32_t fetch_epoch = 0;   // read by someone who promised that nobody writes
  uint16_t writer = 0, reader_warp = 0;
  bool counted = false;  // the last write was an atomic addition

  // What is wrong with reading or writing it now, or null.
  const char* read();
  const char* fetch();
  const char* write(bool atomic = false);

 private:
  bool written_before() const;  // by somebody else, without a barrier between
};

inline bool Cell::written_before() const {
  if (write_epoch < machine.first_epoch || writer == machine.current || write_epoch != machine.epoch) return false;
  return writer / kLanes != machine.warp() || write_warp_epoch == machine.warp_epoch[machine.warp()];
}

inline const char* Cell::read() {
  if (write_epoch >= machine.launch_epoch && write_epoch < machine.first_epoch)
    return "reads what another block of this launch writes";
  if (written_before()) return "race: reads what another thread writes";
  if (read_epoch >= machine.launch_epoch && read_epoch < machine.first_epoch) blocks_epoch = read_epoch;
  if (read_epoch != machine.epoch) read_warps = 0;
  const int warp = machine.warp();
  if (read_epoch != machine.epoch || reader_warp != warp || read_warp_epoch != machine.warp_epoch[warp]) read_lanes = 0;
  read_epoch = machine.epoch;
  read_warp_epoch = machine.warp_epoch[warp];
  reader_warp = uint16_t(warp);
  read_warps |= 1u << warp;
  read_lanes |= 1u << (machine.current % kLanes);
  return nullptr;
}

inline const char* Cell::fetch() {
  if (write_epoch >= machine.launch_epoch) return "fetches what this launch writes";
  fetch_epoch = machine.epoch;
  return nullptr;
}

inline const char* Cell::write(bool atomic) {
  if (fetch_epoch >= machine.launch_epoch) return "writes what this launch fetches";
  const bool both_count = atomic && counted;
  if (!both_count && write_epoch >= machine.launch_epoch && write_epoch < machine.first_epoch)
    return "writes what another block of this launch writes";
  if (!both_count && written_before()) return "race: two threads write";
  if ((read_epoch >= machine.launch_epoch && read_epoch < machine.first_epoch) || blocks_epoch >= machine.launch_epoch)
    return "writes what another block of this launch reads";
  if (read_epoch == machine.epoch && read_epoch >= machine.first_epoch) {
    const int warp = machine.warp();
    if (read_warps & ~(1u << warp)) return "race: writes what another warp reads";
    if (read_warp_epoch == machine.warp_epoch[warp] && (read_lanes & ~(1u << (machine.current % kLanes))))
      return "race: writes what another lane reads";
  }
  write_epoch = machine.epoch;
  write_warp_epoch = machine.warp_epoch[machine.warp()];
  writer = uint16_t(machine.current);
  counted = atomic;
  return nullptr;
}

}  // namespace splat::emulator
