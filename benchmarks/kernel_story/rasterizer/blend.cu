// A small rasterizer of our own: enough kernels to see what a change does to registers, spills and shared memory.
// It is compiled by the story and never run: there is no card where the story is played.
constexpr int CHANNELS = 16;
constexpr int TILE = 256;

extern "C" __global__ void project(const float* positions, const float* camera, float* screen, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float x = positions[3 * i], y = positions[3 * i + 1], z = positions[3 * i + 2];
    const float depth = camera[8] * x + camera[9] * y + camera[10] * z + camera[11];
    screen[2 * i] = (camera[0] * x + camera[1] * y + camera[2] * z + camera[3]) / depth;
    screen[2 * i + 1] = (camera[4] * x + camera[5] * y + camera[6] * z + camera[7]) / depth;
}

template <int N>
__global__ void blend_forward(const float* colors, const float* alphas, float* image, int count) {
    __shared__ float tile[TILE];
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    float color[N] = {};
    float light = 1.0f;
    for (int begin = 0; begin < count; begin += TILE) {
        tile[threadIdx.x] = begin + threadIdx.x < count ? alphas[begin + threadIdx.x] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE && begin + i < count; ++i) {
            const float weight = light * tile[i];
            for (int c = 0; c < N; ++c) color[c] += weight * colors[(begin + i) * N + c];
            light -= weight;
        }
        __syncthreads();
    }
    for (int c = 0; c < N; ++c) image[pixel * N + c] = color[c];
}

namespace {  // what only this file sees is named after its place: the lab must find it in both builds

__global__ void BOUNDS blend_backward(const float* colors, const float* alphas, const float* gradient,
                                      float* color_gradient, float* alpha_gradient, int count) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    float wanted[CHANNELS], behind[CHANNELS], sums[CHANNELS], squares[CHANNELS];
    for (int c = 0; c < CHANNELS; ++c) {
        wanted[c] = gradient[pixel * CHANNELS + c];
        behind[c] = sums[c] = squares[c] = 0.0f;
    }
    float light = 1.0f;
    for (int i = 0; i < count; ++i) {
        const float alpha = alphas[i * gridDim.x + blockIdx.x];
        float slope = 0.0f;
        for (int c = 0; c < CHANNELS; ++c) {
            const float color = colors[i * CHANNELS + c];
            slope += wanted[c] * (color - behind[c]);
            behind[c] = alpha * color + (1.0f - alpha) * behind[c];
            sums[c] += light * alpha * wanted[c];
            squares[c] += sums[c] * color;
        }
        alpha_gradient[i * gridDim.x * blockDim.x + pixel] = light * slope;
        light *= 1.0f - alpha;
    }
    for (int c = 0; c < CHANNELS; ++c) color_gradient[pixel * CHANNELS + c] = sums[c] + squares[c] * behind[c];
}

}  // namespace

extern "C" int kernels_of_this_rasterizer(float* memory, int count) {
    if (count > 0) {
        blend_forward<3><<<1, TILE>>>(memory, memory, memory, count);
        blend_backward<<<1, TILE>>>(memory, memory, memory, memory, memory, count);
    }
    return 3;
}
