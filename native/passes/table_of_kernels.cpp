// One instruction set's passes, as the dispatcher sees them.
#include "../engine.hpp"

#define STRINGIFY(x) #x
#define NAME_OF(x) STRINGIFY(x)

namespace splat::SPLAT_LEVEL {

void project(Engine&);
void sort_by_depth(Engine&);
void bin(Engine&);
void blend_forward(Engine&, float*, float*);
void blend_backward(Engine&, const float*, const float*);
void update(Engine&, const AdamStep*);
void gradients(Engine&, const GradientArrays&);
void adam(ThreadPool&, Table&, const float*, const float*, const AdamStep&);
void settle(ThreadPool&, Table&);
LossValue loss(Engine&, int, int, const float*, const uint8_t*, float, float*, Exposure*);
void sampling_distance(ThreadPool&, int, const float*, int, const Camera*, float*);
void explore(ThreadPool&, Table&, const Exploration&);

extern const Kernels table;
const Kernels table = {NAME_OF(SPLAT_LEVEL),
                       project,
                       sort_by_depth,
                       bin,
                       blend_forward,
                       blend_backward,
                       update,
                       gradients,
                       adam,
                       settle,
                       loss,
                       sampling_distance,
                       explore};

}  // namespace splat::SPLAT_LEVEL
