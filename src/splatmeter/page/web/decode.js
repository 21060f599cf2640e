// From the text in the page to what the graphics card reads. The layout is that of page/quantise.py.

/** Base64 without the detour over a string of bytes; browsers' own atob makes one twice as large as the data. */
export function bytesOf(base64) {
  const values = new Uint8Array(128);
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let k = 0; k < 64; k++) values[letters.charCodeAt(k)] = k;
  let end = base64.length;
  while (end > 0 && base64[end - 1] === "=") end--;
  const bytes = new Uint8Array((end * 3) >> 2);
  let at = 0;
  for (let k = 0; k + 1 < end; k += 4) {
    const four = (values[base64.charCodeAt(k)] << 18) | (values[base64.charCodeAt(k + 1)] << 12)
      | ((k + 2 < end ? values[base64.charCodeAt(k + 2)] : 0) << 6) | (k + 3 < end ? values[base64.charCodeAt(k + 3)] : 0);
    bytes[at++] = four >> 16;
    if (at < bytes.length) bytes[at++] = (four >> 8) & 255;
    if (at < bytes.length) bytes[at++] = four & 255;
  }
  return bytes;
}

export async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Words a Gaussian has in the two textures; harmonics need none where there is only the constant. */
export const SHAPE_WORDS = 8;
/** Room for the larger ellipses, which are drawn as more than one triangle. */
export const mostTriangles = (count) => Math.ceil(1.25 * count) + 4096;
export const harmonicWords = (degree) => [0, 4, 8, 16][degree];

/** The bytes as planes: `low(k)` and `high(k)` of a column of two, `next(k)` of one. */
function reader(bytes, header) {
  const count = header.count;
  let at = 24 * Math.ceil(count / header.chunk);
  const planes = (columns) => {
    const begin = at;
    at += columns * count;
    return Array.from({ length: columns }, (_, k) => bytes.subarray(begin + k * count, begin + (k + 1) * count));
  };
  const pairs = (columns) => [planes(columns), planes(columns)];
  return { planes, pairs };
}

/**
 * What is drawn with and what is sorted by.
 * shapes: x, y, z as floats, rotation | scale 0, 1 | scale 2, opacity | brightness, orange | green, 0.
 * harmonics: one word a coefficient, its three signed bytes.
 */
export function unpacked(bytes, header) {
  const { count, degree } = header;
  const { planes, pairs } = reader(bytes, header);
  const shapes = new Uint32Array(SHAPE_WORDS * count);
  const means = placed(bytes, header, pairs(3), shapes);
  const [scaleLow, scaleHigh] = pairs(3);
  const rotation = [...planes(3), ...planes(1)];
  const [[opacityLow], [opacityHigh]] = pairs(1);
  const [colorLow, colorHigh] = pairs(3);
  const radii = new Float32Array(count), areas = new Float32Array(count), opacities = new Float32Array(count);
  const { lowestLogScale, logScaleStep, opacityLevels } = header;
  for (let i = 0, at = 0; i < count; i++, at += SHAPE_WORDS) {
    const first = scaleLow[0][i] | (scaleHigh[0][i] << 8), second = scaleLow[1][i] | (scaleHigh[1][i] << 8);
    const third = scaleLow[2][i] | (scaleHigh[2][i] << 8), opacity = opacityLow[i] | (opacityHigh[i] << 8);
    shapes[at + 3] = rotation[0][i] | (rotation[1][i] << 8) | (rotation[2][i] << 16) | (rotation[3][i] << 24);
    shapes[at + 4] = first | (second << 16);
    shapes[at + 5] = third | (opacity << 16);
    shapes[at + 6] = colorLow[0][i] | (colorHigh[0][i] << 8) | (colorLow[1][i] << 16) | (colorHigh[1][i] << 24);
    shapes[at + 7] = colorLow[2][i] | (colorHigh[2][i] << 8);
    radii[i] = Math.exp(lowestLogScale + logScaleStep * Math.max(first, second, third));
    areas[i] = Math.exp(2 * lowestLogScale + logScaleStep * (first + second + third - Math.min(first, second, third)));
    opacities[i] = opacity / opacityLevels;
  }
  return { shapes, harmonics: harmonicsOf(planes, count, degree), means, radii, areas, opacities };
}

function placed(bytes, header, [low, high], shapes) {
  const { count, chunk } = header;
  const corners = new Float32Array(bytes.slice(0, 24 * Math.ceil(count / chunk)).buffer);
  const means = new Float32Array(3 * count), words = new Uint32Array(means.buffer);
  for (let i = 0; i < count; i++) {
    const at = 6 * Math.floor(i / chunk);
    for (let k = 0; k < 3; k++) {
      means[3 * i + k] = corners[at + k] + (low[k][i] | (high[k][i] << 8)) * corners[at + 3 + k];
      shapes[SHAPE_WORDS * i + k] = words[3 * i + k];
    }
  }
  return means;
}

function harmonicsOf(planes, count, degree) {
  const width = harmonicWords(degree), coefficients = (degree + 1) ** 2;
  const words = new Uint32Array(width * count);
  for (let k = 1; k < coefficients; k++) {
    const [first, second, third] = planes(3);
    for (let i = 0, at = k - 1; i < count; i++, at += width) {
      words[at] = first[i] | (second[i] << 8) | (third[i] << 16);
    }
  }
  return words;
}
