// WebGL2: unpack and project every Gaussian, lay the ellipses over each other from back to front, show the picture.
import { SHAPE_WORDS, harmonicWords, mostTriangles } from "./decode.js";

const BEYOND = 0.3; // of half the picture: the Jacobian is taken no further outside, as in training
const SIDE = 4096; // widest data texture

export function renderer(canvas, shaders, header, look) {
  const gl = canvas.getContext("webgl2", {
    alpha: false, antialias: false, depth: false, stencil: false, powerPreference: "high-performance",
  });
  if (!gl) return null;
  const rowBits = Math.floor(Math.log2(Math.min(SIDE, gl.getParameter(gl.MAX_TEXTURE_SIZE))));
  const state = { count: 0, size: [0, 0] };
  const format = formatOf(gl);

  const project = program(gl, shaders.fill, shaders.project);
  const splat = program(gl, shaders.splatVertex, shaders.splat);
  const show = program(gl, shaders.fill, shaders.show);
  const nothing = gl.createVertexArray();
  gl.bindVertexArray(nothing);
  gl.disable(gl.DITHER);

  const rows = (texels) => Math.max(1, Math.ceil(texels / (1 << rowBits)));
  const wide = 1 << rowBits;
  const data = {
    order: texture(gl, gl.R32UI, wide, rows(mostTriangles(header.count))),
    places: texture(gl, gl.RGBA32UI, wide, rows(mostTriangles(header.count))),
    paints: texture(gl, gl.RGBA32UI, wide, rows(mostTriangles(header.count))),
    shapes: texture(gl, gl.RGBA32UI, wide, rows((SHAPE_WORDS / 4) * header.count)),
    harmonics: texture(gl, gl.RGBA32UI, wide, rows((harmonicWords(header.degree) / 4) * header.count)),
  };
  const ellipses = target(gl, [data.places, data.paints]);
  let picture = null;

  function fill(into, format, words, perTexel) {
    const texels = words.length / perTexel, whole = texels >> rowBits;
    gl.bindTexture(gl.TEXTURE_2D, into);
    const put = (y, width, height, part) =>
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, y, width, height, format, gl.UNSIGNED_INT, part);
    if (whole) put(0, wide, whole, words.subarray(0, perTexel * (whole << rowBits)));
    if (texels > whole << rowBits) put(whole, texels - (whole << rowBits), 1, words.subarray(perTexel * (whole << rowBits)));
  }

  function model(shapes, harmonics) {
    fill(data.shapes, gl.RGBA_INTEGER, shapes, 4);
    if (harmonics.length) fill(data.harmonics, gl.RGBA_INTEGER, harmonics, 4);
  }

  /** One entry a triangle, see sort.js. */
  function order(triangles, count) {
    fill(data.order, gl.RED_INTEGER, triangles.subarray(0, count), 1);
    state.count = count;
  }

  function bind(unit, what) {
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, what);
  }

  function projected(camera) {
    gl.useProgram(project.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, ellipses);
    gl.viewport(0, 0, Math.min(wide, state.count), rows(state.count));
    ["order", "shapes", "harmonics"].forEach((name, unit) => {
      bind(unit, data[name]);
      gl.uniform1i(project.at(name), unit);
    });
    const { fx, fy, cx, cy, width, height } = camera;
    const beyond = [(BEYOND * width) / 2, (BEYOND * height) / 2];
    gl.uniform1i(project.at("count"), state.count);
    gl.uniform1i(project.at("rowBits"), rowBits);
    gl.uniform1i(project.at("degree"), header.degree);
    gl.uniformMatrix3fv(project.at("rotation"), true, camera.rotation);
    gl.uniform3fv(project.at("translation"), camera.translation);
    gl.uniform3fv(project.at("eye"), camera.eye);
    gl.uniform4f(project.at("lens"), fx, fy, cx, cy);
    gl.uniform2f(project.at("size"), width, height);
    gl.uniform4f(project.at("slopes"), (-cx - beyond[0]) / fx, (width - cx + beyond[0]) / fx,
      (-cy - beyond[1]) / fy, (height - cy + beyond[1]) / fy);
    gl.uniform2f(project.at("kernel"), look.kernel, look.compensate ? 1 : 0);
    gl.uniform2f(project.at("logScale"), header.lowestLogScale, header.logScaleStep);
    gl.uniform2f(project.at("levels"), header.opacityLevels, header.rotationLevels);
    gl.uniform2f(project.at("steps"), header.colorStep, header.harmonicStep);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  function blended(width, height) {
    gl.useProgram(splat.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, picture.frame);
    gl.viewport(0, 0, width, height);
    gl.clearColor(...look.background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    bind(0, data.places);
    bind(1, data.paints);
    gl.uniform1i(splat.at("places"), 0);
    gl.uniform1i(splat.at("paints"), 1);
    gl.uniform1i(splat.at("rowBits"), rowBits);
    gl.uniform2f(splat.at("size"), width, height);
    gl.drawArrays(gl.TRIANGLES, 0, 3 * state.count);
    gl.disable(gl.BLEND);
  }

  function shown(width, height) {
    gl.useProgram(show.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    bind(0, picture.texture);
    gl.uniform1i(show.at("picture"), 0);
    gl.uniform2f(show.at("share"), width / canvas.width / picture.width, height / canvas.height / picture.height);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  /** The camera's size is the picture's; the canvas may be larger. */
  function draw(camera) {
    const { width, height } = camera;
    if (!picture || picture.width < width || picture.height < height) {
      picture = pictureOf(gl, format, picture, Math.max(width, canvas.width), Math.max(height, canvas.height));
    }
    if (state.count) projected(camera);
    blended(width, height);
    shown(width, height);
  }

  /** Waits until everything asked for is drawn: nothing else makes a browser tell when. */
  function finish() {
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  }

  return { model, order, draw, finish, gl, count: () => state.count };
}

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    const told = gl.getAttachedShaders(made).map((shader) => gl.getShaderInfoLog(shader)).join(" ");
    throw new Error(`A shader was refused. ${gl.getProgramInfoLog(made)} ${told}`);
  }
  const places = new Map();
  const at = (name) => {
    if (!places.has(name)) places.set(name, gl.getUniformLocation(made, name));
    return places.get(name);
  };
  return { program: made, at };
}

function texture(gl, format, width, height, filter = gl.NEAREST) {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

function target(gl, textures) {
  const frame = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
  const places = textures.map((made, k) => {
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + k, gl.TEXTURE_2D, made, 0);
    return gl.COLOR_ATTACHMENT0 + k;
  });
  gl.drawBuffers(places);
  return frame;
}

/** What the picture comes together in: bytes would lose what hundreds of faint layers add up to. */
function formatOf(gl) {
  const floats = gl.getExtension("EXT_color_buffer_float");
  if (!floats && !gl.getExtension("EXT_color_buffer_half_float")) return gl.RGBA8;
  const named = gl.getExtension("WEBGL_debug_renderer_info");
  const software = named && /swiftshader|llvmpipe|software|basic render/i.test(gl.getParameter(named.UNMASKED_RENDERER_WEBGL));
  // Half floats are what cards are fast at; a processor spends half of its time on converting them.
  const whole = software && floats && gl.getExtension("EXT_float_blend") && gl.getExtension("OES_texture_float_linear");
  return whole ? gl.RGBA32F : gl.RGBA16F;
}

function pictureOf(gl, format, old, width, height) {
  if (old) {
    gl.deleteTexture(old.texture);
    gl.deleteFramebuffer(old.frame);
  }
  const made = texture(gl, format, width, height, gl.LINEAR);
  return { texture: made, frame: target(gl, [made]), width, height };
}
