// Streams are queues that run as late as events allow, in random legal order. Host buffers are read and written when
// the
// work runs, so a host that forgets to wait reads old bytes or has its new ones read.
#pragma once
#include <cstdint>
#include <functional>

namespace splat::standin {

struct Event {
  uint64_t recorded = 0, done = 0;
};
struct Stream;
using Work = std::function<int()>;  // a CUresult

Stream* new_stream();
bool known_stream(Stream*);  // null is the default stream
void delete_stream(Stream*);
int enqueue(Stream*, Work);  // the sticky error, if there is one
void enqueue_record(Stream*, Event*);
void enqueue_wait(Stream*, Event*);
void run_until_done(Event*);  // as little else as possible
void run_stream(Stream*);
void run_everything();
int sticky_error();
void set_sticky_error(int);

}  // namespace splat::standin
