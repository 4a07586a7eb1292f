"use strict";
// Arms on and off in all figures at once, and reading values off. Geometry and rounding follow chart.py.
(() => {
  const data = JSON.parse(document.getElementById("figures-data").textContent);
  const { width: W, height: H, left: L, right: R, top: T, bottom: B, keyLeft, keyColumns, keyWidth, keyRow, chars: CHARS } = data.geometry;
  const svgNS = "http://www.w3.org/2000/svg";
  const boxes = [...document.querySelectorAll("input[name=arm]")];
  const shown = () => new Set(boxes.filter((b) => b.checked).map((b) => b.value));

  const node = (tag, attributes, text) => {
    const made = document.createElementNS(svgNS, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const isShare = (unit) => unit === "share" || unit === "difference";
  function number(value, unit) {
    if (value === null) return "–";
    const size = Math.abs(value), lead = value < 0 ? "−" : "";
    if (isShare(unit)) return `${lead}${(size * 100).toFixed(1)}\u202f%`;
    if (unit === "usd") return `${lead}$${size.toFixed(5)}`;
    if (unit === "ms") return `${lead}${(size / 1000).toFixed(2)}\u202fs`;
    return lead + size.toFixed(unit === "utility" || unit === "calls" ? 3 : 1);
  }
  function tick(value, unit, step) {
    const [scale, after] = isShare(unit) ? [100, "\u202f%"] : unit === "ms" ? [0.001, " s"] : [1, ""];
    const digits = Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-9));
    const lead = (value < -step / 2 ? "−" : "") + (unit === "usd" ? "$" : "");
    return lead + (Math.abs(value) * scale).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + after;
  }
  function ticks(low, high) {
    const raw = Math.max(high - low, 1e-9) / 5, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.9999);
    const first = Math.floor(low / step + 1e-9), end = Math.max(Math.ceil(high / step - 1e-9), first + 1);
    return [Array.from({ length: end - first + 1 }, (_, i) => (first + i) * step), step];
  }
  function extent(series, unit) {
    let low = Infinity, high = -Infinity;
    for (const s of series) {
      const [mean, bottom, top] = [s.mean, s.low, s.high].map((t) => t.filter((v) => v !== null).sort((a, b) => a - b));
      const cut = Math.floor(top.length / 10);
      low = Math.min(low, ...mean, ...bottom.slice(cut));
      high = Math.max(high, ...mean, ...top.slice(0, top.length - cut));
    }
    if (low > high) return [0, 1];
    if (low > 0 && low < 0.6 * high) low = 0;
    if (high < 0 && high > 0.6 * low) high = 0;
    return [low, Math.max(high, low + (unit === "share" ? 0.02 : 1e-6))];
  }
  const across = (positions) => (position) => L + ((W - L - R) * (position - positions[0])) / Math.max(positions.at(-1) - positions[0], 1e-9);
  function path(positions, track, x, y) {
    const known = (i) => i >= 0 && i < track.length && track[i] !== null;
    return track.map((v, i) => {
      if (v === null) return "";
      const [px, py] = [x(positions[i]), y(v).toFixed(1)];
      if (!known(i - 1) && !known(i + 1)) return `M${(px - 2).toFixed(1)} ${py}L${(px + 2).toFixed(1)} ${py}`;
      return `${known(i - 1) ? "L" : "M"}${px.toFixed(1)} ${py}`;
    }).join("");
  }
  function band(positions, low, high, x, y) {
    const pieces = [[]];
    positions.forEach((_, i) => (low[i] === null || high[i] === null ? pieces.push([]) : pieces.at(-1).push(i)));
    const at = (track) => (i) => `${x(positions[i]).toFixed(1)} ${y(track[i]).toFixed(1)}`;
    return pieces.filter((p) => p.length)
      .map((p) => "M" + [...p.map(at(high)), ...[...p].reverse().map(at(low))].join("L") + "Z").join("");
  }
  function label(name, value, unit) {
    const text = number(value, unit), room = CHARS - text.length - 1;
    return `${name.length <= room ? name : name.slice(0, room - 1) + "…"} ${text}`;
  }
  function draw(chart, visible) {
    const { svg, positions, unit, x } = chart, on = chart.series.filter((s) => visible.has(s.name)), all = [...on, ...chart.ceilings];
    const main = on.filter((s) => s.css.split(" ").includes("main"));
    const banded = on.length <= 2 ? on : main.length ? main : on.slice(0, 1);
    const [marks, step] = ticks(...extent(all, unit));
    const y = (v) => H - B - ((H - T - B) * (v - marks[0])) / (marks.at(-1) - marks[0]);
    svg.querySelector(".grid").replaceChildren(...marks.flatMap((m) => {
      const line = node("line", { x1: L, x2: W - R, y1: y(m).toFixed(1), y2: y(m).toFixed(1) });
      if (Math.abs(m) < step / 2) line.setAttribute("class", "zero");
      return [line, node("text", { x: L - 6, y: (y(m) + 3.5).toFixed(1), "text-anchor": "end" }, tick(m, unit, step))];
    }));
    for (const group of svg.querySelectorAll(".ceiling[data-name]:not(.label)")) {
      const { mean } = chart.ceilings.find((c) => c.name === group.dataset.name);
      group.querySelector(".line").setAttribute("d", path(positions, mean, x, y));
      group.querySelector(".under").setAttribute("d", band(positions, mean.map((v) => (v === null ? null : marks[0])), mean, x, y));
    }
    for (const group of svg.querySelectorAll(".arm")) {
      const s = chart.series.find((c) => c.name === group.dataset.name);
      group.classList.toggle("off", !visible.has(s.name));
      group.classList.toggle("banded", banded.includes(s));
      group.querySelector(".line").setAttribute("d", path(positions, s.mean, x, y));
      group.querySelector(".band").setAttribute("d", band(positions, s.low, s.high, x, y));
    }
    const ends = all.map((s) => [s, s.mean.findLast((v) => v !== null)]).filter(([, v]) => v !== undefined)
      .sort(([a, v], [b, w]) => chart.ceilings.includes(a) - chart.ceilings.includes(b) || w - v);
    svg.setAttribute("viewBox", `0 0 ${W} ${H + keyRow * Math.ceil(ends.length / keyColumns)}`);
    const known = on.map((s) => s.mean.filter((v) => v !== null).length);
    const dashes = chart.axis === "week" && positions.length > 1 && known.length > 0 && Math.max(...known) < 2;
    const empty = svg.querySelector(".empty");
    empty.textContent = !all.length ? data.empty : dashes ? data.few : "";
    empty.setAttribute("y", dashes ? T + 22 : (T + H - B) / 2);
    svg.querySelector(".labels").replaceChildren(...ends.map(([s, value], n) => {
      const group = node("g", { class: `label ${s.css}`, "data-name": s.name });
      const left = keyLeft + keyWidth * (n % keyColumns), middle = H + keyRow * (Math.floor(n / keyColumns) + 0.5);
      group.append(
        node("path", { class: "line", d: `M${left} ${middle}h14` }),
        node("text", { x: left + 18, y: middle + 3.5 }, label(s.name, value, unit)),
      );
      return group;
    }));
  }

  const charts = data.charts.map((c) => ({ ...c, x: across(c.positions), svg: document.querySelector(`#${CSS.escape(c.id)} svg`) }));
  function redraw() {
    const visible = shown();
    for (const chart of charts) draw(chart, visible);
    for (const part of document.querySelectorAll("[data-arm]")) part.classList.toggle("off", !visible.has(part.dataset.arm));
  }
  for (const box of boxes) box.addEventListener("change", redraw);
  for (const button of document.querySelectorAll("button[data-show]")) {
    button.addEventListener("click", () => {
      const wanted = new Set(JSON.parse(button.dataset.show));
      for (const box of boxes) box.checked = wanted.has(box.value);
      redraw();
    });
  }
  for (const chip of document.querySelectorAll(".chip")) { // pointing at an arm lifts its lines out of the others
    const name = chip.querySelector("input").value;
    const lift = (on) => () => {
      document.body.classList.toggle("lifting", on);
      for (const g of document.querySelectorAll(".chart [data-name]")) g.classList.toggle("lifted", on && g.dataset.name === name);
    };
    for (const start of ["pointerenter", "focusin"]) chip.addEventListener(start, lift(true));
    for (const end of ["pointerleave", "focusout"]) chip.addEventListener(end, lift(false));
  }

  // ------------------------------------------------------------------------------------ reading values off
  const tip = document.getElementById("tip");
  let at = 0; // index into the positions of the chart that is read
  function cursors(chart, where) {
    for (const c of charts) {
      const x = chart && c.positions.length === chart.positions.length && c.axis === chart.axis ? where : -9;
      for (const end of ["x1", "x2"]) c.svg.querySelector(".cursor").setAttribute(end, x);
    }
  }
  function read(chart, index) {
    at = Math.min(Math.max(index, 0), chart.positions.length - 1);
    const where = chart.x(chart.positions[at]), visible = shown();
    cursors(chart, where.toFixed(1));
    const rows = [...chart.series.filter((s) => visible.has(s.name)), ...chart.ceilings].filter((s) => s.mean[at] !== null)
      .sort((a, b) => b.mean[at] - a.mean[at]);
    const head = document.createElement("caption"), body = document.createElement("tbody");
    head.textContent = `${chart.title}, ${chart.axis} ${chart.positions[at]}`;
    for (const s of rows) {
      const row = body.insertRow();
      row.className = s.css;
      row.insertCell().className = "swatch";
      row.insertCell().textContent = s.name;
      row.insertCell().textContent = number(s.mean[at], chart.unit);
      row.insertCell().textContent = s.low[at] === null ? "" : `${number(s.low[at], chart.unit)} to ${number(s.high[at], chart.unit)}`;
    }
    const table = document.createElement("table");
    table.append(head, body);
    tip.replaceChildren(table);
    tip.hidden = false;
    const box = chart.svg.getBoundingClientRect(), scale = box.width / W, middle = box.left + where * scale;
    const right = middle + 14, fits = right + tip.offsetWidth < document.documentElement.clientWidth;
    tip.style.left = `${(fits ? right : Math.max(middle - 14 - tip.offsetWidth, 4)) + scrollX}px`;
    tip.style.top = `${box.top + scrollY + T * scale}px`;
  }
  function leave() {
    tip.hidden = true;
    cursors(null);
  }
  for (const chart of charts) {
    const { svg, positions } = chart;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * W;
      if (x < L - 8 || x > W - R + 8) { leave(); return; }
      const far = positions.map((p) => Math.abs(chart.x(p) - x));
      read(chart, far.indexOf(Math.min(...far)));
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) read(chart, positions.length - 1); });
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, Home: -positions.length, End: positions.length }[event.key];
      if (event.key === "Escape") leave();
      if (move === undefined) return;
      event.preventDefault();
      read(chart, at + move);
    });
  }
})();
