// Opens the page: checks what the browser can do, unpacks the model, draws, and lets tests ask for a picture.
import { pinholeOn } from "./camera.js";
import { panels, veil } from "./interface.js";
import { renderer } from "./renderer.js";
import { sorting } from "./sorting.js";
import { viewer } from "./viewer.js";

/** SHADERS and WORKER are put before this script by page/assemble.py. */
async function open() {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const canvas = document.getElementById("canvas");
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old to unpack the scene. Chrome 80, Firefox 113, Safari 16.4 or newer can.");
  }
  let drawing = renderer(canvas, SHADERS, scene.header, scene.look);
  if (!drawing) throw new Error("This browser shows no 3D graphics (WebGL2). Another browser may, or switch graphics acceleration on.");
  veil.progress("Unpacking", 0.15);
  const sorter = sorting(WORKER, () => veil.progress("Arranging", 0.55));
  const packed = document.getElementById("gaussians");
  const text = packed.textContent.trim();
  packed.remove();
  const { shapes, harmonics } = await sorter.open(scene.header, text);
  veil.progress("Drawing", 0.85);
  drawing.model(shapes, harmonics);

  const spent = { sort: 0, upload: 0, found: 0 };
  const ordered = {
    ...sorter,
    order: async (camera, margin) => {
      const answer = await sorter.order(camera, margin, (order, count) => {
        const begin = performance.now();
        if (!drawing.gl.isContextLost()) drawing.order(order, count);
        spent.upload = performance.now() - begin;
      });
      spent.sort = answer.milliseconds;
      spent.found = answer.found;
    },
  };
  await ordered.order(pinholeOn(scene.start, canvas.clientWidth || 640, canvas.clientHeight || 480), 0);
  const stage = viewer({ canvas, scene, sorting: ordered, draw: (camera) => drawing.gl.isContextLost() || drawing.draw(camera) });
  const ui = panels(scene, stage);
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    drawing = renderer(canvas, SHADERS, scene.header, scene.look);
    drawing.model(shapes, harmonics);
    stage.redrawn();
  });

  /** One whole picture of a view at a size, with what each part took in milliseconds; the page itself stands still. */
  async function frame({ view = scene.first, width, height, picture = false }) {
    const seen = scene.views[view] || scene.start, now = () => performance.now();
    stage.pause(true);
    if (width) Object.assign(canvas, { width, height });
    const camera = pinholeOn(seen, canvas.width, canvas.height, 0);
    const begin = now();
    await ordered.order(camera, 0);
    const sorted = now();
    drawing.finish();
    const uploaded = now();
    drawing.draw(camera);
    drawing.finish();
    const drawn = now();
    const pixels = picture ? (drawing.draw(camera), canvas.toDataURL("image/png")) : null;
    const upload = spent.upload + uploaded - sorted;
    const milliseconds = { sort: spent.sort, upload, draw: drawn - uploaded, total: drawn - begin };
    return { ...milliseconds, count: spent.found, triangles: drawing.count(), picture: pixels };
  }
  return { scene, stage, ui, frame, gl: drawing.gl };
}

const ready = open();
window.splatmeter = { ready, frame: async (wish) => (await ready).frame(wish || {}) };
ready.then(({ stage }) => {
  stage.wake();
  requestAnimationFrame(() => requestAnimationFrame(veil.lift));
}).catch((problem) => veil.say(problem.message));
