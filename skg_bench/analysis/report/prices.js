"use strict";
// The price of a wrong answer, by a slider: a hit gains what it saves, less the price of the wrong answers it adds.
(() => {
  const slider = document.getElementById("price-of-wrong");
  if (!slider) return;
  const largest = Number(slider.dataset.largest), words = document.getElementById("price-words");
  const money = (price) => {
    const amount = price.toLocaleString("en-US", { maximumSignificantDigits: 3 });
    return slider.dataset.unit === "$" ? `$${amount}` : `${amount} calls of the model`;
  };
  function show() {
    const price = largest * (slider.value / slider.max) ** 3; // fine steps for low prices
    words.textContent = money(price);
    slider.setAttribute("aria-valuetext", money(price));
    for (const cell of document.querySelectorAll("[data-saving]")) {
      const [saving, low, high] = ["saving", "low", "high"].map((name) => Number(cell.dataset[name]));
      const verdict = saving - price * high > 0 ? "pays" : saving - price * low < 0 ? "does not pay" : "open";
      const tag = cell.querySelector(".tag");
      tag.textContent = verdict;
      tag.className = `tag ${{ pays: "good", "does not pay": "bad", open: "plain" }[verdict]}`;
    }
  }
  slider.addEventListener("input", show);
  show();
})();
