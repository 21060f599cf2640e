// Vectors are arrays of three numbers, matrices arrays of nine, row by row. Camera axes: x right, y down, z ahead.

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const times = (a, k) => [a[0] * k, a[1] * k, a[2] * k];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const length = (a) => Math.hypot(a[0], a[1], a[2]);
export const unit = (a) => times(a, 1 / Math.max(length(a), 1e-30));
export const mix = (a, b, t) => a + (b - a) * t;
export const mixed = (a, b, t) => a.map((value, k) => mix(value, b[k], t));
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export const row = (m, k) => [m[3 * k], m[3 * k + 1], m[3 * k + 2]];
export const apply = (m, v) => [dot(row(m, 0), v), dot(row(m, 1), v), dot(row(m, 2), v)];

/** The vector turned about a unit axis. */
export function turned(vector, axis, angle) {
  const c = Math.cos(angle), s = Math.sin(angle), along = dot(axis, vector) * (1 - c);
  const side = cross(axis, vector);
  return [0, 1, 2].map((k) => vector[k] * c + side[k] * s + axis[k] * along);
}

/** A world-to-camera rotation with every one of its axes turned. */
export const turnedAxes = (m, axis, angle) => [0, 1, 2].flatMap((k) => turned(row(m, k), axis, angle));

/** The nearest rotation, good enough against what rounding adds up to: ahead stays, the others follow. */
export function straightened(m) {
  const ahead = unit(row(m, 2));
  const right = unit(cross(row(m, 1), ahead));
  return [...right, ...cross(ahead, right), ...ahead];
}

/** Between two rotations along the shortest way: one axis, one angle. */
export function between(from, to, t) {
  const turn = [0, 1, 2].flatMap((i) => [0, 1, 2].map((j) => dot(column(to, i), column(from, j))));
  const angle = Math.acos(clamp((turn[0] + turn[4] + turn[8] - 1) / 2, -1, 1));
  if (angle < 1e-6) return to;
  const axis = [turn[7] - turn[5], turn[2] - turn[6], turn[3] - turn[1]];
  if (length(axis) < 1e-6) return t < 0.5 ? from : to; // half a turn: no way is the shortest
  return straightened(turnedAxes(from, unit(axis), angle * t));
}

const column = (m, k) => [m[k], m[3 + k], m[6 + k]];
