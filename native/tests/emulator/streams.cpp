#include "streams.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "machine.hpp"
#include "memory.hpp"
#include "options.hpp"

namespace splat::standin {

struct Stream {
  struct Item {
    Work work;
    Event *records = nullptr, *waits = nullptr;
    uint64_t number = 0;  // of the record
  };
  std::deque<Item> queue;
};

namespace {

Stream default_stream;
std::vector<Stream*> streams = {&default_stream};
int sticky = 0;

Stream& of(Stream* s) { return s ? *s : default_stream; }
bool may_run(const Stream& s) {
  return !s.queue.empty() && !(s.queue.front().waits && s.queue.front().waits->done < s.queue.front().number);
}

void run_one(Stream& s) {
  const Stream::Item item = std::move(s.queue.front());
  s.queue.pop_front();
  if (item.work && !sticky) sticky = item.work();
  if (item.records) item.records->done = item.number;
}

bool run_any() {  // of what may run
  std::vector<Stream*> ready;
  for (Stream* s : streams)
    if (may_run(*s)) ready.push_back(s);
  if (!ready.empty()) run_one(*ready[emulator::machine.next_random() % ready.size()]);
  return !ready.empty();
}

template <class Enough>
void run_until(Enough enough) {
  if (enough()) return;
  Working working;
  while (!enough())
    if (!run_any()) return;
}

void run_some() {  // as a card may or may not have done by now
  Working working;
  while (emulator::machine.next_random() % 4 && run_any()) {}
}

}  // namespace

Stream* new_stream() { return streams.push_back(new Stream), streams.back(); }
bool known_stream(Stream* s) { return !s || std::find(streams.begin(), streams.end(), s) != streams.end(); }
void delete_stream(Stream* s) {
  run_stream(s);
  streams.erase(std::find(streams.begin(), streams.end(), s));
  delete s;
}
int enqueue(Stream* s, Work work) {
  if (sticky) return sticky;
  of(s).queue.push_back({std::move(work)});
  if (options.eager)
    run_everything();
  else if (options.wander && emulator::machine.next_random() % 4 == 0)
    run_some();
  return 0;
}
void enqueue_record(Stream* s, Event* e) { of(s).queue.push_back({nullptr, e, nullptr, ++e->recorded}); }
void enqueue_wait(Stream* s, Event* e) { of(s).queue.push_back({nullptr, nullptr, e, e->recorded}); }
void run_until_done(Event* e) {
  const uint64_t number = e->recorded;
  run_until([=] { return e->done >= number; });
}
void run_stream(Stream* s) {
  run_until([=] { return of(s).queue.empty(); });
}
void run_everything() {
  run_until([] { return std::all_of(streams.begin(), streams.end(), [](Stream* s) { return s->queue.empty(); }); });
}
int sticky_error() { return sticky; }
void set_sticky_error(int code) { sticky = code; }

}  // namespace splat::standin
