// Hands on the picture: what pointer, wheel and keys do to a view. Knows nothing of drawing.
import { add, clamp, cross, dot, minus, row, straightened, times, turnedAxes } from "./math.js";

const STEEPEST = 0.995; // cosine: one never looks straight along the vertical, where left and right change places

/** Turns around a point `distance` ahead, `sideways` and `upwards` in radians; what was level stays level. */
export function orbited(view, distance, sideways, upwards, up) {
  const target = add(view.position, times(row(view.rotation, 2), distance));
  const rotation = swung(view.rotation, sideways, upwards, up);
  return { ...view, rotation, position: minus(target, times(row(rotation, 2), distance)) };
}

/** The same where one stands: looks around. */
export const looked = (view, sideways, upwards, up) => ({ ...view, rotation: swung(view.rotation, sideways, upwards, up) });

function swung(rotation, sideways, upwards, up) {
  const yawed = turnedAxes(rotation, up, sideways);
  const pitched = turnedAxes(yawed, row(yawed, 0), upwards);
  const steep = dot(row(pitched, 2), up), before = dot(row(yawed, 2), up);
  const tooSteep = Math.abs(steep) > STEEPEST && Math.abs(steep) > Math.abs(before);
  return straightened(tooSteep ? yawed : pitched);
}

/** Along the camera's own axes: right, down, ahead. */
export const moved = (view, by) =>
  ({ ...view, position: [0, 1, 2].reduce((sum, k) => add(sum, times(row(view.rotation, k), by[k])), view.position) });

/** Nearer to what one turns around by a factor; the distance never reaches zero. */
export function approached(view, distance, factor, nearest) {
  const left = Math.max(distance * factor, nearest);
  return [moved(view, [0, 0, distance - left]), left];
}

/** Rolls until the vertical is vertical again, by a share of what is missing. */
export function levelled(view, up, share) {
  const ahead = row(view.rotation, 2);
  const level = cross(ahead, up);
  if (Math.hypot(...level) < 0.05) return view;
  const wanted = times(level, 1 / Math.hypot(...level)), now = row(view.rotation, 0);
  const angle = Math.atan2(dot(cross(now, wanted), ahead), dot(now, wanted));
  return { ...view, rotation: straightened(turnedAxes(view.rotation, ahead, angle * share)) };
}

const FLYING = { KeyW: [0, 0, 1], KeyS: [0, 0, -1], KeyA: [-1, 0, 0], KeyD: [1, 0, 0], KeyE: [0, -1, 0], KeyQ: [0, 1, 0] };
const TURNING = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * Listens on an element and calls `act` with what was meant:
 * orbit(dx, dy), pan(dx, dy), zoom(factor), focus(x, y) in CSS pixels, fly(); `held()` tells what the keys want.
 */
export function hands(element, act) {
  const pointers = new Map(), keys = new Set();
  let spread = 0, tapped = { time: 0, x: 0, y: 0 };

  const middle = () => {
    const all = [...pointers.values()];
    return [0, 1].map((k) => all.reduce((sum, at) => sum + at[k], 0) / all.length);
  };
  const apart = () => {
    const [one, two] = [...pointers.values()];
    return two ? Math.hypot(one[0] - two[0], one[1] - two[1]) : 0;
  };

  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    spread = apart();
    if (event.pointerType !== "touch" || pointers.size > 1) return;
    const near = Math.hypot(event.clientX - tapped.x, event.clientY - tapped.y) < 30;
    if (event.timeStamp - tapped.time < 320 && near) act.focus(event.clientX, event.clientY);
    tapped = { time: event.timeStamp, x: event.clientX, y: event.clientY };
  });
  element.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = middle();
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    const after = middle(), dx = after[0] - before[0], dy = after[1] - before[1];
    if (pointers.size === 1 && !(event.buttons & 6) && !event.shiftKey) return act.orbit(dx, dy);
    act.pan(dx, dy);
    const now = apart();
    if (spread > 0 && now > 0) act.zoom(spread / now);
    spread = now;
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
    element.addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      spread = apart();
    });
  }
  element.addEventListener("dblclick", (event) => act.focus(event.clientX, event.clientY));
  element.addEventListener("contextmenu", (event) => event.preventDefault());
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
    act.zoom(Math.exp(clamp(pixels, -300, 300) * (event.ctrlKey ? 0.008 : 0.0016)));
  }, { passive: false });

  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    if (!FLYING[event.code] && !TURNING[event.code]) return;
    event.preventDefault();
    keys.add(event.code);
    act.fly();
  });
  addEventListener("keyup", (event) => keys.delete(event.code));
  addEventListener("blur", () => {
    keys.clear();
    pointers.clear();
  });

  /** {move: [right, down, ahead], turn: [left, up]} where keys are held, else null. */
  function held() {
    const move = [0, 0, 0], turn = [0, 0];
    for (const code of keys) {
      (FLYING[code] || []).forEach((part, k) => (move[k] += part));
      (TURNING[code] || []).forEach((part, k) => (turn[k] += part));
    }
    return keys.size ? { move, turn } : null;
  }
  return { held, busy: () => pointers.size > 0 || keys.size > 0 };
}
