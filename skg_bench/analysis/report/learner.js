"use strict";
// The arm that title, figures, users and losses speak of. What they say of the others waits in templates beside them.
(() => {
  const select = document.getElementById("learner");
  if (!select) return;
  const first = select.value, parts = [...document.querySelectorAll("[data-part]:not(template)")];
  const spare = [...document.querySelectorAll("template[data-part]")];
  const kept = new Map(parts.map((part) => [part, [...part.childNodes]])); // what the page was written with
  function choose(arm) {
    for (const part of parts) {
      const other = spare.find((template) => template.dataset.part === part.dataset.part && template.dataset.of === arm);
      part.replaceChildren(...(arm === first ? kept.get(part) : other ? [other.content.cloneNode(true)] : []));
      for (const heading of part.closest("table")?.querySelectorAll("[aria-sort]") ?? []) heading.removeAttribute("aria-sort");
    }
    for (const name of document.querySelectorAll("[data-learner]")) name.textContent = arm;
    for (const button of document.querySelectorAll("button[data-choose]")) button.setAttribute("aria-pressed", String(button.dataset.choose === arm));
    const falls = document.querySelector("select[data-tables=waterfall]");
    if (falls && [...falls.options].some((option) => option.value === arm)) {
      falls.value = arm;
      falls.dispatchEvent(new Event("change"));
    }
    const box = [...document.querySelectorAll("input[name=arm]")].find((b) => b.value === arm);
    if (box && !box.checked) box.click();
    document.dispatchEvent(new CustomEvent("learner", { detail: arm }));
  }
  select.addEventListener("change", () => choose(select.value));
  for (const button of document.querySelectorAll("button[data-choose]")) {
    button.addEventListener("click", () => {
      select.value = button.dataset.choose;
      choose(select.value);
    });
  }
})();
