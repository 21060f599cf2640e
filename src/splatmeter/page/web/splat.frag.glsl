#version 300 es
// The Gaussian itself, premultiplied; below 1/255 it is not there, and nothing is denser than 0.99.
precision highp float;
in vec2 away;
flat in vec4 tint;
out vec4 color;

// Two to the power of x for -8.5 <= x <= 0, as the eighth power of a polynomial: right to 3e-5 of its value, a hundredth
// of a level. Processors that draw by themselves spend a tenth of a frame on the built-in one.
float power(float x) {
  float y = 0.125 * max(x, -8.5);
  y = 0.99999649 + y * (0.69299915 + y * (0.23917544 + y * (0.05279208 + y * 0.0066178)));
  y *= y;
  y *= y;
  return y * y;
}

void main() {
  float alpha = power(tint.a - dot(away, away));
  alpha = alpha < 1.0 / 255.0 ? 0.0 : min(alpha, 0.99);
  color = vec4(tint.rgb * alpha, alpha);
}
