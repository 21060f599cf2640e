"use strict";
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  function stored(value) {
    try {
      if (value) { localStorage.setItem("splatmeter-theme", value); }
      return localStorage.getItem("splatmeter-theme");
    } catch (problem) { return null; }
  }
  function dark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function name() {
    button.textContent = dark() ? "Light theme" : "Dark theme";
    button.setAttribute("aria-pressed", String(dark()));
  }
  var before = stored();
  if (before === "dark" || before === "light") { root.setAttribute("data-theme", before); }
  button.hidden = false;
  button.addEventListener("click", function () {
    var next = dark() ? "light" : "dark";
    root.setAttribute("data-theme", next);
    stored(next);
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  function unfold() {
    var target = location.hash && document.getElementById(location.hash.slice(1));
    var fold = target && target.closest("details");
    if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", unfold);
  unfold();

  var box = document.getElementById("pictures");
  if (!box) { return; }
  var view = document.getElementById("view"), left = document.getElementById("left");
  var right = document.getElementById("right"), slider = document.getElementById("cut");
  var difference = document.getElementById("difference");
  var frames = Array.prototype.slice.call(box.querySelectorAll(".compare"));
  function cut() {
    var share = slider.value + "%";
    frames.forEach(function (frame) { frame.style.setProperty("--cut", share); });
    slider.setAttribute("aria-valuetext", slider.value + " % from the left");
  }
  function show() {
    frames.forEach(function (frame, number) {
      frame.hidden = number !== Number(view.value);
      frame.classList.toggle("difference", difference.checked);
      Array.prototype.forEach.call(frame.querySelectorAll("img"), function (image) {
        var layer = image.getAttribute("data-layer");
        image.classList.toggle("left", layer === left.value);
        image.classList.toggle("right", layer === right.value && layer !== left.value);
      });
      frame.querySelector(".l").textContent = left.options[left.selectedIndex].text;
      frame.querySelector(".r").textContent = right.options[right.selectedIndex].text;
    });
  }
  function follow(event) {
    if (event.type === "pointermove" && event.pointerType === "mouse" && !event.buttons) { return; }
    var place = event.currentTarget.getBoundingClientRect();
    var share = 100 * (event.clientX - place.left) / place.width;
    slider.value = String(Math.max(0, Math.min(100, share)));
    cut();
  }
  frames.forEach(function (frame) {
    frame.addEventListener("pointerdown", follow);
    frame.addEventListener("pointermove", follow);
    frame.addEventListener("dragstart", function (event) { event.preventDefault(); });
  });
  [view, left, right, difference].forEach(function (control) { control.addEventListener("change", show); });
  slider.addEventListener("input", cut);
  show();
  cut();
})();
