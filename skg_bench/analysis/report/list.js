"use strict";
// Words and a button for each verdict leave out rows of the list.
(() => {
  const rows = [...document.querySelectorAll("#runs tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const words = document.querySelector("#words"), buttons = [...document.querySelectorAll("button.filter")];
  function choose() {
    const wanted = words.value.toLowerCase().split(/\s+/);
    const pressed = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.value);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !wanted.every((word) => text.includes(word)) || (pressed.length > 0 && !pressed.includes(row.dataset.group));
      shown += row.hidden ? 0 : 1;
    }
    document.querySelector("#shown").textContent = `${shown} of ${rows.length}`;
  }
  words.addEventListener("input", choose);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      choose();
    });
  }
  choose(); // a browser may keep the words when the page is loaded again
})();
