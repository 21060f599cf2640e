// What happens between two pictures: where one stands, what must be sorted, how large it is drawn.
import { CUT, distanceAhead, frameOn, onTheWay, pinholeOn } from "./camera.js";
import { approached, hands, levelled, looked, moved, orbited } from "./controls.js";
import { add, clamp, mix, row, times } from "./math.js";

const DENSEST = 2; // pixels of the canvas per CSS pixel: more is not seen, but costs
const SMALLEST = 0.3; // of the canvas, while it moves and the machine is slow
const SMOOTH = 0.00002; // of a movement is left after a second
const MARGIN = 0.15; // of the picture, sorted beyond its edges for what comes into it before the next sorting
const JOURNEY = 900; // milliseconds from view to view

/** Fewer pixels while it moves and pictures come late, after `frames` in a row of which the last took `seconds`. */
export function adapted(scale, frames, seconds) {
  if (frames > 1 && seconds > 0.15) return Math.max(SMALLEST, scale * clamp(Math.sqrt(0.1 / seconds), 0.4, 0.87));
  if (frames > 2 && seconds > 0.045) return Math.max(SMALLEST, 0.87 * scale);
  return frames > 6 && seconds < 0.02 ? Math.min(1, 1.06 * scale) : scale;
}

export function viewer({ canvas, scene, sorting, draw }) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const size = scene.focusDistance;
  let view = scene.start, distance = distanceAhead(view, scene.focus, size);
  let cut = CUT, wantedCut = CUT, journey = null;
  let dirty = true, asked = false, paused = false, sortedFor = null, last = 0, moving = 0, went = false, scale = 1, frames = 0;
  const owed = { orbit: [0, 0], pan: [0, 0], zoom: 0 };
  const listeners = new Set();

  const wake = () => {
    dirty = true;
    if (!asked) {
      asked = true;
      requestAnimationFrame(step);
    }
  };
  /** From here on the visitor steers; a journey under way ends where it is. */
  const steered = () => {
    if (journey) distance = distanceAhead(view, scene.focus, size);
    journey = null;
    tell("moved");
    wake();
  };
  const act = {
    orbit: (dx, dy) => (owed.orbit[0] += dx, owed.orbit[1] += dy, steered()),
    pan: (dx, dy) => (owed.pan[0] += dx, owed.pan[1] += dy, steered()),
    zoom: (factor) => (owed.zoom += Math.log(factor), steered()),
    fly: steered,
    focus: (x, y) => {
      const box = canvas.getBoundingClientRect(), dense = canvas.width / box.width;
      const camera = pinholeOn(view, canvas.width, canvas.height, cut);
      sorting.pick(camera, (x - box.left) * dense, (y - box.top) * dense).then(turnTo);
    },
  };
  const hand = hands(canvas, act);

  /** Looks at a point of the scene, which becomes what one turns around. */
  function turnTo({ depth, x, y, camera }) {
    if (!(depth > 0)) return;
    steered();
    const aside = [((x - camera.cx) / camera.fx) * depth, ((y - camera.cy) / camera.fy) * depth, depth];
    const goal = moved(view, [aside[0], aside[1], 0]);
    distance = depth;
    journey = { from: view, to: goal, begin: performance.now(), focus: null, distance: depth };
    wake();
  }

  function consumed(seconds) {
    const share = still.matches ? 1 : 1 - Math.pow(SMOOTH, seconds);
    const take = (pair) => pair.map((value, k) => ((pair[k] = Math.abs(value) < 0.05 ? 0 : value * (1 - share)), value - pair[k]));
    const box = canvas.getBoundingClientRect(), turn = Math.PI / Math.max(Math.min(box.width, box.height), 300);
    const [ox, oy] = take(owed.orbit), [px, py] = take(owed.pan);
    if (ox || oy) view = orbited(view, distance, -ox * turn, -oy * turn, scene.up);
    if (px || py) {
      const pixel = distance / (view.fx * frameOn(view, box.width, box.height, cut).scale);
      view = moved(view, [-px * pixel, -py * pixel, 0]);
    }
    if (owed.zoom) {
      const part = Math.abs(owed.zoom) < 1e-3 ? owed.zoom : owed.zoom * share;
      owed.zoom -= part;
      [view, distance] = approached(view, distance, Math.exp(part), 0.02 * size);
    }
    return Boolean(ox || oy || px || py || owed.zoom);
  }

  function flown(seconds) {
    const keys = hand.held();
    if (!keys) return false;
    const far = 0.7 * Math.max(distance, 0.25 * size) * seconds;
    view = moved(view, keys.move.map((part) => part * far));
    view = looked(view, keys.turn[0] * seconds, keys.turn[1] * seconds, scene.up);
    view = levelled(view, scene.up, 1 - Math.pow(0.2, seconds));
    return true;
  }

  function travelled(now) {
    if (!journey) return false;
    const t = still.matches ? 1 : clamp((now - journey.begin) / JOURNEY, 0, 1);
    const eased = t * t * (3 - 2 * t);
    view = t < 1 ? onTheWay(journey.from, journey.to, eased, journey.focus) : journey.to;
    if (t === 1) {
      distance = journey.distance || distanceAhead(view, scene.focus, size);
      journey = null;
    }
    return true;
  }

  function step(now) {
    asked = false;
    if (paused) return;
    const passed = (now - last) / 1000, seconds = clamp(passed, 0.001, 0.25);
    last = now;
    cut = Math.abs(wantedCut - cut) < 0.003 || still.matches ? wantedCut : mix(cut, wantedCut, 1 - Math.pow(0.0005, seconds));
    const going = [travelled(now), consumed(seconds), flown(seconds), cut !== wantedCut].some(Boolean);
    if (going) moving = now;
    const calm = now - moving > 180;
    frames = going && went ? frames + 1 : 0;
    scale = adapted(scale, frames, passed);
    went = going;
    if (calm && drawnScale < 1) dirty = true;
    if (!dirty && !going && calm) return;
    paint(calm);
    if (going || !calm || hand.busy()) return wake();
  }

  let drawnScale = 1;

  /** At rest nothing is drawn before its own order is there: the picture would only be drawn twice. */
  function paint(calm) {
    const resized = resize();
    drawnScale = calm || hand.busy() && scale > 0.95 ? 1 : scale;
    const camera = pinholeOn(view, Math.max(1, Math.round(canvas.width * drawnScale)), Math.max(1, Math.round(canvas.height * drawnScale)), cut);
    const inOrder = sorted(camera, calm ? 0.02 : MARGIN);
    if (calm && !inOrder && !resized) return;
    draw(camera);
    dirty = false;
    tell("drawn");
  }

  /** Whether the order is this camera's; else it is asked for. */
  function sorted(camera, margin) {
    const key = JSON.stringify([camera.rotation, camera.translation, camera.fx, camera.cx, camera.cy, camera.width, camera.height]);
    if (key !== sortedFor && sorting.idle()) {
      sorting.order(camera, margin).then(() => {
        sortedFor = key;
        wake();
      });
    }
    return key === sortedFor;
  }

  function resize() {
    const dense = Math.min(devicePixelRatio || 1, DENSEST), box = canvas.getBoundingClientRect();
    const wanted = [Math.max(1, Math.round(box.width * dense)), Math.max(1, Math.round(box.height * dense))];
    if (canvas.width === wanted[0] && canvas.height === wanted[1]) return false;
    [canvas.width, canvas.height] = wanted;
    return true;
  }

  const tell = (what) => listeners.forEach((listener) => listener(what));
  addEventListener("resize", wake);
  new ResizeObserver(wake).observe(canvas);

  return {
    wake,
    pause: (wanted) => ((paused = wanted), wanted || wake()),
    redrawn: () => ((sortedFor = null), wake()),
    listen: (listener) => listeners.add(listener),
    view: () => view,
    frame: () => {
      const box = canvas.getBoundingClientRect();
      return frameOn(view, box.width, box.height, cut);
    },
    fit: (whole) => ((wantedCut = whole ? 0 : CUT), wake()),
    jump: (to) => {
      owed.orbit = [0, 0], owed.pan = [0, 0], owed.zoom = 0;
      journey = { from: view, to, begin: performance.now(), focus: scene.focus };
      wake();
    },
    place: (to) => ((view = to), (journey = null), (distance = distanceAhead(to, scene.focus, size)), wake()),
    travelling: () => Boolean(journey),
    target: () => add(view.position, times(row(view.rotation, 2), distance)),
  };
}
