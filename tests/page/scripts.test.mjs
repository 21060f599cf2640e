// Run by test_page_scripts.py: `node --test` beside copies of the page's scripts and a model that Python packed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { frameOn, onTheWay, pinholeOn } from "./camera.js";
import { approached, levelled, looked, moved, orbited } from "./controls.js";
import { bytesOf, harmonicWords, inflated, mostTriangles, unpacked } from "./decode.js";
import { apply, between, dot, minus, row } from "./math.js";
import { depthAt, sorter, spreads } from "./sort.js";
import { adapted } from "./viewer.js";

const given = JSON.parse(readFileSync("given.json", "utf8"));
const near = (a, b, tolerance = 1e-6) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not ${b}`);
const same = (a, b, tolerance) => a.forEach((value, k) => near(value, b[k], tolerance));
const model = unpacked(await inflated(bytesOf(given.text)), given.header);

test("base64 of every length", () => {
  for (let size = 0; size < 9; size++) {
    const bytes = Uint8Array.from({ length: size }, (_, k) => (k * 97 + 13) & 255);
    assert.deepEqual(bytesOf(Buffer.from(bytes).toString("base64")), bytes);
  }
});

test("what is decoded is what Python restores", () => {
  const { count, degree, lowestLogScale, logScaleStep, harmonicStep } = given.header;
  const floats = new Float32Array(model.shapes.buffer), width = harmonicWords(degree);
  assert.equal(model.radii.length, count);
  for (let i = 0; i < count; i++) {
    same(given.means[i], [0, 1, 2].map((k) => floats[8 * i + k]), 1e-5);
    const words = [model.shapes[8 * i + 4] & 65535, model.shapes[8 * i + 4] >>> 16, model.shapes[8 * i + 5] & 65535];
    same(given.logScales[i], words.map((code) => lowestLogScale + logScaleStep * code), 1e-5);
    near(model.radii[i], Math.exp(Math.max(...given.logScales[i])), 1e-4 * model.radii[i]);
    near(model.opacities[i], given.opacities[i], 1e-5);
    for (let k = 1; k < (degree + 1) ** 2; k++) {
      const word = model.harmonics[width * i + k - 1];
      same(given.harmonics[i][k], [24, 16, 8].map((shift) => harmonicStep * ((word << shift) >> 24)), 1e-5);
    }
  }
});

const sort = sorter(model.means, model.radii, spreads(model.areas, model.opacities));
const TRIANGLES = [1, 2, 4, 6];

/** The entries as {row, polygon, part}. */
function sorted(camera, room = mostTriangles(given.header.count)) {
  const order = new Uint32Array(room), { found, count } = sort(camera, 0, order);
  const entries = [...order.subarray(0, count)].map((entry) => ({ row: entry & 0x7ffffff, polygon: entry >>> 30, part: (entry >>> 27) & 7 }));
  return { found, entries };
}

test("everything in sight is sorted, farthest first, and nothing is there twice", () => {
  for (const camera of given.cameras) {
    const { found, entries } = sorted(camera), rows = entries.filter(({ part }) => part === 0).map((one) => one.row);
    const depth = rows.map((i) => dot(row(camera.rotation, 2), model.means.subarray(3 * i, 3 * i + 3)) + camera.translation[2]);
    assert.equal(rows.length, found);
    assert.equal(new Set(rows).size, found);
    for (let k = 1; k < found; k++) assert.ok(depth[k - 1] >= depth[k] - 1e-5 * Math.abs(depth[k]));
    const missing = camera.seen.filter((i) => !rows.includes(i));
    assert.deepEqual(missing, [], "seen by our engine, but not sorted");
  }
  const away = { ...given.cameras[0], translation: [0, 0, -1e6] };
  assert.equal(sorted(away).found, 0);
});

test("large ellipses come as all triangles of a polygon, one after the other", () => {
  const polygons = new Set();
  for (const camera of given.cameras) {
    const { entries } = sorted(camera);
    for (let k = 0; k < entries.length; k += TRIANGLES[entries[k].polygon]) {
      const whole = entries.slice(k, k + TRIANGLES[entries[k].polygon]);
      polygons.add(entries[k].polygon);
      assert.deepEqual(whole.map(({ part }) => part), whole.map((_, part) => part));
      assert.equal(new Set(whole.map((one) => `${one.row} ${one.polygon}`)).size, 1);
    }
  }
  assert.deepEqual([...polygons].sort(), [0, 1, 2, 3], "the test's model has no ellipses of some size");
});

test("where there is no room for polygons, nothing is left out", () => {
  const camera = given.cameras[0], whole = sorted(camera), tight = sorted(camera, whole.found);
  assert.equal(tight.entries.length, whole.found);
  assert.ok(tight.entries.every(({ polygon, part }) => polygon === 0 && part === 0));
  const half = sorted(camera, (whole.found + whole.entries.length) >> 1);
  assert.deepEqual(half.entries.filter(({ part }) => part === 0).map((one) => one.row), tight.entries.map((one) => one.row));
});

test("one Gaussian alone is where one points", () => {
  const camera = { rotation: [1, 0, 0, 0, 1, 0, 0, 0, 1], translation: [0, 0, 0], fx: 100, fy: 100, cx: 50, cy: 50, width: 100, height: 100 };
  const alone = [Float32Array.of(0, 0, 3, 0, 0, 9), Float32Array.of(0.1, 0.1), Float32Array.of(0.9, 0.9)];
  near(depthAt(...alone, camera, 50, 50), 3);
  near(depthAt(...alone, camera, 99, 99), 0);
});

const view = { position: [1, 2, -4], rotation: [1, 0, 0, 0, 1, 0, 0, 0, 1], fx: 300, fy: 310, cx: 170, cy: 110, width: 320, height: 240 };
const up = [0, -1, 0];

test("on a canvas of its own size a view is its own camera", () => {
  for (const cut of [0, 0.5]) {
    const camera = pinholeOn(view, 320, 240, cut);
    same([camera.fx, camera.fy, camera.cx, camera.cy], [300, 310, 170, 110]);
  }
  const wide = pinholeOn(view, 1000, 480, 0), frame = frameOn(view, 1000, 480, 0);
  same([frame.left, frame.top, frame.width, frame.height], [180, 0, 640, 480]);
  same([wide.fx, wide.cx, wide.cy], [600, 180 + 340, 220]);
  assert.ok(frameOn(view, 390, 844, 0.5).height > frameOn(view, 390, 844, 0).height);
});

test("turning keeps the distance, the target and a rotation", () => {
  const turned = orbited(view, 5, 0.7, -0.4, up), target = [1, 2, 1];
  near(Math.hypot(...minus(turned.position, target)), 5);
  const seen = apply(turned.rotation, minus(target, turned.position));
  same(seen, [0, 0, 5]);
  for (let a = 0; a < 3; a++) for (let b = 0; b < 3; b++) near(dot(row(turned.rotation, a), row(turned.rotation, b)), a === b ? 1 : 0);
  near(dot(row(turned.rotation, 0), up), 0, 1e-9);
  assert.ok(turned.position[0] > 1, "who turns to the left around a thing walks to the right");
});

test("one cannot be turned upside down", () => {
  let turned = view;
  for (let k = 0; k < 200; k++) turned = orbited(turned, 5, 0.01, -0.1, up);
  assert.ok(dot(row(turned.rotation, 1), up) < 0, "the picture's top points up");
  for (let k = 0; k < 200; k++) turned = looked(turned, 0, 0.1, up);
  assert.ok(dot(row(turned.rotation, 1), up) < 0);
});

test("moving, nearing and levelling", () => {
  same(moved(view, [1, 2, 3]).position, [2, 4, -1]);
  const [nearer, left] = approached(view, 5, 0.5, 0.1);
  same(nearer.position, [1, 2, -1.5]);
  near(left, 2.5);
  near(approached(view, 5, 0, 0.1)[1], 0.1);
  const tilted = { ...view, rotation: [0.8, 0.6, 0, -0.6, 0.8, 0, 0, 0, 1] };
  near(dot(row(levelled(tilted, up, 1).rotation, 0), up), 0, 1e-9);
  assert.ok(dot(row(levelled(tilted, up, 1).rotation, 1), up) < 0);
});

test("the way from view to view begins, ends and stays a camera", () => {
  const other = orbited(view, 5, 2.2, 0.3, up);
  same(onTheWay(view, other, 0, [1, 2, 1]).position, view.position);
  same(onTheWay(view, other, 1, [1, 2, 1]).position, other.position);
  const half = onTheWay(view, other, 0.5, [1, 2, 1]);
  near(Math.hypot(...minus(half.position, [1, 2, 1])), 5, 1e-6);
  near(dot(row(half.rotation, 0), row(half.rotation, 1)), 0, 1e-9);
  same(between(view.rotation, other.rotation, 1), other.rotation, 1e-6);
  const opposite = [-1, 0, 0, 0, 1, 0, 0, 0, -1];
  assert.ok(between(view.rotation, opposite, 0.3).every(Number.isFinite));
});

test("while it moves, late pictures get fewer pixels, and prompt ones more again", () => {
  assert.equal(adapted(1, 1, 5), 1, "the first pause is nobody's fault");
  assert.ok(adapted(1, 2, 0.7) < 0.5, "however slow the machine is");
  assert.equal(adapted(0.31, 9, 2), 0.3);
  assert.equal(adapted(0.6, 9, 0.03), 0.6);
  assert.ok(adapted(0.6, 9, 0.05) < 0.6);
  assert.ok(adapted(0.6, 9, 0.016) > 0.6);
  assert.equal(adapted(1, 9, 0.016), 1);
});
