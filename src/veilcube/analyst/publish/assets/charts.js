/* Charts without a library: bars or a line with intervals, and a heatmap; a range or a rectangle is dragged on them. */
"use strict";
(function (root) {
  const V = (root.Veilcube = root.Veilcube || {});
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_BARS = 60, MOST_ROWS = 40, SHADES = 100;

  function svg(name, attributes, parent, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

  /* Round numbers from low to high, about so many. */
  function ticks(low, high, many) {
    const rough = (high - low) / many || 1, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const found = [];
    for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(Math.abs(t) < step / 2 ? 0 : t);
    return found;
  }

  function short(x) {
    const size = Math.abs(x);
    if (size >= 1e6) return +(x / 1e6).toPrecision(3) + "M";
    return size >= 1e4 ? +(x / 1e3).toPrecision(3) + "k" : String(+x.toPrecision(4));
  }

  /* Calls back with the first and last place of a drag; ``placeOf`` turns an event into a place. */
  function draggable(node, placeOf, onMove, onEnd) {
    let from = null;
    node.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      from = placeOf(event);
      node.setPointerCapture(event.pointerId);
      onMove(from, from);
      event.preventDefault();
    });
    node.addEventListener("pointermove", (event) => from !== null && onMove(from, placeOf(event)));
    node.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const start = from;
      from = null;
      onEnd(start, placeOf(event), event);
    });
    node.addEventListener("pointercancel", () => (from = null));
  }

  /* Draws the counts along one attribute. ``onRange(first, last, isAdded)`` is told what was dragged. */
  function along(holder, attribute, found, mask, isCut, onRange) {
    const n = attribute.labels.length;
    const upright = attribute.ordered || n > MOST_ROWS;
    holder.replaceChildren();
    if (!found) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "This page holds no answers for so many conditions at once; widen one of the others.";
      return void holder.append(note);
    }
    const at = (array, i) => (isCut ? Math.max(array[i], 0) : array[i]);
    let least = 0, most = 1e-9;
    for (let i = 0; i < n; i++) {
      least = Math.min(least, at(found.low, i));
      most = Math.max(most, at(found.high, i));
    }
    const draw = upright ? drawUpright : drawLying;
    draw(holder, { attribute, found, mask, at, least, most, n, onRange });
  }

  function frameOf(holder, width, height, label) {
    const frame = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
    holder.append(frame);
    return frame;
  }

  function summary(attribute) {
    return `Counts by ${attribute.name} with intervals. The controls below choose the same by keyboard; the table shows the numbers.`;
  }

  function drawUpright(holder, { attribute, found, mask, at, least, most, n, onRange }) {
    const width = 460, height = 210, left = 48, top = 8, right = 8, bottom = 26;
    const inner = width - left - right, tall = height - top - bottom, step = inner / n;
    const y = (v) => top + tall * (1 - (v - least) / (most - least));
    const frame = frameOf(holder, width, height, summary(attribute));
    for (const tick of ticks(least, most, 4)) {
      svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: tick === 0 ? "zero" : "grid" }, frame);
      svg("text", { x: left - 6, y: y(tick) + 4, class: "tick end" }, frame, short(tick));
    }
    const shade = svg("rect", { y: top, height: tall, class: "shade" }, frame);
    if (n <= MOST_BARS) {
      for (let i = 0; i < n; i++) {
        const x = left + step * i, value = at(found.value, i);
        const kind = !mask || mask[i] ? "bar chosen" : "bar";
        svg("rect", { x: x + step * 0.12, width: Math.max(step * 0.76, 1), y: Math.min(y(value), y(0)), height: Math.abs(y(value) - y(0)), class: kind }, frame);
        svg("line", { x1: x + step / 2, x2: x + step / 2, y1: y(at(found.low, i)), y2: y(at(found.high, i)), class: "whisker" }, frame);
      }
    } else {
      const x = (i) => left + step * (i + 0.5), up = [], down = [], line = [];
      for (let i = 0; i < n; i++) {
        up.push(`${x(i)},${y(at(found.high, i))}`);
        down.unshift(`${x(i)},${y(at(found.low, i))}`);
        line.push(`${x(i)},${y(at(found.value, i))}`);
      }
      svg("polygon", { points: up.concat(down).join(" "), class: "band" }, frame);
      svg("polyline", { points: line.join(" "), class: "line" }, frame);
    }
    const every = Math.max(1, Math.ceil(n / Math.max(2, Math.floor(inner / (8 * Math.min(10, longest(attribute.labels)) + 14)))));
    for (let i = 0; i < n; i += every) {
      svg("text", { x: left + step * (i + 0.5), y: height - 8, class: "tick middle" }, frame, cut(attribute.labels[i], 12));
    }
    const ends = mask && !mask.every(Boolean) ? [mask.indexOf(1), mask.lastIndexOf(1)] : null;
    const place = (first, last) => {
      shade.setAttribute("x", left + step * Math.min(first, last));
      shade.setAttribute("width", step * (Math.abs(last - first) + 1));
    };
    if (ends) place(...ends);
    const placeOf = (event) => {
      const box = frame.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
      return Math.min(Math.max(Math.floor((x - left) / step), 0), n - 1);
    };
    pointAt(frame, attribute, found, placeOf);
    draggable(frame, placeOf, place, (from, to, event) => onRange(Math.min(from, to), Math.max(from, to), event.ctrlKey || event.metaKey));
  }

  function drawLying(holder, { attribute, found, mask, at, least, most, n, onRange }) {
    const row = 19, width = 460, left = Math.min(170, 20 + 7 * longest(attribute.labels)), right = 10, bottom = 22;
    const inner = width - left - right, height = n * row + bottom;
    const x = (v) => left + inner * ((v - least) / (most - least));
    const frame = frameOf(holder, width, height, summary(attribute));
    for (const tick of ticks(least, most, 4)) {
      svg("line", { x1: x(tick), x2: x(tick), y1: 0, y2: n * row, class: tick === 0 ? "zero" : "grid" }, frame);
      svg("text", { x: x(tick), y: height - 6, class: "tick middle" }, frame, short(tick));
    }
    const shade = svg("rect", { x: 0, width, class: "shade" }, frame);
    for (let i = 0; i < n; i++) {
      const value = at(found.value, i), y = i * row, kind = !mask || mask[i] ? "bar chosen" : "bar";
      svg("text", { x: left - 8, y: y + row * 0.7, class: "tick end" }, frame, cut(attribute.labels[i], Math.floor((left - 16) / 6.4)));
      svg("rect", { x: Math.min(x(value), x(0)), width: Math.abs(x(value) - x(0)), y: y + 3, height: row - 6, class: kind }, frame);
      svg("line", { x1: x(at(found.low, i)), x2: x(at(found.high, i)), y1: y + row / 2, y2: y + row / 2, class: "whisker" }, frame);
    }
    const place = (first, last) => {
      shade.setAttribute("y", row * Math.min(first, last));
      shade.setAttribute("height", row * (Math.abs(last - first) + 1));
    };
    const placeOf = (event) => {
      const box = frame.getBoundingClientRect();
      return Math.min(Math.max(Math.floor((((event.clientY - box.top) / box.height) * height) / row), 0), n - 1);
    };
    pointAt(frame, attribute, found, placeOf);
    draggable(frame, placeOf, place, (from, to, event) => onRange(Math.min(from, to), Math.max(from, to), event.ctrlKey || event.metaKey));
  }

  const longest = (labels) => labels.reduce((most, label) => Math.max(most, label.length), 1);

  /* Says what is under the pointer. */
  function pointAt(frame, attribute, found, placeOf) {
    const title = svg("title", {}, frame, "");
    frame.addEventListener("pointermove", (event) => {
      const i = placeOf(event);
      title.textContent = `${attribute.labels[i]}: ${V.shown(found.value[i])} (${V.interval(found.low[i], found.high[i])})`;
    });
  }

  /* Draws two attributes as colours; a dot where the interval reaches 0. */
  function heatmap(holder, across, upwards, found, chosen, onBox) {
    holder.replaceChildren();
    const columns = across.labels.length, rows = upwards.labels.length;
    const left = Math.min(120, 16 + 7 * longest(upwards.labels)), bottom = 22, width = 640;
    const height = Math.max(160, Math.min(460, rows * 22)), inner = width - left;
    const frame = document.createElement("div");
    frame.className = "heat";
    const canvas = document.createElement("canvas"), scale = Math.min(root.devicePixelRatio || 1, 2);
    canvas.width = width * scale;
    canvas.height = (height + bottom) * scale;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Counts by ${across.name} and ${upwards.name}. The table shows the numbers; the controls of each attribute choose the same by keyboard.`);
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const cells = { column: inner / columns, row: height / rows };
    const rowOf = (j) => (upwards.ordered ? rows - 1 - j : j);
    const paint = (box) => {
      const pen = canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height + bottom);
      let most = 1e-9;
      for (const value of found.value) most = Math.max(most, value);
      const ink = colour("--muted"), shades = palette(colour("--heat-low"), colour("--heat-high"));
      for (let i = 0; i < columns; i++) {
        for (let j = 0; j < rows; j++) {
          const k = i * rows + j, x = left + i * cells.column, y = rowOf(j) * cells.row;
          pen.fillStyle = shades[Math.round(SHADES * Math.sqrt(Math.max(found.value[k], 0) / most))];
          pen.fillRect(x, y, Math.ceil(cells.column), Math.ceil(cells.row));
          if (found.low[k] <= 0 && cells.column > 5 && cells.row > 5) {
            pen.fillStyle = ink;
            pen.fillRect(x + cells.column / 2 - 1.25, y + cells.row / 2 - 1.25, 2.5, 2.5);
          }
        }
      }
      labels(pen, ink);
      if (box) {
        pen.strokeStyle = colour("--chosen");
        pen.lineWidth = 2.5;
        const low = Math.min(rowOf(box[2]), rowOf(box[3]));
        pen.strokeRect(left + box[0] * cells.column, low * cells.row, (box[1] - box[0] + 1) * cells.column, (box[3] - box[2] + 1) * cells.row);
      }
    };
    const labels = (pen, ink) => {
      pen.fillStyle = ink;
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "end";
      const skip = Math.ceil(14 / cells.row), room = 8 * Math.min(10, longest(across.labels)) + 10, jump = Math.ceil(room / cells.column);
      for (let j = 0; j < rows; j += skip) pen.fillText(cut(upwards.labels[j], Math.floor((left - 8) / 6.5)), left - 6, (rowOf(j) + 0.5) * cells.row + 4);
      pen.textAlign = "center";
      for (let i = 0; i < columns; i += jump) pen.fillText(cut(across.labels[i], 12), Math.min(left + (i + 0.5) * cells.column, width - room / 2), height + 16);
    };
    const placeOf = (event) => {
      const box = canvas.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
      const y = ((event.clientY - box.top) / box.height) * (height + bottom), limit = (v, n) => Math.min(Math.max(Math.floor(v), 0), n - 1);
      return [limit((x - left) / cells.column, columns), rowOf(limit(y / cells.row, rows))];
    };
    const between = (a, b) => [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    canvas.addEventListener("pointermove", (event) => {
      const [i, j] = placeOf(event), k = i * rows + j;
      canvas.title = `${across.labels[i]}, ${upwards.labels[j]}: ${V.shown(found.value[k])} (${V.interval(found.low[k], found.high[k])})`;
    });
    draggable(canvas, placeOf, (a, b) => paint(between(a, b)), (a, b) => onBox(...between(a, b)));
    paint(chosen);
    frame.append(canvas);
    holder.append(frame);
  }

  /* Colours from low to high, so many and one. */
  function palette(low, high) {
    const read = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const from = read(low), to = read(high);
    return Array.from({ length: SHADES + 1 }, (_, k) => "rgb(" + from.map((c, i) => Math.round(c + ((to[i] - c) * k) / SHADES)).join(",") + ")");
  }

  Object.assign(V, { along, heatmap });
})(window);
