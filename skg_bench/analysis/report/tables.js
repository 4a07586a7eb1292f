"use strict";
// A column's heading sorts the rows of its table, by pointer and by keyboard; rows of a group stay in it.
(() => {
  const NUMBER = /^[<+]?\s*([−-]?)\s*\$?\s*([\d,]*\.?\d+)/;
  function value(row, column) { // the mean stands first in its cell, the interval in an element of its own
    const cell = row.cells[column], first = cell.firstElementChild;
    const text = (cell.dataset.sort ?? (first?.matches(".interval, small") ? cell.firstChild.textContent : cell.textContent)).trim();
    const [, sign, digits] = text.match(NUMBER) || [];
    return { text, number: digits ? Number(digits.replaceAll(",", "")) * (sign ? -1 : 1) : null, known: !["", "–"].includes(text) };
  }
  function compare(a, b, ascending, numbers) {
    if (a.known !== b.known) return a.known ? -1 : 1; // nothing measured comes last, whichever way
    const order = numbers ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
    return ascending ? order : -order;
  }
  function sort(table, heading) {
    const column = heading.cellIndex, rows = [...table.querySelectorAll("tbody tr:not(:has([colspan]))")];
    const values = new Map(rows.map((row) => [row, value(row, column)])), known = [...values.values()].filter((v) => v.known);
    const numbers = column > 0 && known.every((v) => v.number !== null), now = heading.getAttribute("aria-sort");
    const ascending = now ? now === "descending" : !numbers;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    for (const body of table.tBodies) {
      const some = [...body.rows].filter((row) => values.has(row));
      body.append(...some.sort((a, b) => compare(values.get(a), values.get(b), ascending, numbers)));
    }
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.matches(".wide, .spark") || heading.colSpan > 1) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }
})();
