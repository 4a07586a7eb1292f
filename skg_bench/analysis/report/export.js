"use strict";
// Figures as CSV, SVG and PNG, tables as CSV, made on the spot: nothing is fetched and nothing is sent.
(() => {
  const SCALE = 3; // pixels of a PNG to a unit of its figure
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-style", "text-anchor"];
  function save(name, url) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name.replace(/[^\w.-]+/g, "_");
    link.click();
  }
  function field(text) {
    const plain = text.replace(/\s+/g, " ").trim().replace(/^−(?=[\d$.])/, "-").replace(/^–$/, "");
    const safe = /^[=+@-]/.test(plain) && !/^[+-][\d$.]/.test(plain) ? `'${plain}` : plain; // no formula in a spreadsheet
    return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }
  const csv = (rows) => rows.map((row) => row.map(field).join(",") + "\r\n").join("");
  const saveCsv = (name, rows) => save(`${name}.csv`, `data:text/csv;charset=utf-8,\ufeff${encodeURIComponent(csv(rows))}`);

  function tableRows(table) {
    const headings = [...table.tHead.rows[0].cells], body = [...table.tBodies].flatMap((b) => [...b.rows]).filter((r) => r.cells.length > 1);
    const parts = (cell) => { // a cell's text, and its interval if that stands in an element of its own
      const copy = cell.cloneNode(true), interval = copy.querySelector("span.interval");
      for (const aside of [interval, ...copy.querySelectorAll("small")]) aside?.remove();
      return [copy.textContent, interval?.textContent ?? ""];
    };
    const ranged = (n) => body.some((row) => row.cells[n]?.querySelector("span.interval"));
    const columns = headings.flatMap((h, n) => (h.matches(".wide, .spark") ? [] : Array.from({ length: h.colSpan }, (_, k) => n + k)));
    const name = (n) => (headings[n] ? headings[n].textContent : "interval");
    return [columns.flatMap((n) => (ranged(n) ? [name(n), `${name(n)}: interval`] : [name(n)])),
      ...body.map((row) => columns.flatMap((n) => parts(row.cells[n]).slice(0, ranged(n) ? 2 : 1)))];
  }

  function standalone(svg) { // the figure with the styles that the page gives it, on the page's paper
    const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
    const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]), style = getComputedStyle(svg);
    from.forEach((element, n) => {
      const shown = getComputedStyle(element);
      if (shown.display === "none") { to[n].setAttribute("data-hidden", ""); return; }
      for (const name of STYLES) to[n].setAttribute(name, shown.getPropertyValue(name));
      for (const name of ["class", "tabindex"]) to[n].removeAttribute(name);
    });
    for (const hidden of copy.querySelectorAll("[data-hidden], [x1='-9']")) hidden.remove();
    for (const link of copy.querySelectorAll("a")) link.replaceWith(...link.childNodes);
    for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": style.fontFamily })) copy.setAttribute(name, value);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ width, height, fill: getComputedStyle(document.documentElement).backgroundColor })) paper.setAttribute(name, value);
    copy.prepend(paper);
    return { width, height, url: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}` };
  }
  async function savePng(name, svg) {
    const { width, height, url } = standalone(svg), image = new Image(), canvas = document.createElement("canvas");
    image.src = url;
    await image.decode();
    [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    save(`${name}.png`, canvas.toDataURL("image/png"));
  }

  function toolbar(of, actions) {
    const bar = document.createElement("div");
    bar.className = "export";
    for (const [words, action] of actions) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.setAttribute("aria-label", `Save ${of} as ${words}`);
      button.addEventListener("click", action);
      bar.append(button);
    }
    return bar;
  }
  const charts = new Map(JSON.parse(document.getElementById("figures-data").textContent).charts.map((c) => [c.id, c]));
  function chartRows({ axis, positions, series, ceilings }) {
    const on = new Set([...document.querySelectorAll("input[name=arm]:checked")].map((box) => box.value));
    const lines = [...series.filter((s) => on.has(s.name)), ...ceilings], text = (v) => (v === null ? "" : String(v));
    return [["arm", axis, "mean", "low", "high"], ...lines.flatMap((s) => positions.map((p, i) => [s.name, ...[p, s.mean[i], s.low[i], s.high[i]].map(text)]))];
  }
  for (const figure of document.querySelectorAll("figure:has(svg.chart)")) {
    const svg = figure.querySelector("svg.chart"), name = figure.id || figure.closest("[data-table]").dataset.table, chart = charts.get(figure.id);
    figure.append(toolbar(figure.querySelector("h3").textContent, [
      ...(chart ? [["CSV", () => saveCsv(name, chartRows(chart))]] : []),
      ["SVG", () => save(`${name}.svg`, standalone(svg).url)],
      ["PNG", () => savePng(name, svg)]]));
  }
  for (const table of document.querySelectorAll("main table.table[data-name]")) {
    const { name } = table.dataset;
    table.after(toolbar(`the table ${name}`, [["CSV", () => saveCsv(name, tableRows(table))]]));
  }
})();
