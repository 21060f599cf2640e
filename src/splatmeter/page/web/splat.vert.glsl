#version 300 es
// A triangle around the ellipse where the Gaussian falls to 1/255, turned like it; one of several where the ellipse is large
// (sort.js says which). Not instances of a quad: software renderers take each instance for a drawing of its own, and a
// card has half as many triangles to set up.
precision highp float;
precision highp int;
precision highp usampler2D;

uniform usampler2D places, paints;
uniform int rowBits;
uniform vec2 size;

out vec2 away;       // from the centre; its square is what is lost of the opacity, as a power of two
flat out vec4 tint;  // colour, logarithm of the opacity to base two

// A corner of the triangle, square, hexagon or octagon around the unit circle.
vec2 around(uint kind, int corner) {
  if (kind == 0u) return corner == 0 ? vec2(0.0, 2.0) : vec2(corner == 1 ? -sqrt(3.0) : sqrt(3.0), -1.0);
  float part = 3.141592653589793 / (kind == 1u ? 4.0 : kind == 2u ? 6.0 : 8.0), angle = part * float(2 * corner);
  return vec2(cos(angle), sin(angle)) / cos(part);
}

void main() {
  int row = gl_VertexID / 3, corner = gl_VertexID - 3 * row;
  ivec2 at = ivec2(row & ((1 << rowBits) - 1), row >> rowBits);
  uvec4 paint = texelFetch(paints, at, 0);
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);  // nowhere
  tint = vec4(0.0);
  away = vec2(0.0);
  if (paint.y == 0u) return;
  vec4 place = uintBitsToFloat(texelFetch(places, at, 0));
  float falls = uintBitsToFloat(paint.y);
  vec2 to = around(paint.w >> 19, corner == 0 ? 0 : corner + int((paint.w >> 16) & 7u));  // a fan from the first corner
  vec2 pixel = place.xy + to.x * place.zw + to.y * uintBitsToFloat(paint.x) * vec2(-place.w, place.z);
  gl_Position = vec4(2.0 * pixel.x / size.x - 1.0, 1.0 - 2.0 * pixel.y / size.y, 0.0, 1.0);
  away = sqrt(falls) * to;
  tint = vec4(unpackHalf2x16(paint.z), unpackHalf2x16(paint.w & 65535u).x, falls - log2(255.0));
}
