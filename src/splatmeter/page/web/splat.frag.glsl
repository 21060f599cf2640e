#version 300 es
// The Gaussian itself, premultiplied; below 1/255 it is not there, and nothing is denser than 0.99.
precision highp float;
in vec2 away;
flat in vec4 tint;
out vec4 color;

void main() {
  float alpha = exp2(tint.a - dot(away, away));
  alpha = alpha < 1.0 / 255.0 ? 0.0 : min(alpha, 0.99);
  color = vec4(tint.rgb * alpha, alpha);
}
