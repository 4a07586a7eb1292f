"use strict";
(() => {
  const turns = JSON.parse(document.getElementById("turns").textContent);
  const answers = turns.flatMap((turn) =>
    turn.answers.map(([pair, text], place) => ({ turn, pair, text, place, of: turn.answers.length })));
  const element = (id) => document.getElementById(id);
  const store = `skg_bench labels ${answers.map((answer) => answer.pair).join("")}`;
  const kept = () => { try { return JSON.parse(localStorage.getItem(store)) || {}; } catch { return {}; } };
  const labels = kept(); // by pair
  const keys = { 1: "wrong", 2: "near", 3: "right", 0: "unknown" };
  const unjudged = () => answers.findIndex((answer) => !labels[answer.pair]);
  let at = Math.max(unjudged(), 0);

  const cell = (text) => {
    const guarded = /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
  };
  const sheet = () => ["pair,when,user,message,answer,label",
    ...answers.map(({ turn, pair, text }) => [pair, turn.when, turn.user, turn.message, text, labels[pair] || ""].map(cell).join(","))]
    .join("\n") + "\n";

  const show = () => {
    const { turn, pair, text, place, of } = answers[at];
    const judged = answers.filter((answer) => labels[answer.pair]).length;
    element("progress").value = judged;
    element("progress-words").textContent = `${judged} of ${answers.length} judged`;
    element("when").textContent = [turn.when, turn.user].filter(Boolean).join(", ");
    element("message").textContent = turn.message;
    element("which").textContent = of > 1 ? `Answer ${place + 1} of ${of} to this message` : "and was answered";
    element("answer").textContent = text;
    for (const button of document.querySelectorAll("[data-label]")) {
      button.setAttribute("aria-pressed", String(labels[pair] === button.dataset.label));
    }
    element("back").disabled = at === 0;
    element("forth").disabled = at === answers.length - 1;
  };
  const move = (step) => { at = Math.min(Math.max(at + step, 0), answers.length - 1); show(); };
  const judge = (label) => {
    labels[answers[at].pair] = label;
    try { localStorage.setItem(store, JSON.stringify(labels)); } catch { /* a browser that keeps nothing */ }
    move(1);
  };

  for (const button of document.querySelectorAll("[data-label]")) {
    button.addEventListener("click", () => judge(button.dataset.label));
  }
  element("back").addEventListener("click", () => move(-1));
  element("forth").addEventListener("click", () => move(1));
  element("download").addEventListener("click", () => {
    element("download").href = URL.createObjectURL(new Blob([sheet()], { type: "text/csv" }));
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in keys) judge(keys[event.key]);
    else if (event.key === "ArrowLeft") move(-1);
    else if (event.key === "ArrowRight") move(1);
  });
  show();
})();
