#version 300 es
// One fragment a triangle, in the order of drawing: from its bytes to an ellipse and a colour, as the trainer's own
// engine does it (native/geometry.hpp, backends/reference/projection.py). Integer targets need no extension.
precision highp float;
precision highp int;
precision highp usampler2D;

uniform usampler2D order, shapes, harmonics;
uniform int count, rowBits, degree;
uniform mat3 rotation;
uniform vec3 translation, eye;
uniform vec4 lens;        // fx, fy, cx, cy
uniform vec2 size;        // pixels of the picture
uniform vec4 slopes;      // the Jacobian is taken no further outside: x low, x high, y low, y high
uniform vec2 kernel;      // variance of the 2D filter, 1 where opacity makes up for it
uniform vec2 logScale;    // lowest, step
uniform vec2 levels;      // of opacity, of rotation
uniform vec2 steps;       // of the constant harmonics, of the others

layout(location = 0) out uvec4 place;  // centre, long half axis of the ellipse where it falls to 1/255
layout(location = 1) out uvec4 paint;  // short half axis by the long one, log2 of 255 opacity, colour as halves, polygon

const float NEAR = 0.2;

uvec4 texel(usampler2D from, int at) { return texelFetch(from, ivec2(at & ((1 << rowBits) - 1), at >> rowBits), 0); }
vec3 bytes(uint word) { return vec3(ivec3(word << 24, word << 16, word << 8) >> 24); }

mat3 turn(uint packed) {
  uvec3 code = (uvec3(packed, packed >> 8, packed >> 16) & 255u) | ((uvec3(packed >> 24, packed >> 26, packed >> 28) & 3u) << 8);
  vec3 r = (vec3(code) / levels.y - 0.5) * sqrt(2.0);
  float m = sqrt(max(1.0 - dot(r, r), 0.0));
  uint left = packed >> 30;
  vec4 q = left == 0u ? vec4(m, r) : left == 1u ? vec4(r.x, m, r.yz) : left == 2u ? vec4(r.xy, m, r.z) : vec4(r, m);
  float w = q.x, x = q.y, y = q.z, z = q.w;
  return mat3(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y),
              2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x),
              2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y));
}

// Brightness and two differences of colour, harmonics added up; then red, green and blue.
vec3 color(int row, uvec4 shape, vec3 d) {
  vec3 sum = 0.28209479177387814 * steps.x * vec3(ivec3(shape.z << 16, shape.z, shape.w << 16) >> 16);
  float x = d.x, y = d.y, z = d.z, xx = x * x, yy = y * y, zz = z * z;
  if (degree > 0) {
    int at = row * (degree == 3 ? 4 : degree);
    uvec4 a = texel(harmonics, at);
    sum += 0.4886025119029199 * steps.y * (z * bytes(a.y) - y * bytes(a.x) - x * bytes(a.z));
    if (degree > 1) {
      uvec4 b = texel(harmonics, at + 1);
      sum += steps.y * (1.0925484305920792 * (x * y * bytes(a.w) - y * z * bytes(b.x) - x * z * bytes(b.z))
        + 0.31539156525252005 * (2.0 * zz - xx - yy) * bytes(b.y) + 0.5462742152960396 * (xx - yy) * bytes(b.w));
    }
    if (degree > 2) {
      uvec4 c = texel(harmonics, at + 2), e = texel(harmonics, at + 3);
      sum += steps.y * (-0.5900435899266435 * (y * (3.0 * xx - yy) * bytes(c.x) + x * (xx - 3.0 * yy) * bytes(e.z))
        + 2.890611442640554 * x * y * z * bytes(c.y) + 1.445305721320277 * z * (xx - yy) * bytes(e.y)
        - 0.4570457994644658 * (4.0 * zz - xx - yy) * (y * bytes(c.z) + x * bytes(e.x))
        + 0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy) * bytes(c.w));
    }
  }
  return max(vec3(sum.x - sum.z + sum.y, sum.x + sum.z, sum.x - sum.z - sum.y) + 0.5, 0.0);
}

void main() {
  place = paint = uvec4(0u);
  int at = int(gl_FragCoord.x) + (int(gl_FragCoord.y) << rowBits);
  if (at >= count) return;
  uint entry = texel(order, at).x;
  int row = int(entry & 0x7ffffffu);
  uvec4 head = texel(shapes, 2 * row), tail = texel(shapes, 2 * row + 1);
  vec3 mean = uintBitsToFloat(head.xyz), t = rotation * mean + translation;
  if (!(t.z > NEAR)) return;

  vec3 scale = exp(logScale.x + logScale.y * vec3(uvec3(tail.x, tail.x >> 16, tail.y) & 65535u));
  mat3 turned = rotation * turn(head.w);
  mat3 axes = mat3(turned[0] * scale.x, turned[1] * scale.y, turned[2] * scale.z);
  float u = clamp(t.x / t.z, slopes.x, slopes.y), v = clamp(t.y / t.z, slopes.z, slopes.w);
  vec3 deep = vec3(axes[0].z, axes[1].z, axes[2].z);
  vec3 first = lens.x / t.z * (vec3(axes[0].x, axes[1].x, axes[2].x) - u * deep);
  vec3 second = lens.y / t.z * (vec3(axes[0].y, axes[1].y, axes[2].y) - v * deep);
  float a = dot(first, first), b = dot(first, second), c = dot(second, second);
  vec3 area = cross(first, second);  // its square is a c - b b, without what needles would cancel
  float before = dot(area, area), k = kernel.x, after = before + k * (a + c) + k * k;
  float opacity = float(tail.y >> 16) / levels.x;
  if (kernel.y > 0.0 && k > 0.0) opacity *= sqrt(before / after);
  a += k;
  c += k;
  float reach = 2.0 * log(opacity * 255.0);  // squared, in standard deviations
  vec2 center = lens.xy * t.xy / t.z + lens.zw, far = sqrt(max(reach, 0.0) * vec2(a, c));
  if (!(reach > 0.0 && after > 0.0) || any(lessThan(center + far, vec2(0.5))) || any(greaterThan(center - far, size - 0.5))) return;

  float large = 0.5 * (a + c) + length(vec2(0.5 * (a - c), b));
  vec2 one = vec2(large - c, b), two = vec2(b, large - a);
  vec2 along = dot(one, one) > dot(two, two) ? one : two;
  along = dot(along, along) > 0.0 ? normalize(along) : vec2(1.0, 0.0);
  place = uvec4(floatBitsToUint(center), floatBitsToUint(sqrt(large * reach) * along));
  vec3 rgb = color(row, tail, normalize(mean - eye));
  paint = uvec4(floatBitsToUint(sqrt(after) / large), floatBitsToUint(log2(opacity * 255.0)), packHalf2x16(rgb.rg),
    packHalf2x16(vec2(rgb.b, 0.0)) | ((entry >> 27) << 16));
}
