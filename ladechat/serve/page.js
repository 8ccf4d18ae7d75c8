// Keys go to the terminal, without a click: when its app has begun to draw, and when its window is chosen again.
"use strict";
const takeKeys = () => document.querySelector("#terminal textarea")?.focus();
addEventListener("DOMContentLoaded", () => {
  new MutationObserver(takeKeys).observe(document.body, { attributeFilter: ["class"] });
});
addEventListener("focus", takeKeys);
