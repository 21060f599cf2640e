// The other side of worker.js: one question at a time, its answer as a promise, its array lent and given back.

export function sorting(source, onProgress) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address);
  const waiting = new Map();
  let spare = null, before = Promise.resolve();

  const ask = (kind, answer, message, lent = []) => {
    worker.postMessage({ kind, ...message }, lent);
    return new Promise((resolve, reject) => waiting.set(answer, { resolve, reject }));
  };
  worker.onmessage = ({ data }) => {
    if (data.kind === "inflated") return onProgress();
    const known = data.kind === "failed" ? [...waiting.values()] : [waiting.get(data.kind)];
    if (data.kind === "failed") waiting.clear();
    else waiting.delete(data.kind);
    known.forEach((one) => (data.kind === "failed" ? one.reject(new Error(data.reason)) : one.resolve(data)));
  };
  worker.onerror = (event) => {
    waiting.forEach((one) => one.reject(new Error(event.message || "The second thread did not start.")));
    waiting.clear();
  };

  async function ordered(camera, margin, take) {
    const message = { camera, margin, buffer: spare }, lent = spare ? [spare] : [];
    spare = null;
    const answer = await ask("order", "sorted", message, lent);
    take(answer.order, answer.count);
    spare = answer.order.buffer;
    return answer;
  }

  return {
    open: (header, text) => ask("open", "opened", { header, text }),
    idle: () => !waiting.has("sorted"),
    order: (camera, margin, take) => (before = before.then(() => ordered(camera, margin, take))),
    pick: (camera, x, y) => ask("pick", "picked", { camera, x, y }),
  };
}
