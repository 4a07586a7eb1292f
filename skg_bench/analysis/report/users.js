"use strict";
// One user at a time: a strip of weeks, filters, and thirty turns of the timeline. Texts are only ever textContent.
(() => {
  const panel = document.getElementById("person");
  const rows = [...document.querySelectorAll("#users tbody tr")];
  if (!panel || !rows.length) return;
  const settings = JSON.parse(document.getElementById("users-data").textContent);
  const PAGE = 30, DAY = 86400, WEEK = 7 * DAY, FIRST_MONDAY = Date.UTC(2026, 0, 5) / 1000;
  const RATINGS = ["ok", "partial", "miss"];
  const OFFERS = ["accepted", "named badly", "declined"];
  const OUTCOMES = { H: ["skill", "right"], h: ["skill", "wrong"], L: ["LLM", "right"], l: ["LLM", "wrong"], X: ["skill", "not known"], x: ["LLM", "not known"] };
  const FINE = settings.judged ? "right" : "not known to be wrong", SHADE = settings.judged ? "right" : "unknown";
  let person = null;

  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null) made.setAttribute(key, value);
    }
    made.append(...children.filter((c) => c !== null && c !== undefined));
    return made;
  }
  const permille = (v) => (v === null || v === undefined ? "–" : (v / 1000).toFixed(3));
  const utc = { timeZone: "UTC" };
  const dayOf = (s) => new Date(s * 1000).toLocaleDateString("en-GB", { ...utc, weekday: "long", day: "numeric", month: "long" });
  const clock = (s) => new Date(s * 1000).toISOString().slice(11, 16);
  const span = (s) => (s < 3600 ? `${Math.max(1, Math.round(s / 60))} min` : s < 2 * DAY ? `${Math.round(s / 3600)} h` : `${Math.round(s / DAY)} days`);
  const word = (p, i) => (i < 0 ? null : p.words[i]);

  const FILTERS = [
    ["hit", "Answered by a skill", (p, i) => p.hit[i] === 1],
    ["llm", "Answered by the LLM", (p, i) => p.hit[i] === 0],
    ["wrong", settings.judged ? "Wrong (truth)" : "Known to be wrong", (p, i) => p.correct[i] === 0],
    ["learned", "Learned", (p, i) => p.changes.has(p.turn[i])],
    ["offer", "Asked to name a skill", (p, i) => p.offer[i] >= 0],
    ["unhappy", "Rated partial or miss", (p, i) => p.rating[i] > 0],
  ];

  function load(id) {
    const p = JSON.parse(document.getElementById(`user-${id}`).textContent);
    const start = Date.parse(p.start + "Z") / 1000;
    p.clock = p.time.map((t) => start + t);
    p.week = p.clock.map((t) => Math.floor((t - FIRST_MONDAY) / WEEK));
    p.operations = new Map();
    for (const u of p.updates) p.operations.set(u[0], [...(p.operations.get(u[0]) || []), u]);
    // counters change at nearly every rated use; only new or changed entries count as learned
    p.changes = new Set(p.updates.filter((u) => u[1] !== "TAG").map((u) => u[0]));
    return { ...p, id, filters: new Set(), search: "", page: 0, index: p.turn.map((_, i) => i) };
  }

  // ------------------------------------------------------------------------------------------ one turn
  function reason(p, i) {
    const best = p.shortlist[i][0], threshold = settings.threshold, name = word(p, p.skill[i]);
    const odds = p.propensity[i] < 1000 ? ` The policy makes this choice with probability ${permille(p.propensity[i])}.` : "";
    const stored = p.source[i] < 0 ? "" : ` It returned the answer stored at turn ${p.source_turn[i]}, then given to “${word(p, p.source[i])}”.`;
    if (p.max_sim[i] === null) return (p.hit[i] ? `An earlier answer was given again.${stored}` : "The LLM answered.") + odds; // no skillbook
    if (p.explored[i]) return (p.hit[i] ? `Chosen at random, to learn: skill ${name}.${stored}` : "Sent to the LLM at random, to learn.") + odds;
    if (p.hit[i]) {
      const rule = threshold === null ? "" : `, at or above the threshold of ${threshold.toFixed(2)}`;
      const how = p.prompted[i] ? " The LLM answered with the skill's prompt." : stored;
      return `Skill ${name} had the best combined score, ${permille(p.score[i])}${rule}.${how}${odds}`;
    }
    if (!best) return "No skill was close: the shortlist was empty, so the LLM answered." + odds;
    const rule = threshold === null || best[4] >= threshold * 1000 ? "" : `, below the threshold of ${threshold.toFixed(2)}`;
    return `The best candidate, ${word(p, best[0])}, scored ${permille(best[4])}${rule}, so the LLM answered.${odds}`;
  }

  function shortlist(p, i) {
    if (!p.shortlist[i].length) return null;
    const head = ["Skill", "Similarity", "Preference", "Reranker", "Combined"];
    const weights = [null, settings.weights?.similarity, settings.weights?.preference, settings.weights?.score, null];
    const bar = (value, chosen) => {
      const track = el("span", { class: chosen ? "bar chosen" : "bar" }, el("i", { style: `width:${Math.min(100, (value || 0) / 10)}%` }));
      if (settings.threshold !== null) track.append(el("b", { style: `left:${settings.threshold * 100}%` }));
      return track;
    };
    return el("div", { class: "scroll" }, el("table", { class: "shortlist" },
      el("thead", {}, el("tr", {}, ...head.map((h, n) => el("th", { scope: "col" }, h, weights[n] === undefined || weights[n] === null ? null : el("small", {}, ` × ${weights[n]}`))))),
      el("tbody", {}, ...p.shortlist[i].map(([name, similarity, preference, score, combined, chosen]) =>
        el("tr", { class: chosen ? "chosen" : null },
          el("th", { scope: "row" }, word(p, name), chosen ? el("small", {}, " chosen") : null),
          el("td", {}, permille(similarity)), el("td", {}, permille(preference)), el("td", {}, permille(score)),
          el("td", {}, permille(combined), bar(combined, chosen)))))));
  }

  function learned(p, i) {
    const operations = p.operations.get(p.turn[i]) || [];
    if (!operations.length) return null;
    return el("ul", { class: "operations" }, ...operations.map(([, op, skill, example, rating, uses, why]) =>
      el("li", {}, el("code", {}, op), " ", el("b", {}, word(p, skill)), [
        uses ? "one use counted" : "", rating < 0 ? "" : `rating ${RATINGS[rating]}`, example < 0 ? "" : `example “${word(p, example)}”`,
      ].filter((text) => text).map((text) => `, ${text}`).join(""), el("small", {}, ` (${word(p, why)})`))));
  }

  function elsewhere(p, i) {
    return el("ul", { class: "elsewhere" }, ...Object.entries(p.others).filter(([, o]) => OUTCOMES[o[i]]).map(([arm, o]) => {
      const [who, how] = OUTCOMES[o[i]];
      return el("li", { class: how }, el("b", {}, arm), ` ${who}, ${how}`);
    }));
  }

  function part(title, ...children) {
    const filled = children.filter((c) => c !== null);
    return filled.length ? el("section", {}, el("h5", {}, title), ...filled) : null;
  }

  function details(p, i) {
    const type = word(p, p.type[i]), n = p.answerable[i];
    const rated = p.rating[i] < 0 ? (settings.judged ? "The user said nothing." : "The log holds no rating of this answer.")
      : `The user rated it ${RATINGS[p.rating[i]]}${p.late[i] > 0 ? `, ${span(p.late[i])} later` : ""}.`;
    const offered = p.offer[i] < 0 ? null : el("p", {}, `Asked to name a skill: ${OFFERS[p.offer[i]]}.`);
    const how = p.correct[i] === null ? "Whether the answer was right is not known." : `The answer was ${p.correct[i] ? "right" : "wrong"}.`;
    const about = type === null ? "" : `Really about ${type} (intent ${word(p, p.intent[i])}).`;
    const truth = !settings.judged ? (about || "What it was about is not known either.") : type === null ? "A one-off: no earlier answer can hold."
      : `Really about ${type} (intent ${word(p, p.intent[i])}). ${n ? `${n} earlier answer${n > 1 ? "s" : ""} of this user still held.` : "No earlier answer of this user held."}`;
    return el("div", { class: "why" },
      part("Answered", el("p", {}, reason(p, i)), shortlist(p, i)),
      part("Rated", el("p", {}, rated), offered),
      part("Learned", learned(p, i)),
      part("Truth, never shown to an arm", el("p", { class: "truth" }, `${how} ${truth}`)),
      part(settings.judged ? "The same message in the other arms (truth)" : "The same message in the other arms", elsewhere(p, i)));
  }

  function turn(p, i) {
    const body = el("div", {});
    const rating = p.rating[i] < 0 ? "" : RATINGS[p.rating[i]];
    return el("details", { class: "turn", id: `u${p.id}-t${p.turn[i]}`, ontoggle: (e) => { if (e.target.open && !body.hasChildNodes()) body.append(details(p, i)); } },
      el("summary", {},
        el("time", {}, clock(p.clock[i])),
        el("span", { class: "message" }, word(p, p.message[i])),
        el("span", { class: p.hit[i] ? "by skill" : "by" }, p.hit[i] ? word(p, p.skill[i]) : "LLM"),
        el("span", { class: `said ${rating}` }, rating, p.late[i] > 0 && rating ? el("small", {}, " later") : null),
        el("span", { class: p.correct[i] === null ? "unknown" : p.correct[i] ? "right" : "wrong" }, p.correct[i] === null ? "not known" : p.correct[i] ? "✓ right" : "✗ wrong"),
        el("span", { class: "grew" }, p.changes.has(p.turn[i]) ? "+ learned" : "")),
      body);
  }

  // ------------------------------------------------------------------------------------- strip of weeks
  function strip(p) {
    const weeks = Math.max(...p.week) + 1, counts = Array.from({ length: weeks }, () => [0, 0, 0, 0]), grown = new Array(weeks).fill(0);
    p.turn.forEach((t, i) => {
      const fine = p.correct[i] !== 0; // of a log: not known to be wrong
      counts[p.week[i]][p.hit[i] ? (fine ? 0 : 1) : fine ? 2 : 3] += 1;
      if (p.changes.has(t)) grown[p.week[i]] += 1;
    });
    const most = Math.max(1, ...counts.map((c) => c[0] + c[1] + c[2] + c[3]));
    return el("div", { class: "strip", role: "group", "aria-label": "Weeks; choose one to go there" }, ...counts.map((c, w) => {
      const total = c[0] + c[1] + c[2] + c[3];
      const words = `Week ${w + 1}: ${total} turns, ${c[0]} hits ${FINE}, ${c[1]} hits wrong, ${c[2]} LLM ${FINE}, ${c[3]} LLM wrong, ${grown[w]} learned`;
      return el("button", { type: "button", title: words, "aria-label": words, disabled: !total, onclick: () => goto(w) },
        ...["llm wrong", `llm ${SHADE}`, "hit wrong", `hit ${SHADE}`].map((kind, n) => el("i", { class: kind, style: `height:${(100 * c[3 - n]) / most}%` })));
    }));
  }
  function goto(week) {
    const first = person.index.findIndex((i) => person.week[i] >= week);
    person.page = Math.floor(Math.max(first, 0) / PAGE);
    list(first >= 0 ? person.turn[person.index[first]] : null);
  }

  // --------------------------------------------------------------------------------------- the timeline
  function filter() {
    const wanted = FILTERS.filter(([key]) => person.filters.has(key)), text = person.search.toLowerCase();
    person.index = person.turn.map((_, i) => i).filter((i) => wanted.every(([, , test]) => test(person, i))
      && (!text || word(person, person.message[i]).toLowerCase().includes(text) || (word(person, person.skill[i]) || "").toLowerCase().includes(text)));
    person.page = 0;
    list(null);
  }
  function list(focus) {
    const p = person, from = p.page * PAGE, some = p.index.slice(from, from + PAGE), out = [];
    let day = "";
    for (const i of some) {
      const today = `Week ${p.week[i] + 1}, ${dayOf(p.clock[i])}`;
      if (today !== day) out.push(el("h4", {}, (day = today)));
      out.push(turn(p, i));
    }
    if (!some.length) out.push(el("p", { class: "note" }, "No turn matches these filters."));
    panel.querySelector(".timeline").replaceChildren(...out);
    const pages = Math.max(1, Math.ceil(p.index.length / PAGE));
    panel.querySelector(".count").textContent = p.index.length ? `${(from + 1).toLocaleString("en-US")}–${(from + some.length).toLocaleString("en-US")} of ${p.index.length.toLocaleString("en-US")} turns` : "0 turns";
    for (const [name, off] of [["earlier", p.page === 0], ["later", p.page >= pages - 1]]) for (const b of panel.querySelectorAll(`.${name}`)) b.disabled = off;
    if (focus !== null) document.getElementById(`u${p.id}-t${focus}`)?.scrollIntoView({ block: "center" });
  }
  function turnPage(step) {
    person.page += step;
    list(null);
    panel.querySelector(".controls").scrollIntoView({ block: "start" });
  }
  function pager() {
    return el("div", { class: "pager" },
      el("button", { type: "button", class: "earlier", onclick: () => turnPage(-1) }, "← Earlier"),
      el("button", { type: "button", class: "later", onclick: () => turnPage(1) }, "Later →"));
  }

  function open(id, focus) {
    person = load(id);
    const row = rows.find((r) => r.dataset.user === String(id));
    for (const r of rows) {
      r.classList.toggle("open", r === row);
      r.querySelector("button").setAttribute("aria-expanded", String(r === row));
    }
    const cut = person.turn.length < person.n
      ? el("p", { class: "note" }, `Shown are the first and the last turns, ${person.turn.length.toLocaleString("en-US")} of ${person.n.toLocaleString("en-US")}. All of them: `, el("code", {}, row.dataset.command)) : null;
    const count = (test) => person.turn.reduce((n, _, i) => n + test(person, i), 0).toLocaleString("en-US");
    const filters = FILTERS.map(([key, name, test]) => el("button", {
      type: "button", class: "filter", "data-filter": key, "aria-pressed": "false",
      onclick: (e) => {
        const on = !person.filters.has(key);
        person.filters[on ? "add" : "delete"](key);
        e.currentTarget.setAttribute("aria-pressed", String(on));
        filter();
      } }, name, el("small", {}, ` ${count(test)}`)));
    const parts = [
      el("header", {}, el("h3", { tabindex: "-1" }, `${settings.person} ${id}`), el("p", {}, row.dataset.why)),
      cut,
      strip(person),
      settings.judged
        ? el("p", { class: "key" }, el("i", { class: "hit right" }), "skill, right ", el("i", { class: "hit wrong" }), "skill, wrong ", el("i", { class: "llm right" }), "LLM, right ", el("i", { class: "llm wrong" }), "LLM, wrong (truth)")
        : el("p", { class: "key" }, el("i", { class: "hit unknown" }), "skill, not known whether right ", el("i", { class: "hit wrong" }), "skill, wrong: another intent ", el("i", { class: "llm unknown" }), "LLM, as in the log or not known"),
      el("div", { class: "controls" }, ...filters,
        el("input", { type: "search", placeholder: "Search messages and skills", "aria-label": "Search messages and skills", oninput: (e) => { person.search = e.target.value; filter(); } })),
      el("div", { class: "bar-top" }, el("span", { class: "count", role: "status" }), pager()),
      el("div", { class: "timeline" }), pager()];
    panel.replaceChildren(...parts.filter((part) => part !== null));
    panel.hidden = false;
    list(null);
    if (focus !== undefined) {
      person.page = Math.floor(Math.max(0, person.turn.indexOf(focus)) / PAGE);
      list(focus);
      const found = document.getElementById(`u${id}-t${focus}`);
      if (found) found.open = true;
    }
  }
  for (const row of rows) row.addEventListener("click", () => {
    open(row.dataset.user);
    panel.querySelector("h3").focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  });
  function follow() { // #u17-t204, the id of a message in the logs, opens that turn
    const [, user, at] = location.hash.match(/^#u(\d+)-t(\d+)$/) || [];
    if (user && document.getElementById(`user-${user}`)) open(user, Number(at));
  }
  addEventListener("hashchange", follow);
  if (location.hash) follow();
  if (!person) open((rows.find((row) => row.dataset.pick === "drawn") || rows[0]).dataset.user);
})();
