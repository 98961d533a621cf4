/* The page of a plan: a slider of epsilon, with the odds of a guess and the errors of questions moving along. */
"use strict";
(function () {
  const $ = (id) => document.getElementById(id), LOW = -3, HIGH = 1.5, STEP = 0.02;
  const form = $("plan"), epsilon = $("epsilon"), confirm = $("confirm");
  const shown = (number) => Number(number).toLocaleString("en-US", { maximumSignificantDigits: 4 });
  const slider = Object.assign(document.createElement("input"), { type: "range", min: LOW, max: HIGH, step: STEP, id: "slider" });
  const label = Object.assign(document.createElement("label"), { textContent: "less is told of each person \u2194 answers are more exact" });
  slider.setAttribute("aria-label", "epsilon, from a thousandth to thirty");
  label.append(slider);
  form.prepend(label);

  function valueOf(text) {
    const [above, below = "1"] = text.split("/");
    return Number(above) / Number(below);
  }
  function place(text) {
    const value = valueOf(text);
    slider.value = value > 0 ? Math.log10(value) : 0;
  }

  function showOdds(risk) {
    const bars = $("odds").querySelectorAll("progress"), words = $("odds").querySelectorAll("span:last-of-type, progress + span");
    risk.forEach((one, i) => {
      bars[i].value = one.after;
      words[i].textContent = `${(100 * one.after).toFixed(1)}%`;
    });
  }

  let asked = 0, waiting = null;
  async function look() {
    const own = ++asked, filled = [...new FormData(form)].filter(([, value]) => String(value).trim());
    const answer = await fetch(`${form.dataset.json}?${new URLSearchParams(filled)}`, { headers: { Accept: "application/json" } });
    const found = await answer.json();
    if (own !== asked) return;
    $("problem").textContent = found.error ? found.error.message : "";
    if (found.error) return;
    const plan = found.plan || found;
    $("half_width").textContent = shown(plan.half_width);
    $("epsilon_told").textContent = plan.epsilon;
    showOdds(plan.risk);
    if ($("error").value.trim()) place(plan.epsilon);
    const rows = plan.queries.map((one) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = typeof one.query === "string" ? one.query : JSON.stringify(one.query);
      row.append(head, ...[one.stddev, one.half_width].map((number) => Object.assign(document.createElement("td"), { textContent: shown(number) })));
      return row;
    });
    $("questions").tBodies[0].replaceChildren(...rows);
    document.documentElement.dataset.planned = String(own);
  }
  function later() {
    if (confirm) confirm.hidden = true; // it is for the plan that the page came with: plan anew to confirm another
    clearTimeout(waiting);
    waiting = setTimeout(() => look().catch((problem) => ($("problem").textContent = problem.message)), 150);
  }

  slider.addEventListener("input", () => {
    const value = 10 ** Number(slider.value);
    epsilon.value = Number(value.toPrecision(2));
    $("error").value = "";
    form.elements.rho.value = "";
    const risk = [...$("odds").querySelectorAll("span:first-of-type")].length;
    if (risk) showOdds([0.5, 0.1, 0.01].map((before) => ({ before, after: before / (before + (1 - before) * Math.exp(-value)) })));
    $("epsilon_told").textContent = epsilon.value;
    later();
  });
  $("error").addEventListener("input", () => {
    epsilon.value = "";
    later();
  });
  epsilon.addEventListener("input", () => {
    $("error").value = "";
    place(epsilon.value);
    later();
  });
  form.addEventListener("submit", () => [...form.elements].forEach((one) => (one.disabled = one.name !== "" && !one.value.trim())));
  place(epsilon.value || "1");
})();
