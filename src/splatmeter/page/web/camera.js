// A view is where somebody stands and the lens they look through: {position, rotation, fx, fy, cx, cy, width, height}.
import { add, apply, between, dot, minus, mix, mixed, row, times } from "./math.js";

/** How much of a picture that does not fit the screen may be cut off: 0 nothing, 1 as much as fills the screen. */
export const CUT = 0.55;

/** Where on a canvas the view's own picture lies, in pixels; the scene goes on around it. */
export function frameOn(view, width, height, cut = CUT) {
  const inside = Math.min(width / view.width, height / view.height);
  const across = Math.max(width / view.width, height / view.height);
  const scale = inside * Math.pow(across / inside, cut);
  const w = view.width * scale, h = view.height * scale;
  return { scale, left: (width - w) / 2, top: (height - h) / 2, width: w, height: h };
}

/** The pinhole that draws a view on a canvas. On one of the photo's own size it is the photo's camera, exactly. */
export function pinholeOn(view, width, height, cut = CUT) {
  const frame = frameOn(view, width, height, cut);
  return {
    rotation: view.rotation,
    translation: times(apply(view.rotation, view.position), -1),
    eye: view.position,
    fx: view.fx * frame.scale,
    fy: view.fy * frame.scale,
    cx: view.cx * frame.scale + frame.left,
    cy: view.cy * frame.scale + frame.top,
    width,
    height,
  };
}

/** On the way from one view to another: around what both look at, so that it stays in sight. */
export function onTheWay(from, to, t, focus) {
  const rotation = between(from.rotation, to.rotation, t);
  const lens = {};
  for (const name of ["fx", "fy", "cx", "cy", "width", "height"]) lens[name] = mix(from[name], to[name], t);
  const straight = mixed(from.position, to.position, t);
  if (!focus) return { ...to, ...lens, rotation, position: straight };
  const far = [from, to].map((view) => Math.hypot(...minus(view.position, focus)));
  const aside = minus(straight, focus);
  const now = Math.max(Math.hypot(...aside), 1e-9);
  // an arc where both stand around the focus, a line where one of them stands in it
  const arc = now > 0.25 * Math.min(...far) ? mix(far[0], far[1], t) / now : 1;
  return { ...to, ...lens, rotation, position: add(focus, times(aside, arc)) };
}

/** What one turns around: as far ahead as the focus of the scene is, or `fallback`. */
export function distanceAhead(view, focus, fallback) {
  const ahead = dot(minus(focus, view.position), row(view.rotation, 2));
  return ahead > 0.05 * fallback ? ahead : fallback;
}
