// Which Gaussians a camera can see, farthest first: the order in which they are laid over each other.

const NEAR = 0.2;
const SIGMAS = 3.34; // sqrt(2 ln 255), where an opacity of one has fallen to 1/255
// Triangles, squares, hexagons, octagons: more corners leave less around an ellipse that is drawn for nothing, and cost more.
const LARGE = [400, 2000, 8000]; // pixels of an ellipse, from which on it gets the next polygon
const PARTS = [1, 2, 4, 6]; // triangles of each
const KIND = 30, PART = 27; // bits of an entry: above them the polygon and which of its triangles, below them the row
const DIGIT = 12; // bits; two of them are what the eye can tell of depths

/** Half-spaces [normal, offset, share of the radius]: outside one of them nothing is seen. `margin` widens the picture. */
function frustum(camera, margin) {
  const { rotation: R, translation: t } = camera;
  const planes = [[[R[6], R[7], R[8]], t[2] - NEAR, 0]];
  for (const [axis, focal, middle, size] of [[0, camera.fx, camera.cx, camera.width], [1, camera.fy, camera.cy, camera.height]]) {
    for (const side of [1, -1]) {
      const deep = (side > 0 ? middle : size - middle) + margin * size + 2;
      const along = side * focal, steep = Math.hypot(1, Math.max(Math.abs(deep), size) / focal);
      const normal = [0, 1, 2].map((k) => along * R[3 * axis + k] + deep * R[6 + k]);
      planes.push([normal, along * t[axis] + deep * t[2], SIGMAS * focal * steep]);
    }
  }
  return planes;
}

/**
 * The area of each ellipse one unit away, in squared focal lengths: what is inside of 1/255, seen from its broad side.
 * `areas` [N] are products of the longer two axes.
 */
export const spreads = (areas, opacities) =>
  areas.map((area, i) => 2 * Math.PI * area * Math.log(Math.max(255 * opacities[i], 1)));

const polygon = (area) => (area < LARGE[0] ? 0 : area < LARGE[1] ? 1 : area < LARGE[2] ? 2 : 3);

/** Remembers its arrays; `means` [3 N], `radii` [N] the longest axis of each, `spread` [N] of `spreads`. */
export function sorter(means, radii, spread) {
  const count = radii.length;
  const rows = [new Uint32Array(count), new Uint32Array(count)];
  const depths = new Float32Array(count), keys = new Uint32Array(depths.buffer);
  const other = new Uint32Array(count);
  const tally = new Uint32Array(1 << DIGIT);

  function seen(camera, margin) {
    const planes = frustum(camera, margin).flat(2), { rotation: R, translation: t } = camera;
    const zoom = camera.fx * camera.fy;
    let found = 0;
    for (let i = 0, at = 0; i < count; i++, at += 3) {
      const x = means[at], y = means[at + 1], z = means[at + 2], radius = radii[i];
      let inside = true;
      for (let k = 0; inside && k < 25; k += 5) {
        inside = planes[k] * x + planes[k + 1] * y + planes[k + 2] * z + planes[k + 3] + planes[k + 4] * radius > 0;
      }
      if (!inside) continue;
      const depth = R[6] * x + R[7] * y + R[8] * z + t[2];
      const area = (zoom * spread[i]) / (depth * depth);
      depths[found] = depth;
      rows[0][found++] = i | (polygon(area) << KIND);
    }
    return found;
  }

  /** Positive floats are in the order of their bits; farthest becomes 0. */
  function ranked(found) {
    let low = 0xffffffff, high = 0;
    for (let k = 0; k < found; k++) {
      if (keys[k] < low) low = keys[k];
      if (keys[k] > high) high = keys[k];
    }
    const shift = Math.max(0, 32 - Math.clz32(high - low) - 2 * DIGIT);
    for (let k = 0; k < found; k++) keys[k] = (high - keys[k]) >>> shift;
    return found && (high - low) >>> shift >= 1 << DIGIT ? 2 : 1;
  }

  function byDigit(found, shift, from, fromKeys, to, toKeys) {
    const mask = (1 << DIGIT) - 1;
    tally.fill(0);
    for (let k = 0; k < found; k++) tally[(fromKeys[k] >>> shift) & mask]++;
    for (let k = 0, sum = 0; k <= mask; k++) [tally[k], sum] = [sum, sum + tally[k]];
    for (let k = 0; k < found; k++) {
      const place = tally[(fromKeys[k] >>> shift) & mask]++;
      to[place] = from[k];
      toKeys[place] = fromKeys[k];
    }
  }

  /** Triangles into `order`; returns how many Gaussians were `found`, and the `count` of triangles. */
  return function sort(camera, margin, order) {
    const found = seen(camera, margin);
    const digits = ranked(found);
    byDigit(found, 0, rows[0], keys, rows[1], other);
    if (digits === 2) byDigit(found, DIGIT, rows[1], other, rows[0], keys);
    return { found, count: inParts(digits === 2 ? rows[0] : rows[1], found, order) };
  };
}

/** One entry a triangle, as long as there is room; then one a Gaussian. */
function inParts(rows, found, order) {
  let count = 0;
  for (let k = 0; k < found; k++) {
    const row = rows[k], parts = PARTS[row >>> KIND];
    if (parts === 1 || count + parts + found - k > order.length) order[count++] = row & (2 ** PART - 1);
    else for (let part = 0; part < parts; part++) order[count++] = row | (part << PART);
  }
  return count;
}

/** How far away what one sees at a point of the picture is, as depth; 0 where there is nothing. */
export function depthAt(means, radii, opacities, camera, x, y) {
  const { rotation: R, translation: t } = camera;
  const hits = [];
  for (let i = 0, at = 0; i < radii.length; i++, at += 3) {
    const [a, b, c] = [means[at], means[at + 1], means[at + 2]];
    const depth = R[6] * a + R[7] * b + R[8] * c + t[2];
    if (depth <= NEAR) continue;
    const across = (x - camera.cx) / camera.fx - (R[0] * a + R[1] * b + R[2] * c + t[0]) / depth;
    const down = (y - camera.cy) / camera.fy - (R[3] * a + R[4] * b + R[5] * c + t[1]) / depth;
    const reach = radii[i] / depth + 2 / camera.fx;
    const far = (across * across + down * down) / (reach * reach);
    if (far < 4) hits.push([depth, opacities[i] * Math.exp(-0.5 * far)]);
  }
  hits.sort((one, two) => one[0] - two[0]);
  let light = 1;
  for (const [depth, alpha] of hits) {
    light *= 1 - Math.min(alpha, 0.99);
    if (light < 0.5) return depth;
  }
  return hits.length ? hits[hits.length - 1][0] : 0;
}
