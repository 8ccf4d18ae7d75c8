"use strict";
// Plays a list of moments: space plays and pauses, the arrows go step by step. The page is whole without this.
// `show(index)` draws a moment; it may be called with any, in any order. `say(index)` returns where that is, in words.
const player = (walk, show, say) => {
  const range = walk.querySelector("input");
  const [button, place] = [".play", ".place"].map((name) => walk.querySelector(name));
  let times = [0];  // of each moment, on the slider
  let waits = [0];  // seconds until the next moment; Infinity: until the reader goes on
  let at = 0, playing = false, due = 0, timer = 0;

  const last = () => times.length - 1;
  const draw = () => {
    show(at);
    range.value = times[at];
    place.textContent = say(at);
    range.setAttribute("aria-valuetext", place.textContent);
    button.textContent = playing ? "Pause" : at === last() ? "Again" : "Play";
  };
  const wait = () => {
    clearTimeout(timer);
    if (playing && due < Infinity) timer = setTimeout(tick, due - performance.now());
  };
  const tick = () => {
    const now = performance.now();
    if (now - due > 1000) due = now;  // nobody looked: the page was hidden
    while (now >= due && at < last()) {
      at += 1;
      due += 1000 * waits[at];
    }
    playing = at < last();
    draw();
    wait();
  };
  const play = (from = at) => {
    at = from;
    playing = true;
    due = performance.now() + 1000 * waits[at];
    draw();
    wait();
  };
  const go = (index) => {
    playing = false;
    at = Math.min(Math.max(index, 0), last());
    draw();
    wait();
  };
  const toggle = () => {
    if (playing && due === Infinity) play(at + 1);  // it waits for the reader, who asks
    else if (playing) go(at);
    else play(at === last() ? 0 : at);
  };
  const nearest = (time) => times.reduce((best, one, index) => (one <= time ? index : best), 0);

  button.addEventListener("click", toggle);
  walk.querySelector(".back").addEventListener("click", () => go(at - 1));
  walk.querySelector(".on").addEventListener("click", () => go(at + 1));
  range.addEventListener("input", () => go(nearest(Number(range.value))));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const pressed = { " ": toggle, ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1) }[event.key];
    if (!pressed || (event.key === " " && event.target.matches("button, summary"))) return;
    event.preventDefault();
    pressed();
  });
  return {
    go, play,
    get at() { return at; },
    get playing() { return playing; },
    set(newTimes, newWaits) {
      [times, waits] = [newTimes, newWaits];
      range.max = times[last()];
      at = Math.min(at, last());
    },
    // Plays by itself, unless the reader's system asks for no motion.
    begin(index) {
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) go(index);
      else play(index);
    },
  };
};
const written = (spans, steps) => spans.forEach((span, index) => {
  span.classList.toggle("unwritten", index >= steps);
  span.classList.toggle("here", index === steps - 1);
});
