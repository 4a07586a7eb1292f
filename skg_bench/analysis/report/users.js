"use strict";
// The turns of one user, or those behind a bar, thirty at a time; the part of the address behind # says which.
// Texts are only ever textContent.
(() => {
  const panel = document.getElementById("person");
  const rows = () => [...document.querySelectorAll("#users tbody tr")]; // other ones when another arm is chosen
  if (!panel || !rows().length) return;
  const settings = JSON.parse(document.getElementById("users-data").textContent);
  const PAGE = 30, DAY = 86400, WEEK = 7 * DAY, FIRST_MONDAY = Date.parse(`${settings.monday ?? "2026-01-05"}T00:00:00Z`) / 1000;
  const RATINGS = ["ok", "partial", "miss"];
  const TAG_RATINGS = [...RATINGS, ...RATINGS.map((rating) => `${rating} taken back`)];
  const OFFERS = ["accepted", "named badly", "declined"];
  const memory = (arm) => (settings.rules[arm]?.own_words ? "no LLM" : "memory"); // what its own words come from cannot be seen
  const OUTCOMES = { H: ["memory", "right"], h: ["memory", "wrong"], L: ["LLM", "right"], l: ["LLM", "wrong"], X: ["memory", "not known"], x: ["LLM", "not known"],
    S: ["memory", "same text as the log"], O: ["memory", "another text than the log"] };
  const [FINE, WRONG, SHADE] = settings.judged ? ["right", "wrong", "right"] : ["not for another intent", "for another intent", "unknown"];
  const loaded = new Map(); // users by arm and id, unpacked when first needed
  let chosen = settings.learner; // the arm whose users are shown
  let view = null; // { title, why, turns: [[user, index]], filters: those on offer, on: those pressed, search, page, index }

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
  const dayOf = (s) => new Date(s * 1000).toLocaleDateString("en-GB", { ...utc, weekday: "long", day: "numeric", month: "long", ...(settings.monday ? { year: "numeric" } : {}) });
  const clock = (s) => new Date(s * 1000).toISOString().slice(11, 16);
  const span = (s) => (s < 3600 ? `${Math.max(1, Math.round(s / 60))} min` : s < 2 * DAY ? `${Math.round(s / 3600)} h` : `${Math.round(s / DAY)} days`);
  const word = (p, i) => (i < 0 ? null : p.words[i]);
  const address = (parts) => `#${new URLSearchParams(parts)}`;

  // where the domain has words of its own for a turn, another script says what it is
  const outcome = settings.outcome ? outcomeView({ settings, el, word, permille, span, part, address }) : null;
  const filtersOf = (arm) => outcome?.filters ?? [
    ["hit", memory(arm) === "memory" ? "Answered from memory" : "Answered without the LLM", (p, i) => p.hit[i] === 1],
    ["llm", "Answered by the LLM", (p, i) => p.hit[i] === 0],
    ["wrong", settings.judged ? "Wrong (truth)" : "Given to another intent", (p, i) => p.correct[i] === 0],
    ...(settings.judged ? [] : [
      ["same", "Same text as the log", (p, i) => p.log.same_answer[i] === true],
      ["reworded", "Another text", (p, i) => p.log.same_answer[i] === false],
    ]),
    ["learned", "Learned", (p, i) => p.changes.has(p.turn[i])],
    ["offer", "Asked to name a skill", (p, i) => p.offer[i] >= 0],
    ["unhappy", "Rated partial or miss", (p, i) => p.rating[i] > 0],
  ];

  const rowOf = (id) => rows().find((row) => row.dataset.user === id);
  function load(id, arm = chosen) {
    const rules = settings.rules[arm], name = `${id}${rules.suffix}`;
    if (loaded.has(name)) return loaded.get(name);
    const p = JSON.parse(document.getElementById(`user-${name}`).textContent);
    const start = Date.parse(p.start + "Z") / 1000;
    p.clock = p.time.map((t) => start + t);
    p.week = p.clock.map((t) => Math.floor((t - FIRST_MONDAY) / WEEK));
    p.operations = new Map();
    for (const u of p.updates) p.operations.set(u[0], [...(p.operations.get(u[0]) || []), u]);
    // counters change at nearly every rated use; only new or changed entries count as learned
    p.changes = new Set(p.updates.filter((u) => u[1] !== "TAG").map((u) => u[0]));
    loaded.set(name, { ...p, id, arm, rules });
    return loaded.get(name);
  }

  // ------------------------------------------------------------------------------------------ one turn
  function reason(p, i) {
    const best = p.shortlist[i][0], threshold = p.rules.threshold, name = word(p, p.skill[i]);
    const odds = p.propensity[i] < 1000 ? ` The policy makes this choice with probability ${permille(p.propensity[i])}.` : "";
    const stored = p.source[i] < 0 ? "" : ` It returned the answer stored at turn ${p.source_turn[i]}, then given to “${word(p, p.source[i])}”.`;
    if (p.served[i] === 5) return "The words were an answer that this user was never given: a leak.";
    const near = p.score[i] === null ? "" : `, at a cosine of ${permille(p.score[i])}`;
    if (p.rules.own_words) return p.hit[i] ? "It answered without its LLM: from memory, by a rule, or with nothing." : "It asked its LLM. What of the prompt is memory cannot be seen.";
    if (p.max_sim[i] === null) return (p.hit[i] ? `An earlier answer was given again${near}.${stored}` : "The LLM answered.") + odds; // no skillbook
    if (p.explored[i]) return (p.hit[i] ? `Chosen at random, to learn: skill ${name}.${stored}` : "Sent to the LLM at random, to learn.") + odds;
    if (p.hit[i]) {
      const rule = threshold === null ? "" : `, at or above the threshold of ${threshold.toFixed(2)}`;
      const how = ["", stored, " The LLM answered with the skill's prompt.", " It was run for this message."][p.served[i]];
      return `Skill ${name} had the best combined score, ${permille(p.score[i])}${rule}.${how}${odds}`;
    }
    if (p.served[i] === 4) return "A procedure was run, and nothing came back, so the LLM answered." + odds;
    if (!best) return "No skill was close: the shortlist was empty, so the LLM answered." + odds;
    const rule = threshold === null || best[4] >= threshold * 1000 ? "" : `, below the threshold of ${threshold.toFixed(2)}`;
    return `The best candidate, ${word(p, best[0])}, scored ${permille(best[4])}${rule}, so the LLM answered.${odds}`;
  }

  function shortlist(p, i) {
    if (!p.shortlist[i].length) return null;
    const head = ["Skill", "Similarity", "Preference", "Reranker", "Combined"];
    const { similarity, preference, score } = p.rules.weights, weights = [null, similarity, preference, score, null];
    const bar = (value, chosen) => {
      const track = el("span", { class: chosen ? "bar chosen" : "bar" }, el("i", { style: `width:${Math.min(100, (value || 0) / 10)}%` }));
      if (p.rules.threshold !== null) track.append(el("b", { style: `left:${p.rules.threshold * 100}%` }));
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
        uses ? "one use counted" : "", rating < 0 ? "" : `rating ${TAG_RATINGS[rating]}`, example < 0 ? "" : `example “${word(p, example)}”`,
      ].filter((text) => text).map((text) => `, ${text}`).join(""), el("small", {}, ` (${word(p, why)})`))));
  }

  function elsewhere(p, i) {
    return el("ul", { class: "elsewhere" }, ...Object.entries(p.arms).filter(([arm, o]) => arm !== p.arm && OUTCOMES[o[i]]).map(([arm, o]) => {
      const [who, how] = OUTCOMES[o[i]];
      return el("li", { class: "SO".includes(o[i]) ? "not known" : how }, el("b", {}, arm), ` ${who === "memory" ? memory(arm) : who}, ${how}`);
    }));
  }

  // of a replayed log: what it says of the turn, and its answer beside the one that was returned
  function inTheLog(p, i) {
    if (!p.log) return null;
    const own = word(p, p.log.logged_answer[i]), stored = word(p, p.log.stored_answer[i]), log = p.log;
    const where = `Row ${log.row[i]} of the log${log.id[i] === null ? "" : `, id ${log.id[i]}`}: ${log.user}, ${dayOf(p.clock[i])}, ${clock(p.clock[i])}.`;
    const paid = [log.cost_usd[i] === null ? "" : `it cost $${log.cost_usd[i]}`, log.latency_ms[i] === null ? "" : `the user waited ${(log.latency_ms[i] / 1000).toFixed(2)} s`].filter((text) => text);
    const intent = log.same_intent[i] === null ? "" : log.same_intent[i] ? ", given to the same intent" : ", given to another intent";
    return part("In the log", el("p", {}, where), own === null ? null : el("p", {}, `The log answered: “${own}”`),
      stored === null ? null : el("p", {}, `Returned instead: “${stored}” (${log.same_answer[i] === null ? "the log holds no answer to this" : log.same_answer[i] ? "the same text" : "another text"}${intent}).`),
      paid.length ? el("p", {}, `Then ${paid.join(", and ")}.`) : null);
  }
  function unknown(p, i) {
    const same = p.log?.same_answer[i] ?? null;
    return same === null ? "not known" : same ? "same text" : "another text";
  }

  function part(title, ...children) {
    const filled = children.filter((c) => c !== null);
    return filled.length ? el("section", {}, el("h5", {}, title), ...filled) : null;
  }

  // in a world that judges words: what the user was told
  function words(p, i) {
    if (!p.said?.length) return null;
    return el("p", {}, p.said[i] < 0 ? "No words came." : `“${word(p, p.said[i])}”`);
  }

  function details(p, i) {
    const link = el("a", { class: "permalink", href: address({ user: p.id, turn: p.turn[i] }) }, `Link to turn ${p.turn[i]} of ${settings.person.toLowerCase()} ${p.id}`);
    if (outcome) return el("div", { class: "why" }, ...outcome.details(p, i), link);
    const type = word(p, p.type[i]), n = p.answerable[i];
    const rated = p.rating[i] < 0 ? (settings.judged ? "The user said nothing." : "The log holds no rating of this answer.")
      : `The user rated it ${RATINGS[p.rating[i]]}${p.late[i] > 0 ? `, ${span(p.late[i])} later` : ""}.`;
    const offered = p.offer[i] < 0 ? null : el("p", {}, `Asked to name a skill: ${OFFERS[p.offer[i]]}.`);
    const how = p.correct[i] === null ? "Whether the answer was right is not known." : `The answer was ${p.correct[i] ? "right" : "wrong"}.`;
    const about = type === null ? "" : `Really about ${type} (intent ${word(p, p.intent[i])}).`;
    const truth = !settings.judged ? (about || "What it was about is not known either.") : type === null ? "A one-off: no earlier answer can hold."
      : `Really about ${type} (intent ${word(p, p.intent[i])}). ${n ? `${n} earlier answer${n > 1 ? "s" : ""} of this user still held.` : "No earlier answer of this user held."}`;
    return el("div", { class: "why" },
      part("Answered", words(p, i), el("p", {}, reason(p, i)), shortlist(p, i)),
      part("Rated", el("p", {}, rated), offered),
      part("Learned", learned(p, i)),
      inTheLog(p, i),
      part("Truth, never shown to an arm", el("p", { class: "truth" }, `${how} ${truth}`)),
      part(settings.judged ? "The same message in the other arms (truth)" : "The same message in the other arms", elsewhere(p, i)),
      link);
  }

  function turn(p, i) {
    const body = el("div", {});
    return el("details", { class: "turn", id: `u${p.id}-t${p.turn[i]}`, ontoggle: (e) => { if (e.target.open && !body.hasChildNodes()) body.append(details(p, i)); } },
      el("summary", {},
        el("time", {}, clock(p.clock[i])),
        el("span", { class: "message" }, word(p, p.message[i])),
        ...(outcome?.cells ?? cells)(p, i)),
      body);
  }
  function cells(p, i) {
    const rating = p.rating[i] < 0 ? "" : RATINGS[p.rating[i]];
    return [
      el("span", { class: p.hit[i] ? "by skill" : "by" }, p.hit[i] ? word(p, p.skill[i]) : "LLM"),
      el("span", { class: `said ${rating}` }, rating, p.late[i] > 0 && rating ? el("small", {}, " later") : null),
      el("span", { class: p.correct[i] === null ? "unknown" : p.correct[i] ? "right" : "wrong" }, p.correct[i] === null ? unknown(p, i) : p.correct[i] ? "✓ right" : "✗ wrong"),
      el("span", { class: "grew" }, p.changes.has(p.turn[i]) ? "+ learned" : ""),
    ];
  }

  // ------------------------------------------------------------------------------------- strip of weeks
  const STACK = outcome?.stack ?? [[`hit ${SHADE}`, `hits ${FINE}`], ["hit wrong", `hits ${WRONG}`], [`llm ${SHADE}`, `LLM ${FINE}`], ["llm wrong", `LLM ${WRONG}`]];
  function bar(p, i) {
    const fine = p.correct[i] !== 0; // of a log: not given to another intent
    return p.hit[i] ? (fine ? 0 : 1) : fine ? 2 : 3;
  }
  function strip(p) {
    const weeks = Math.max(...p.week) + 1, counts = Array.from({ length: weeks }, () => STACK.map(() => 0)), grown = new Array(weeks).fill(0);
    p.turn.forEach((t, i) => {
      counts[p.week[i]][(outcome?.bar ?? bar)(p, i)] += 1;
      if (p.changes.has(t)) grown[p.week[i]] += 1;
    });
    const sum = (c) => c.reduce((a, b) => a + b, 0), most = Math.max(1, ...counts.map(sum));
    return el("div", { class: "strip", role: "group", "aria-label": "Weeks; choose one to go there" }, ...counts.map((c, w) => {
      const total = sum(c);
      const words = `Week ${w + 1}: ${total} turns, ${STACK.map(([, name], n) => `${c[n]} ${name}`).join(", ")}, ${grown[w]} learned`;
      return el("button", { type: "button", title: words, "aria-label": words, disabled: !total, onclick: () => goto(w) },
        ...STACK.map(([kind], n) => el("i", { class: kind, style: `height:${(100 * c[n]) / most}%` })).reverse());
    }));
  }
  function goto(week) {
    const at = view.index.findIndex(([p, i]) => p.week[i] >= week);
    list(at >= 0 ? view.index[at] : null);
  }

  // --------------------------------------------------------------------------------------- the timeline
  function filter() {
    const wanted = view.filters.filter(([key]) => view.on.has(key)), text = view.search.toLowerCase();
    view.index = view.turns.filter(([p, i]) => wanted.every(([, , test]) => test(p, i))
      && (!text || word(p, p.message[i]).toLowerCase().includes(text) || (word(p, p.skill[i]) || "").toLowerCase().includes(text)));
    view.page = 0;
    list(null);
  }
  function list(focus) { // `focus`: an entry of the index to go to
    if (focus) view.page = Math.floor(view.index.indexOf(focus) / PAGE);
    const from = view.page * PAGE, some = view.index.slice(from, from + PAGE), out = [];
    let day = "";
    for (const [p, i] of some) {
      const today = `${view.user ? "" : `${settings.person} ${p.id}, `}Week ${p.week[i] + 1}, ${dayOf(p.clock[i])}`;
      if (today !== day) out.push(el("h4", {}, (day = today)));
      out.push(turn(p, i));
    }
    if (!some.length) out.push(el("p", { class: "note" }, view.turns.length ? "No turn matches these filters." : "No such turn."));
    panel.querySelector(".timeline").replaceChildren(...out);
    const n = view.index.length, pages = Math.max(1, Math.ceil(n / PAGE)), number = (k) => k.toLocaleString("en-US");
    panel.querySelector(".count").textContent = n ? `${number(from + 1)}–${number(from + some.length)} of ${number(n)} turns` : "0 turns";
    for (const [name, off] of [["earlier", view.page === 0], ["later", view.page >= pages - 1]]) for (const b of panel.querySelectorAll(`.${name}`)) b.disabled = off;
    if (focus) document.getElementById(`u${focus[0].id}-t${focus[0].turn[focus[1]]}`).scrollIntoView({ block: "center" });
  }
  function turnPage(step) {
    view.page += step;
    list(null);
    panel.querySelector(".controls").scrollIntoView({ block: "start" });
  }
  function pager() {
    return el("div", { class: "pager" },
      el("button", { type: "button", class: "earlier", onclick: () => turnPage(-1) }, "← Earlier"),
      el("button", { type: "button", class: "later", onclick: () => turnPage(1) }, "Later →"));
  }

  function show(title, why, turns, { user = null, filters = [], notes = [] }) {
    view = { user, turns, filters: [...filters, ...filtersOf(user?.arm ?? settings.learner)], on: new Set(), search: "", page: 0, index: turns };
    for (const r of rows()) {
      const open = r.dataset.user === user?.id;
      r.classList.toggle("open", open);
      r.querySelector("button").setAttribute("aria-expanded", String(open));
    }
    const count = (test) => turns.filter(([p, i]) => test(p, i)).length.toLocaleString("en-US");
    const buttons = view.filters.map(([key, name, test]) => el("button", {
      type: "button", class: "filter", "data-filter": key, "aria-pressed": "false",
      onclick: (e) => {
        const on = !view.on.has(key);
        view.on[on ? "add" : "delete"](key);
        e.currentTarget.setAttribute("aria-pressed", String(on));
        filter();
      } }, name, el("small", {}, ` ${count(test)}`)));
    panel.replaceChildren(
      el("header", {}, el("h3", { tabindex: "-1" }, title), el("p", {}, why)),
      ...notes,
      el("div", { class: "controls" }, ...buttons,
        el("input", { type: "search", placeholder: "Search messages and skills", "aria-label": "Search messages and skills", oninput: (e) => { view.search = e.target.value; filter(); } })),
      el("div", { class: "bar-top" }, el("span", { class: "count", role: "status" }), pager()),
      el("div", { class: "timeline" }), pager());
    panel.hidden = false;
    list(null);
  }
  function others(before, user = "U") { // where the turns are that this page does not hold
    return el("p", { class: "note" }, before, el("code", {}, `${settings.report} ${user}`));
  }
  function openUser(id) {
    const user = load(id), some = user.turn.length, number = (k) => k.toLocaleString("en-US");
    const key = (...kinds) => el("p", { class: "key" }, ...kinds.flatMap(([kind, name]) => [el("i", { class: kind }), `${name} `]));
    show(`${settings.person} ${id}${user.log ? ` (${user.log.user})` : ""}`, rowOf(id).dataset.why, user.turn.map((_, i) => [user, i]), { user, notes: [
      ...(some < user.n ? [others(`Shown are the first and the last turns, ${number(some)} of ${number(user.n)}. All of them: `, id)] : []),
      ...(outcome?.begun(user) ?? []),
      strip(user),
      outcome ? key(...outcome.stack) : settings.judged ? key(["hit right", `${memory(user.arm)}, right`], ["hit wrong", `${memory(user.arm)}, wrong`], ["llm right", "LLM, right"], ["llm wrong", "LLM, wrong (truth)"])
        : key(["hit unknown", "memory, not known whether right"], ["hit wrong", "memory, wrong: another intent"], ["llm unknown", "LLM, as in the log or not known"])] });
  }

  // ------------------------------------------------------------------------------------ addresses
  function everyone(test) { // turns of all users of the page
    return rows().map((row) => load(row.dataset.user, settings.learner)).flatMap((p) => p.turn.map((_, i) => [p, i])).filter(([p, i]) => test(p, i));
  }
  function showLost(arm, cause) {
    const [code, name] = settings.causes[cause];
    const turns = everyone((p, i) => p.causes[arm]?.[i] === code);
    show(`${name}: turns of arm ${arm}`, "", turns, { notes: [others(`Of the ${rows().length} users on this page, with what ${settings.learner} answered. Others: `)] });
  }
  function showFlips(arm, against) {
    const note = others(`Of the ${rows().length} users on this page, with what ${settings.learner} answered. Others: `);
    if (outcome) {
      const filters = [arm, against].map((name, n) => [`flip-${n}`, `${outcome.only} to ${name} only`, (p, i) => outcome.ends(p, name, i) && !outcome.ends(p, [against, arm][n], i)]);
      show(`${outcome.differently} under ${arm} and ${against}`, "", everyone((p, i) => outcome.differ(p, arm, against, i)), { filters, notes: [note] });
      return;
    }
    const did = settings.judged ? "HL" : "HhXSO", what = settings.judged ? "Right" : "Answered from memory";
    const good = (p, name, i) => did.includes(p.arms[name]?.[i]), known = (p, name, i) => (p.arms[name]?.[i] ?? ".") !== ".";
    const differ = (p, i) => known(p, arm, i) && known(p, against, i) && good(p, arm, i) !== good(p, against, i);
    const filters = [arm, against].map((name, n) => [`flip-${n}`, `${what} in ${name} only`, (p, i) => good(p, name, i)]);
    show(`Turns that ${arm} and ${against} answered differently`, "", everyone(differ), { filters, notes: [note] });
  }
  function missing(id, words) {
    panel.replaceChildren(el("header", {}, el("h3", { tabindex: "-1" }, `${settings.person} ${id}`)), others(words, id));
    panel.hidden = false;
  }
  function showUser(id, turn, week) {
    if (!rowOf(id)) { missing(id, "Not on this page. A page with all turns: "); return; }
    openUser(id);
    if (week !== null) goto(Number(week) - 1);
    if (turn === null) return;
    const focus = view.index.find(([p, i]) => p.turn[i] === Number(turn));
    if (!focus) { missing(id, `Turn ${turn} is not on this page. A page with all turns: `); return; }
    list(focus);
    document.getElementById(`u${id}-t${turn}`).open = true;
  }
  function follow() { // #user=17&turn=204, or #u17-t204, the id of a message in the logs; #user=17&week=3; #arm=..., see links.py
    const [, user, turn] = location.hash.match(/^#u(\d+)-t(\d+)$/) || [], asked = new URLSearchParams(location.hash.slice(1));
    const arm = asked.get("arm"), id = user ?? asked.get("user");
    if (/^\d+$/.test(id ?? "")) showUser(id, turn ?? asked.get("turn"), asked.get("week"));
    else if (arm !== null && Object.hasOwn(settings.causes, asked.get("lost") ?? "")) showLost(arm, asked.get("lost"));
    else if (arm !== null && asked.has("against")) showFlips(arm, asked.get("against"));
    else return;
    panel.querySelector("h3").focus({ preventScroll: true });
    if (!panel.querySelector(".turn[open]")) panel.scrollIntoView({ block: id ? "nearest" : "start" });
  }
  function go(parts) {
    history.pushState(null, "", address(parts));
    follow();
  }
  document.querySelector("#users tbody").addEventListener("click", (event) => {
    const weeks = event.target.closest(".sparks"), row = event.target.closest("tr");
    if (!row) return; // pressed on one row and released on another
    const { user } = row.dataset;
    if (!weeks) { go({ user }); return; }
    const { left, width } = weeks.getBoundingClientRect(), n = Number(weeks.dataset.weeks);
    go({ user, week: 1 + Math.min(n - 1, Math.floor(((event.clientX - left) / width) * n)) });
  });
  document.addEventListener("learner", ({ detail }) => {
    chosen = detail;
    openUser(view?.user?.id ?? rows()[0].dataset.user);
  });
  addEventListener("hashchange", follow);
  if (location.hash) follow();
  if (!view && panel.hidden) openUser((rows().find((row) => row.dataset.pick === "drawn") || rows()[0]).dataset.user);
})();
