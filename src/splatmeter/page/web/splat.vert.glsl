#version 300 es
// A triangle around the ellipse where the Gaussian falls to 1/255, turned like it. Not instances of a quad: software
// renderers take each instance for a drawing of its own, and a card has half as many triangles to set up.
precision highp float;
precision highp int;
precision highp usampler2D;

uniform usampler2D places, paints;
uniform int rowBits;
uniform vec2 size;

out vec2 away;       // from the centre; its square is what is lost of the opacity, as a power of two
flat out vec4 tint;  // colour, logarithm of the opacity to base two

const float UNIT = 0.8493218002880191;  // sqrt(log2(e) / 2): of a standard deviation

void main() {
  int row = gl_VertexID / 3, corner = gl_VertexID - 3 * row;
  ivec2 at = ivec2(row & ((1 << rowBits) - 1), row >> rowBits);
  uvec4 paint = texelFetch(paints, at, 0);
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);  // nowhere
  tint = vec4(0.0);
  away = vec2(0.0);
  if (paint.y == 0u) return;
  vec4 place = uintBitsToFloat(texelFetch(places, at, 0));
  float opacity = log2(uintBitsToFloat(paint.y)), reach = sqrt(opacity + log2(255.0));
  away = reach * (corner == 0 ? vec2(0.0, 2.0) : vec2(corner == 1 ? -sqrt(3.0) : sqrt(3.0), -1.0));
  vec2 aside = normalize(vec2(-place.w, place.z)) * uintBitsToFloat(paint.x);
  vec2 pixel = place.xy + (away.x * place.zw + away.y * aside) / UNIT;
  gl_Position = vec4(2.0 * pixel.x / size.x - 1.0, 1.0 - 2.0 * pixel.y / size.y, 0.0, 1.0);
  tint = vec4(unpackHalf2x16(paint.z), unpackHalf2x16(paint.w).x, opacity);
}
