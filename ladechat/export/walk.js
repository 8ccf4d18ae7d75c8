"use strict";
// The page is whole without this: it only lets one walk through the steps that the tables list.
for (const answer of document.querySelectorAll(".walkable")) {
  const spans = [...answer.querySelectorAll(".answer > span")];
  const rows = [...answer.querySelectorAll("tbody > tr")];
  const names = [...answer.querySelectorAll("thead th")].map((head) => head.textContent);
  const range = answer.querySelector("input");
  const place = answer.querySelector(".place");
  const known = answer.querySelector(".known");

  const fact = (name, cell) => {
    const pair = document.createElement("div");
    const [term, value] = ["dt", "dd"].map((tag) => pair.appendChild(document.createElement(tag)));
    term.textContent = name;
    value.append(...cell.cloneNode(true).childNodes);
    return pair;
  };

  const show = (walking) => {
    const here = Number(range.value);
    spans.forEach((span, index) => {
      span.classList.toggle("ahead", index >= here);
      span.classList.toggle("here", walking && index === here - 1);
    });
    place.textContent = `${names[0]} ${here} of ${rows.length}`;
    range.setAttribute("aria-valuetext", place.textContent);
    const cells = here > 0 ? [...rows[here - 1].cells] : [];
    known.replaceChildren(...cells.map((cell, index) => fact(names[index], cell)).slice(1));
  };

  range.addEventListener("input", () => show(true));
  spans.forEach((span, index) => span.addEventListener("click", () => {
    range.value = index + 1;
    range.focus({ preventScroll: true });
    show(true);
  }));
  show(false);
}
document.documentElement.classList.add("live");
