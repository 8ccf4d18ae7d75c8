"use strict";
// The page is whole without this: it only lets one walk through the steps that the tables list.
for (const answer of document.querySelectorAll(".walkable")) {
  const spans = [...answer.querySelectorAll(".answer > span")];
  const rows = [...answer.querySelectorAll("tbody > tr")];
  const range = answer.querySelector("input");
  const place = answer.querySelector(".place");
  const heads = [...answer.querySelectorAll("thead th")].slice(1);

  const show = () => {
    const here = Number(range.value);
    spans.forEach((span, index) => {
      span.classList.toggle("ahead", index >= here);
      span.classList.toggle("here", index === here - 1);
    });
    place.textContent = `step ${here} of ${rows.length}`;
    range.setAttribute("aria-valuetext", place.textContent);
    const list = document.createElement("dl");
    list.className = "known";
    if (here > 0) {
      const cells = [...rows[here - 1].children].slice(1);
      cells.forEach((cell, index) => {
        const name = document.createElement("dt");
        name.textContent = heads[index].textContent;
        const value = document.createElement("dd");
        value.append(...[...cell.cloneNode(true).childNodes]);
        list.append(name, value);
      });
    }
    answer.querySelector(".known").replaceWith(list);
  };

  range.addEventListener("input", show);
  spans.forEach((span, index) => span.addEventListener("click", () => {
    range.value = index + 1;
    range.focus({ preventScroll: true });
    show();
  }));
  show();
}
document.documentElement.classList.add("live");
