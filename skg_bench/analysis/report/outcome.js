"use strict";
// What `users.js` shows of turns in a domain with outcomes, in its words: filters, one turn, weeks.
const outcomeView = ({ settings, el, word, permille, span, part, address }) => {
  const { who: roles, did: acts, later: answers, words } = settings.outcome;
  const readable = (text) => text.replaceAll("_", " ");
  const role = (p, i) => roles[p.who[i]], act = (p, i) => acts[p.did[i]];
  const spoken = (p, i) => p.served[i] !== 2, taken = (p, i) => spoken(p, i) && words.taken.includes(act(p, i));
  const held = (p, i) => p.correct[i] !== p.wanted[i];
  const ended = (p, i) => words.ended[held(p, i) ? 1 : 0], want = (p, i) => words.wants[p.wanted[i] ? 1 : 0];
  const refused = (p, i) => act(p, i) === words.refused;
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  const later = (p, turn) => p.later.filter(([about]) => about === turn);
  const jobs = (p, test) => p.jobs.filter(test);
  const quoted = (text) => `“${text}”`;

  function happened(p, i) {
    const ending = words.endings.find(({ did, who }) => did === act(p, i) && (who === "" || who === role(p, i)));
    return ending?.says ?? `${readable(act(p, i))}.`;
  }

  const filters = [
    ["skilled", words.filters.skilled, (p, i) => p.served[i] === 1],
    ["unskilled", words.filters.unskilled, (p, i) => p.served[i] === 0],
    ["taken", words.filters.taken, taken],
    ["refused", words.filters.refused, refused],
    ["wrong", words.filters.wrong, (p, i) => p.wanted[i] === 1 && held(p, i)],
    ["later", "Answered later", (p, i) => later(p, p.turn[i]).length > 0],
    ["learned", "Learned", (p, i) => p.changes.has(p.turn[i])],
    ["sittings", "Jobs beside one another", (p, i) => sittings(p, p.turn[i]).length > 0],
  ].filter(([name]) => name !== "sittings" || Object.values(settings.rules).some(({ conflict }) => conflict !== null)); // null: learning takes no time

  function said(p, i) {
    const parts = { who: role(p, i), skill: quoted(word(p, p.skill[i])) };
    if (!spoken(p, i)) return filled(words.silent, parts);
    const odds = p.propensity[i] === null || p.propensity[i] >= 1000 ? "" : ` It is chosen with probability ${permille(p.propensity[i])}.`;
    return filled(p.served[i] === 1 ? words.used : words.asked, parts) + odds;
  }

  function shown(p, i) {
    if (!spoken(p, i) || !p.shown[i].length) return null;
    return el("div", { class: "scroll" }, el("table", { class: "shortlist" },
      el("thead", {}, el("tr", {}, ...[words.skill, "Combined"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...p.shown[i].map(([text, combined, chosen]) => el("tr", { class: chosen ? "chosen" : null },
        el("th", { scope: "row" }, word(p, text), chosen ? el("small", {}, " chosen") : null), el("td", {}, permille(combined)))))));
  }

  function operation([, op, text, section, rating, uses, why], p) {
    const extra = [section < 0 ? "" : `section ${word(p, section)}`, uses ? "one use counted" : "", rating < 0 ? "" : `rating ${word(p, rating)}`];
    return el("li", {}, el("code", {}, op), " ", el("b", {}, word(p, text)), extra.filter((t) => t).map((t) => `, ${t}`).join(""), el("small", {}, ` (${word(p, why)})`));
  }
  function operations(p, turn, source = null) { // `source`: only those that were learned from this turn
    const some = (p.operations.get(turn) || []).filter(([,,,,,,, about]) => source === null || about === source);
    return some.length ? el("ul", { class: "operations" }, ...some.map((op) => operation(op, p))) : null;
  }

  function written(p, [turn, about, , , , , , , , course]) { // what a job changed, and at which turn
    if (!course) return [turn, operations(p, turn, about)];
    const some = p.updates.filter(([, , , , , , , source, version]) => source === about && version === course[3]);
    return some.length ? [some[0][0], el("ul", { class: "operations" }, ...some.map((op) => operation(op, p)))] : [turn, null];
  }

  function reflection(p, [turn, about, channel, value, result, analysis, helpful, harmful, learnings]) {
    const from = about === turn ? `From ${readable(word(p, value))}` : `From ${readable(word(p, value))}, said of turn ${about}`;
    const ids = [["helpful", helpful], ["harmful", harmful]].filter(([, some]) => some.length).map(([which, some]) => `; ${which}: ${some.map((k) => word(p, k)).join(", ")}`);
    const grown = learnings ? `; new learnings: ${learnings}` : "";
    return el("p", {}, `${from} (${word(p, channel)}, ${word(p, result).replaceAll("_", " ")})`, analysis < 0 ? "" : `: ${quoted(word(p, analysis))}`, ...ids, `${grown}.`);
  }

  const SITTING = 60; // seconds from the beginning of one job to that of the next
  function sittings(p, turn) { // jobs that began together, where learning takes time
    const groups = [];
    for (const job of jobs(p, (job) => job[0] === turn && job[9]).sort((a, b) => a[9][0] - b[9][0])) {
      if (groups.length && job[9][0] - groups.at(-1).at(-1)[9][0] <= SITTING) groups.at(-1).push(job); else groups.push([job]);
    }
    return groups.filter((group) => group.length > 1);
  }
  const RULED = [ // as COURSE_COUNTS of core/learning_jobs.py, without the first
    ["addition", "became a rating of what was added meanwhile"], ["rewording", "left out, as the skill was reworded meanwhile"],
    ["operation", "left out, as the skill is gone"], ["addition", "doubled what was added meanwhile"], ["operation", "of other jobs lost"],
  ];
  function ruled([, , , version, meanwhile, ...counts]) {
    const some = counts.flatMap((n, k) => (n ? [`${n} ${RULED[k][0]}${n === 1 ? "" : "s"} ${RULED[k][1]}`] : []));
    if (some.length) return some.join("; ");
    return version < 0 ? "nothing to write" : meanwhile ? "written on top" : "no conflict";
  }
  function sitting(p, group) {
    const began = group[0][9][0], rule = p.rules.conflict;
    const row = (job) => {
      const [start, took, read, written, meanwhile] = job[9], from = start - began, result = readable(word(p, job[4]));
      return el("tr", {}, el("th", { scope: "row" }, `${readable(word(p, job[3]))}, of turn ${job[1]}`), el("td", {}, `${from.toFixed(1)} to ${(from + took).toFixed(1)} s`),
        el("td", {}, `${read}`), el("td", {}, written < 0 ? result : `${written}`), el("td", {}, `${meanwhile}`), el("td", { class: "ruled" }, ruled(job[9])));
    };
    return el("div", { class: "scroll" }, el("table", { class: "shortlist sitting" },
      el("caption", {}, `${group.length} jobs beside one another. Conflict rule: `, el("code", {}, rule)),
      el("thead", {}, el("tr", {}, ...["Job", "Ran", "Read version", "Wrote version", "Others’ operations meanwhile", "What the rule did"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...group.map(row))));
  }

  function afterwards(p, i) { // what was said later, and what that changed
    const turn = p.turn[i];
    return later(p, turn).flatMap(([, value, seconds]) => {
      const changed = jobs(p, (job) => job[1] === turn && word(p, job[2]) === words.later);
      return [
        el("p", {}, `${span(seconds)} later: ${readable(answers[value])}.`, changed.length ? "" : " Nothing was learned from it."),
        ...changed.flatMap((job) => {
          const [at, changes] = written(p, job), link = el("a", { href: address({ user: p.id, turn: at }) }, `turn ${at}`);
          return [reflection(p, job), el("p", {}, changes ? "The skillbook changed by it at " : "The skillbook stayed as it was at ", link, changes ? ":" : "."), changes];
        }),
      ];
    });
  }

  function truth(p, i) {
    const end = filled(words.closing, { ended: ended(p, i), not: p.wanted[i] ? "" : "not " });
    const kind = word(p, p.kind[i]), about = kind === null ? "" : ` ${filled(words.about, { kind: readable(kind) })}`;
    const worths = words.worths.map(({ says }, n) => (p.worths[n][i] === null ? "" : `${says}${permille(p.worths[n][i])}`));
    return `${end}${about} ${worths.join("")}.`;
  }

  function elsewhere(p, i) {
    return el("ul", { class: "elsewhere" }, ...Object.entries(p.arms).filter(([arm]) => arm !== p.arm)
      .map(([arm, ended]) => el("li", {}, el("b", {}, arm), ` ${readable(acts[parseInt(ended[i], 36)])}`)));
  }

  return {
    filters,
    cells: (p, i) => [
      el("span", { class: p.served[i] === 1 ? "by skill" : "by" }, p.served[i] === 1 ? word(p, p.skill[i]) : spoken(p, i) ? words.unskilled : words.unspoken),
      el("span", { class: "said" }, readable(act(p, i)), later(p, p.turn[i]).length ? el("small", {}, `, ${readable(answers[later(p, p.turn[i])[0][1]])}`) : null),
      el("span", { class: p.correct[i] ? "right" : "wrong" }, `${ended(p, i)}, ${want(p, i)}`),
      el("span", { class: "grew" }, p.changes.has(p.turn[i]) ? "+ learned" : ""),
    ],
    details: (p, i) => [
      part("Said", el("p", {}, said(p, i)), shown(p, i)),
      part("What happened", el("p", {}, happened(p, i))),
      part("Learned at this turn", ...jobs(p, (job) => job[0] === p.turn[i]).map((job) => reflection(p, job)), ...sittings(p, p.turn[i]).map((group) => sitting(p, group)), operations(p, p.turn[i])),
      part("Said later, and what it changed", ...afterwards(p, i)),
      part("Truth, never shown to an arm", el("p", { class: "truth" }, truth(p, i))),
      part(words.elsewhere, elsewhere(p, i)),
    ],
    begun: (p) => { // the book that a user was given
      const given = [...p.operations.entries()].filter(([turn]) => turn < 0).flatMap(([, some]) => some);
      const added = given.filter(([, op]) => op === "ADD").length, ratings = given.filter(([, op, , , rating]) => op === "TAG" && rating >= 0).length;
      const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`, rated = ratings ? `, with ${count(ratings, "rating")}` : "";
      return added ? [el("details", { class: "given" }, el("summary", {}, `The skillbook began with ${count(added, "skill")}${rated}`),
        el("ul", { class: "operations" }, ...given.filter(([, op]) => op !== "TAG").map((op) => operation(op, p))))] : [];
    },
    stack: [["hit right", words.filters.taken.toLowerCase()], ["llm wrong", words.filters.refused.toLowerCase()], ["llm right", `neither, or ${words.unspoken}`]],
    bar: (p, i) => (taken(p, i) ? 0 : refused(p, i) ? 1 : 2),
    differ: (p, arm, against, i) => p.arms[arm]?.[i] !== p.arms[against]?.[i],
    ends: (p, arm, i) => words.taken.includes(acts[parseInt(p.arms[arm]?.[i], 36)]),
    only: words.filters.taken, differently: words.differently,
  };
};
