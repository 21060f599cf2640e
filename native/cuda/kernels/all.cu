// Every kernel, as one text for the compilers.
#include "project.cu"
#include "sort.cu"
#include "bin.cu"
#include "blend.cu"
#include "loss.cu"
#include "update.cu"
