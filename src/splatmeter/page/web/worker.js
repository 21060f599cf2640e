// The second thread: unpacks once, then sorts whenever it is asked.
import { bytesOf, inflated, mostTriangles, unpacked } from "./decode.js";
import { depthAt, spreads, sorter } from "./sort.js";

let model = null;
let sort = null;

async function open({ header, text }) {
  const bytes = await inflated(bytesOf(text));
  postMessage({ kind: "inflated" });
  const { shapes, harmonics, areas, ...kept } = unpacked(bytes, header);
  model = kept;
  sort = sorter(model.means, model.radii, spreads(areas, model.opacities));
  postMessage({ kind: "opened", shapes, harmonics }, [shapes.buffer, harmonics.buffer]);
}

function order({ camera, margin, buffer }) {
  const begin = performance.now();
  const into = new Uint32Array(buffer || new ArrayBuffer(4 * mostTriangles(model.radii.length)));
  const { found, count } = sort(camera, margin, into);
  postMessage({ kind: "sorted", order: into, count, found, milliseconds: performance.now() - begin }, [into.buffer]);
}

function pick({ camera, x, y }) {
  const { means, radii, opacities } = model;
  postMessage({ kind: "picked", depth: depthAt(means, radii, opacities, camera, x, y), x, y, camera });
}

onmessage = async ({ data }) => {
  try {
    await { open, order, pick }[data.kind](data);
  } catch (problem) {
    postMessage({ kind: "failed", reason: String(problem && problem.message || problem) });
  }
};
