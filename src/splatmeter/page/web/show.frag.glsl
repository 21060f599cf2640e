#version 300 es
// From the picture, which may be smaller than the canvas, to the canvas.
precision highp float;
uniform sampler2D picture;
uniform vec2 share;  // of the texture that holds the picture, per pixel of the canvas
out vec4 color;

void main() {
  color = vec4(clamp(texture(picture, gl_FragCoord.xy * share).rgb, 0.0, 1.0), 1.0);
}
