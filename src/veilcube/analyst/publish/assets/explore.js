/* The Explore page: what is chosen, the answer, and charts that follow. */
"use strict";
(function (root) {
  const V = root.Veilcube;
  const MOST_BOXES = 300, MOST_ROWS = 500, MOST_HEAT = 200;
  const $ = (id) => document.getElementById(id);

  function make(name, properties = {}, ...children) {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  }

  class Page {
    constructor(model) {
      this.answers = new V.Answers(model);
      this.model = model;
      this.attributes = model.attributes;
      this.masks = this.attributes.map(() => null);
      this.isCut = false;
      this.readHash();
      this.write();
      this.cards = this.attributes.map((one, axis) => this.card(one, axis));
      $("attributes").replaceChildren(...this.cards.map((one) => one.node));
      this.buildPair();
      this.buildTable();
      $("everything").addEventListener("click", () => this.choose(this.attributes.map(() => null)));
      $("cut").addEventListener("change", (event) => { this.isCut = event.target.checked; this.draw(); });
      for (const id of ["sql", "python", "link"]) $("copy-" + id).addEventListener("click", () => copy($(id), $("copied")));
      root.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
      root.addEventListener("hashchange", () => { this.readHash(); this.draw(); });
      this.draw();
    }

    write() {
      const model = this.model;
      document.title = model.title;
      $("title").textContent = model.title;
      $("promise").textContent = model.privacy + (model.counted ? " " + model.counted : "");
      const names = this.attributes.map((one) => one.name + (one.note ? ` (${one.note})` : ""));
      $("facts").textContent = `${names.join(" × ")}: ${model.cells.toLocaleString("en-US")} cells. Estimator: ${model.estimator}.`;
      const isAsked = this.answers.values.kind === "asked";
      $("offered").textContent = isAsked
        ? "This page holds the answers to ranges of one attribute and of two together, as listed below. Python answers every question."
        : "Every set of values of every attribute can be chosen, in all combinations; the answers are those that Python gives.";
    }

    /* ---- choosing ---- */

    choose(masks) {
      this.masks = masks.map((mask) => (mask && mask.every(Boolean) ? null : mask));
      const text = this.masks.map((mask, axis) => mask && axis + "=" + spelled(mask)).filter(Boolean).join("&");
      history.replaceState(null, "", "#" + text);
      this.draw();
    }

    chooseOn(axis, mask) {
      this.choose(this.masks.map((old, other) => (other === axis ? mask : old)));
    }

    chooseRange(axis, first, last, isAdded) {
      const n = this.answers.sizes[axis], old = this.masks[axis], mask = new Uint8Array(n);
      if (isAdded && old) mask.set(old);
      const isOff = isAdded && old && first === last && old[first];
      for (let i = first; i <= last; i++) mask[i] = isOff ? 0 : 1;
      this.chooseOn(axis, mask.some(Boolean) ? mask : null);
    }

    readHash() {
      this.masks = this.attributes.map(() => null);
      for (const part of location.hash.slice(1).split("&")) {
        const [axis, text] = part.split("=");
        const n = this.answers.sizes[axis];
        if (!n || !text) continue;
        const mask = new Uint8Array(n);
        for (const run of text.split(",")) {
          const [first, last = first] = run.split("-").map(Number);
          for (let i = Math.max(first, 0); i <= Math.min(last, n - 1); i++) mask[i] = 1;
        }
        if (mask.some(Boolean) && !mask.every(Boolean)) this.masks[axis] = mask;
      }
    }

    /* ---- one card for each attribute ---- */

    card(attribute, axis) {
      const chart = make("div", { className: "holder" }), said = make("span", { className: "said" });
      const all = make("button", { type: "button", textContent: "All", ariaLabel: `All values of ${attribute.name}` });
      all.addEventListener("click", () => this.chooseOn(axis, null));
      const controls = attribute.ordered ? this.ends(attribute, axis) : this.boxes(attribute, axis);
      const tree = attribute.groups.length ? this.tree(attribute, axis) : null;
      const head = make("div", { className: "head" }, make("h2", { textContent: attribute.name }), said, all);
      const node = make("section", { className: "card" }, head, chart, controls.node);
      if (tree) node.append(tree.node);
      return { node, chart, said, controls, tree };
    }

    ends(attribute, axis) {
      const options = () => attribute.labels.slice(0, attribute.regular).map((label, i) => new Option(label, i));
      const from = make("select", { ariaLabel: `${attribute.name} from` }, ...options());
      const to = make("select", { ariaLabel: `${attribute.name} to` }, ...options());
      const stray = attribute.labels.slice(attribute.regular).map((label) => make("input", { type: "checkbox", ariaLabel: `${attribute.name} ${label}` }));
      const change = () => {
        const mask = new Uint8Array(attribute.labels.length);
        const [low, high] = [Number(from.value), Number(to.value)].sort((a, b) => a - b);
        mask.fill(1, low, high + 1);
        stray.forEach((box, i) => (mask[attribute.regular + i] = Number(box.checked)));
        this.chooseOn(axis, mask);
      };
      const node = make("div", { className: "controls" }, make("label", { textContent: "from " }, from), make("label", { textContent: "to " }, to));
      stray.forEach((box, i) => node.append(make("label", {}, box, " " + attribute.labels[attribute.regular + i])));
      [from, to, ...stray].forEach((one) => one.addEventListener("change", change));
      const show = (mask) => {
        const first = mask ? mask.indexOf(1) : 0, last = mask ? mask.lastIndexOf(1, attribute.regular - 1) : attribute.regular - 1;
        from.value = Math.min(Math.max(first, 0), attribute.regular - 1);
        to.value = last < 0 ? from.value : last;
        stray.forEach((box, i) => (box.checked = !mask || Boolean(mask[attribute.regular + i])));
      };
      return { node, show };
    }

    boxes(attribute, axis) {
      const listed = attribute.labels.slice(0, MOST_BOXES).map((label) => make("input", { type: "checkbox", ariaLabel: `${attribute.name} ${label}` }));
      const list = make("div", { className: "boxes" });
      listed.forEach((box, i) => {
        list.append(make("label", {}, box, " " + attribute.labels[i]));
        box.addEventListener("change", () => {
          const mask = this.masks[axis] ? this.masks[axis].slice() : new Uint8Array(attribute.labels.length);
          mask[i] = Number(box.checked);
          this.chooseOn(axis, mask.some(Boolean) ? mask : null);
        });
      });
      const more = attribute.labels.length > MOST_BOXES ? ` (the first ${MOST_BOXES})` : "";
      const node = make("details", {}, make("summary", { textContent: "Choose values" + more }), list);
      return { node, show: (mask) => listed.forEach((box, i) => (box.checked = Boolean(mask && mask[i]))) };
    }

    tree(attribute, axis) {
      const rows = attribute.groups.map((group) => {
        const count = make("span", { className: "count" });
        const button = make("button", { type: "button" }, make("span", { textContent: group.name }), count);
        button.style.marginLeft = `${Math.min(group.depth, 6) * 18}px`;
        button.addEventListener("click", () => this.chooseRange(axis, group.first, group.last, false));
        return { group, count, button };
      });
      const list = make("div", { className: "tree" }, ...rows.map((row) => row.button));
      const node = make("details", {}, make("summary", { textContent: "Groups, with their counts" }), list);
      const show = () => {
        if (!node.open) return;
        for (const { group, count, button } of rows) {
          const mask = new Uint8Array(attribute.labels.length).fill(1, group.first, group.last + 1);
          const found = this.answers.ask(this.masks.map((old, other) => (other === axis ? mask : old)));
          count.textContent = found ? `${V.shown(found.value[0])} (${V.interval(found.low[0], found.high[0])})` : "not on this page";
          const ends = this.masks[axis] && V.endsOf(this.masks[axis], mask.length);
          button.setAttribute("aria-pressed", Boolean(ends && ends[0] === group.first && ends[1] === group.last));
        }
      };
      node.addEventListener("toggle", show);
      return { node, show };
    }

    /* ---- two attributes, and the table ---- */

    buildPair() {
      const options = () => this.attributes.map((one, axis) => new Option(one.name, axis));
      $("across").replaceChildren(...options());
      $("upwards").replaceChildren(...options());
      $("pair").hidden = this.attributes.length < 2;
      $("upwards").value = Math.min(1, this.attributes.length - 1);
      for (const id of ["across", "upwards"]) $(id).addEventListener("change", () => this.drawPair());
    }

    buildTable() {
      const options = () => this.attributes.map((one, axis) => new Option(one.name, axis));
      $("rows").replaceChildren(...options());
      $("columns").replaceChildren(new Option("nothing else", ""), ...options());
      for (const id of ["rows", "columns"]) $(id).addEventListener("change", () => this.drawTable());
      $("csv").addEventListener("click", () => this.download());
    }

    /* The counts of all combinations of two attributes, the first one's runs changing slowest. */
    askPair(first, second, masks) {
      const found = this.answers.ask(masks, [first, second].sort((a, b) => a - b));
      if (!found || first < second) return found;
      const [n, m] = [this.answers.sizes[first], this.answers.sizes[second]], turned = { shape: [n, m] };
      for (const name of ["value", "low", "high", "stddev"]) {
        turned[name] = new Float64Array(n * m);
        for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) turned[name][i * m + j] = found[name][j * n + i];
      }
      return turned;
    }

    drawPair() {
      const [a, b] = [Number($("across").value), Number($("upwards").value)];
      if (this.attributes.length < 2) return;
      const holder = $("heatmap"), [across, upwards] = [this.attributes[a], this.attributes[b]];
      const isLarge = across.labels.length > MOST_HEAT * 2 || upwards.labels.length > MOST_HEAT;
      const found = a === b || isLarge ? null : this.askPair(a, b, this.masks.map((mask, axis) => (axis === a || axis === b ? null : mask)));
      if (!found) {
        const why = a === b ? "Choose two attributes." : isLarge ? "These have too many values to draw together." : "This page holds no answers for so many conditions at once.";
        return void holder.replaceChildren(make("p", { className: "note", textContent: why }));
      }
      const [x, y] = [a, b].map((axis) => this.masks[axis] && [this.masks[axis].indexOf(1), this.masks[axis].lastIndexOf(1)]);
      const box = x || y ? [...(x || [0, across.labels.length - 1]), ...(y || [0, upwards.labels.length - 1])] : null;
      V.heatmap(holder, across, upwards, found, box, (x0, x1, y0, y1) => {
        const masks = this.masks.slice();
        masks[a] = new Uint8Array(across.labels.length).fill(1, x0, x1 + 1);
        masks[b] = new Uint8Array(upwards.labels.length).fill(1, y0, y1 + 1);
        this.choose(masks);
      });
    }

    tableRows() {
      const a = Number($("rows").value), b = $("columns").value === "" ? null : Number($("columns").value);
      const isOne = b === null || a === b, axes = isOne ? [a] : [a, b];
      const masks = this.masks.map((mask, axis) => (axes.includes(axis) ? null : mask));
      const found = isOne ? this.answers.ask(masks, [a]) : this.askPair(a, b, masks);
      const m = isOne ? 1 : this.answers.sizes[b], rows = [];
      if (!found) return { names: axes.map((axis) => this.attributes[axis].name), rows };
      for (let k = 0; k < found.value.length; k++) {
        const runs = isOne ? [k] : [Math.floor(k / m), k % m];
        if (runs.some((run, i) => this.masks[axes[i]] && !this.masks[axes[i]][run])) continue;
        const labels = runs.map((run, i) => this.attributes[axes[i]].labels[run]);
        rows.push({ labels, value: found.value[k], low: found.low[k], high: found.high[k], stddev: found.stddev[k] });
      }
      return { names: axes.map((axis) => this.attributes[axis].name), rows };
    }

    drawTable() {
      const { names, rows } = this.tableRows();
      const head = [...names, "estimate", `${this.model.confidence_words} interval`];
      const cell = (kind, text) => make(kind, { textContent: text });
      const column = (text) => Object.assign(cell("th", text), { scope: "col" });
      const lines = rows.slice(0, MOST_ROWS).map((row) =>
        make("tr", {}, ...row.labels.map((label) => Object.assign(cell("th", label), { scope: "row" })), cell("td", V.shown(row.value)), cell("td", V.interval(row.low, row.high))));
      $("table").replaceChildren(make("thead", {}, make("tr", {}, ...head.map(column))), make("tbody", {}, ...lines));
      $("more").textContent = !rows.length ? "This page holds no answers for so many conditions at once."
        : rows.length > MOST_ROWS ? `${(rows.length - MOST_ROWS).toLocaleString("en-US")} more rows are in the CSV file.` : "";
    }

    download() {
      const { names, rows } = this.tableRows();
      // A label that a spreadsheet would take for a formula gets an apostrophe, as in veilcube's own exports.
      const harmless = (text) => (/^[=+\-@\t\r\n]/.test(text) && !Number.isFinite(Number(text)) ? "'" + text : text);
      const quoted = (text) => (/[",\n\r]/.test(text) ? '"' + harmless(text).replaceAll('"', '""') + '"' : harmless(text));
      const lines = [[...names, "value", "low", "high", "stddev"].map(quoted).join(",")];
      for (const row of rows) lines.push([...row.labels.map(quoted), row.value, row.low, row.high, row.stddev].join(","));
      const link = make("a", { href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" })), download: "counts.csv" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    /* ---- showing ---- */

    draw() {
      const found = this.answers.ask(this.masks), model = this.model;
      $("value").textContent = found ? V.shown(this.isCut ? Math.max(found.value[0], 0) : found.value[0]) : "–";
      $("interval").textContent = found
        ? `${model.confidence_words} interval: ${V.interval(found.low[0], found.high[0])}`
        : "This page holds no answer to this question; ask Python with the text below.";
      $("words").textContent = V.inWords(this.attributes, this.masks);
      $("negative").hidden = !(found && found.value[0] < 0);
      const sql = V.inSql(this.attributes, this.masks);
      $("sql").textContent = sql === null ? "-- no condition names the cell (other); GROUP BY shows it" : `SELECT COUNT(*) FROM release WHERE ${sql}`;
      const settings = model.confidence === 0.95 ? "" : `, confidence=${model.confidence}`;
      $("python").textContent = sql === null ? "# release.marginal(...) shows the cell (other)"
        : `import veilcube as vc\nvc.open("${model.file || "release.veil"}").count(${V.pythonText(sql)}${settings})`;
      $("link").textContent = location.href;
      this.cards.forEach((card, axis) => {
        const attribute = this.attributes[axis], others = this.masks.map((mask, other) => (other === axis ? null : mask));
        V.along(card.chart, attribute, this.answers.ask(others, [axis]), this.masks[axis], this.isCut, (first, last, isAdded) => this.chooseRange(axis, first, last, isAdded && !attribute.ordered));
        card.said.textContent = this.masks[axis] ? V.inWords([attribute], [this.masks[axis]]).slice(attribute.name.length + 2) : "";
        card.controls.show(this.masks[axis]);
        if (card.tree) card.tree.show();
      });
      this.drawPair();
      this.drawTable();
    }
  }

  function spelled(mask) {
    const runs = [];
    for (let i = 0; i < mask.length; i++) {
      if (!mask[i]) continue;
      if (runs.length && runs[runs.length - 1][1] === i - 1) runs[runs.length - 1][1] = i;
      else runs.push([i, i]);
    }
    return runs.map(([a, b]) => (a === b ? a : a + "-" + b)).join(",");
  }

  async function copy(node, told) {
    try {
      await navigator.clipboard.writeText(node.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(node);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    told.textContent = "Copied.";
    setTimeout(() => (told.textContent = ""), 2000);
  }

  async function start() {
    const from = $("explore").dataset.model;
    if (from) V.model = await (await fetch(from, { headers: { Accept: "application/json" } })).json();
    V.page = new Page(V.model);
    requestAnimationFrame(() => setTimeout(() => { V.ready = performance.now(); document.documentElement.dataset.ready = "yes"; }));
  }

  start().catch((problem) => {
    $("facts").textContent = `This page could not be drawn: ${problem.message}. Load it again, or ask the release with Python.`;
    throw problem;
  });
})(window);
