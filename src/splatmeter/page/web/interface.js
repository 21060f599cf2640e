// Title, buttons, the photo to compare with, help: everything that is not the picture itself.
import { clamp } from "./math.js";

const part = (id) => document.getElementById(id);

export function panels(scene, stage) {
  const views = scene.views;
  let shown = views.length ? scene.first : -1, away = false, comparing = false, border = 0.5;

  part("title").textContent = scene.title;
  part("facts").append(...scene.facts.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  part("details").append(...scene.details.flatMap(([name, value]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: value }),
  ]));
  part("views").hidden = !views.length;
  part("compare").hidden = !views.some((view) => view.photo);
  part("full").hidden = !document.documentElement.requestFullscreen;

  function label() {
    if (shown < 0) return;
    part("number").textContent = away ? "Free view" : `View ${shown + 1} of ${views.length}`;
    part("kind").textContent = away ? `left view ${shown + 1}` : views[shown].heldOut ? "held out" : "trained on";
    part("kind").classList.toggle("held", !away && views[shown].heldOut);
    part("compare").disabled = !away && !views[shown].photo;
  }

  function go(number) {
    shown = (number + views.length) % views.length;
    away = false;
    stage.jump(views[shown]);
    if (comparing) compare(Boolean(views[shown].photo));
    label();
  }

  /** The photo's half of the frame is right of the border. */
  function place() {
    if (!comparing) return;
    const frame = stage.frame(), photo = part("photo");
    Object.assign(photo.style, {
      left: `${frame.left}px`, top: `${frame.top}px`, width: `${frame.width}px`, height: `${frame.height}px`,
    });
    photo.style.setProperty("--border", `${100 * border}%`);
    photo.classList.toggle("ready", !stage.travelling());
  }

  function compare(wanted) {
    comparing = wanted && shown >= 0 && Boolean(views[shown].photo);
    part("photo").hidden = !comparing;
    part("compare").setAttribute("aria-pressed", String(comparing));
    document.body.classList.toggle("comparing", comparing);
    stage.fit(comparing);
    if (!comparing) return;
    part("picture").src = views[shown].photo;
    if (away) go(shown);
    place();
  }

  function slide(x) {
    const frame = stage.frame();
    border = clamp((x - frame.left) / frame.width, 0, 1);
    place();
  }

  function dragging() {
    const photo = part("photo");
    photo.addEventListener("pointerdown", (event) => {
      photo.setPointerCapture(event.pointerId);
      slide(event.clientX);
    });
    photo.addEventListener("pointermove", (event) => event.buttons && slide(event.clientX));
    photo.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (!by) return;
      event.stopPropagation();
      event.preventDefault();
      border = clamp(border + by, 0, 1);
      place();
    });
  }

  const reset = () => (views.length ? go(scene.first) : stage.jump(scene.start));
  const help = (wanted) => (wanted ? part("help").showModal() : part("help").close());
  const full = () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen());
  const keys = {
    KeyR: reset,
    KeyC: () => compare(!comparing),
    KeyF: () => part("full").hidden || full(),
    KeyH: () => help(!part("help").open),
    Comma: () => views.length && go(shown - 1),
    Period: () => views.length && go(shown + 1),
  };

  part("previous").onclick = keys.Comma;
  part("next").onclick = keys.Period;
  part("compare").onclick = keys.KeyC;
  part("reset").onclick = reset;
  part("full").onclick = full;
  part("info").onclick = () => help(true);
  part("help").addEventListener("click", (event) => event.target === part("help") && help(false));
  part("shut").onclick = () => help(false);
  dragging();
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const wanted = event.key === "?" ? keys.KeyH : keys[event.code];
    if (wanted) wanted();
  });
  stage.listen((what) => {
    if (what === "moved" && !away) {
      away = true;
      compare(false);
      label();
    }
    if (what === "drawn") place();
  });
  label();
  return { go, compare };
}

/** The veil over everything until the first picture, and the sentence where there will be none. */
export const veil = {
  progress: (text, share) => {
    part("stage-name").textContent = text;
    part("bar").style.setProperty("--share", `${Math.round(100 * share)}%`);
  },
  lift: () => {
    part("veil").classList.add("gone");
    document.body.classList.add("open");
  },
  say: (sentence) => {
    part("veil").classList.remove("gone");
    part("veil").classList.add("failed");
    part("stage-name").textContent = sentence;
  },
};
