"use strict";
// A menu shows one of several tables or groups of figures.
for (const select of document.querySelectorAll("select[data-tables]")) {
  select.addEventListener("change", () => {
    for (const table of document.querySelectorAll(`[data-table^="${CSS.escape(select.dataset.tables)}-"]`)) {
      table.hidden = table.dataset.table !== `${select.dataset.tables}-${select.value}`;
    }
  });
}
