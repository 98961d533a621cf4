/* The answers of a release, computed as veilcube's Python does it: values, intervals, numbers as printed, SQL. */
"use strict";
(function (root) {
  const V = (root.Veilcube = root.Veilcube || {});

  /* ---- reading what Python wrote ---- */

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const binary = atob(text), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  }

  function unpacked(node) {
    if (Array.isArray(node)) return node.map(unpacked);
    if (node === null || typeof node !== "object") return node;
    if (typeof node.array === "string") {
      const buffer = bytesOf(node.data).buffer;
      const numbers = node.array === "i4" ? new Int32Array(buffer) : new Float64Array(buffer);
      return { shape: node.shape, numbers };
    }
    const found = {};
    for (const name of Object.keys(node)) found[name] = unpacked(node[name]);
    return found;
  }

  /* ---- values ---- */

  const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

  const MOST_REMEMBERED = 12;

  /* Sums an array over every axis that is not kept, within masks (null: everything). Sums on the way are remembered:
     the charts of a page share most of them. */
  class Sums {
    constructor(table) {
      Object.assign(this, table);
      this.known = new Map();
    }

    over(masks, kept) {
      let found = this.numbers, key = "";
      const shape = this.shape.slice();
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        if (kept.includes(axis)) continue;
        key += axis + ":" + (masks[axis] ? masks[axis].join("") : "") + " ";
        if (!this.known.has(key)) {
          if (this.known.size >= MOST_REMEMBERED) this.known.delete(this.known.keys().next().value);
          this.known.set(key, summed(found, shape, axis, masks[axis]));
        }
        found = this.known.get(key);
        shape[axis] = 1;
      }
      return Float64Array.from(found);
    }
  }

  function summed(numbers, shape, axis, mask) {
    const n = shape[axis], before = product(shape.slice(0, axis)), after = product(shape.slice(axis + 1));
    const found = new Float64Array(before * after);
    for (let b = 0; b < before; b++) {
      for (let i = 0; i < n; i++) {
        if (mask && !mask[i]) continue;
        const from = (b * n + i) * after, to = b * after;
        if (after === 1) found[to] += numbers[from];
        else for (let k = 0; k < after; k++) found[to + k] += numbers[from + k];
      }
    }
    return found;
  }

  /* Sums of classes: in each class the attributes are independent. */
  function ofClasses(parts, masks, kept, sizes) {
    const found = new Float64Array(product(kept.map((axis) => sizes[axis])));
    for (const part of parts) {
      const weights = Float64Array.from(part.weights.numbers), classes = weights.length;
      part.laws.forEach((law, axis) => {
        const mask = masks[axis], n = sizes[axis];
        if (kept.includes(axis) || (!mask && !part.cut)) return;
        for (let z = 0; z < classes; z++) {
          let inside = 0;
          for (let i = 0; i < n; i++) if (!mask || mask[i]) inside += law.numbers[z * n + i];
          weights[z] *= inside;
        }
      });
      addTable(found, weights, kept.map((axis) => part.laws[axis].numbers), kept.map((axis) => sizes[axis]));
    }
    return found;
  }

  function addTable(found, weights, laws, sizes) {
    for (let z = 0; z < weights.length; z++) {
      if (!laws.length) found[0] += weights[z];
      else if (laws.length === 1) {
        for (let i = 0; i < sizes[0]; i++) found[i] += weights[z] * laws[0][z * sizes[0] + i];
      } else {
        for (let i = 0; i < sizes[0]; i++) {
          const factor = weights[z] * laws[0][z * sizes[0] + i], row = i * sizes[1], at = z * sizes[1];
          for (let j = 0; j < sizes[1]; j++) found[row + j] += factor * laws[1][at + j];
        }
      }
    }
  }

  /* ---- half-widths of least squares: see laws/answer_noise.py and laws/standard_widths.py ---- */

  const POINTS = 41, KNOTS = [0, 0, 0, 0];
  for (let i = 2; i < POINTS - 2; i++) KNOTS.push(i * 0.025);
  KNOTS.push(1, 1, 1, 1);

  function basis(x) {
    const at = Math.min(Math.max(x, 0), 1);
    let last = 3;
    while (last < KNOTS.length - 5 && KNOTS[last + 1] <= at) last++;
    let values = [1];
    for (let degree = 1; degree < 4; degree++) {
      const lower = values;
      values = new Array(degree + 1).fill(0);
      for (let i = 0; i < degree; i++) {
        const right = KNOTS[last + i + 1], left = KNOTS[last + i + 1 - degree], slope = lower[i] / (right - left);
        values[i] += slope * (right - at);
        values[i + 1] = slope * (at - left);
      }
    }
    return [last - 3, values];
  }

  function standardWidth(table, inverse, normalShare) {
    const [row, across] = basis(inverse), [column, down] = basis(normalShare);
    let width = 0;
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 4; j++) width += table.numbers[(row + i) * POINTS + column + j] * across[i] * down[j];
    }
    return width;
  }

  const ratio = (above, below) => (below > 0 ? above / below : 0);

  function halfWidth(law, second, fourth, sixth) {
    const [v2, v4, v6] = law.cumulants, largest = Math.pow(Math.max(sixth, 0), 1 / 6);
    const isLight = v6 * sixth <= 0;
    const k2 = v2 * second + (largest * largest) / 12;
    const k4 = Math.max(v4 * fourth - Math.pow(largest, 4) / 120, 0);
    const k6 = v6 * sixth + Math.pow(largest, 6) / 252;
    const inverse = isLight ? ratio(k4, 3 * k2 * k2) : ratio(12 * Math.pow(ratio(k6, 20 * k4), 2), k4);
    const share = isLight ? 1 : Math.min(ratio(20 * k4 * k4, 6 * k6 * k2), 1);
    const margin = isLight ? 1 : law.margin;
    const width = margin * Math.sqrt(k2) * standardWidth(law.table, Math.min(inverse, 1), 1 - share) + largest / 2;
    return Math.min(width, Math.sqrt((v2 * second) / (1 - law.confidence)));
  }

  function staircase(law, cells) {
    const starts = law.starts.numbers;
    let low = 0, high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= cells) low = middle;
      else high = middle;
    }
    return law.widths.numbers[low];
  }

  /* ---- standard deviations of a mixture's answers: see analyst/estimate/mixture/errors.py ---- */

  function interpolated(x, borders, scales) {
    const n = borders.length;
    if (x <= borders[0]) return scales[0];
    if (x >= borders[n - 1]) return scales[n - 1];
    let i = 0;
    while (borders[i + 1] <= x) i++;
    return scales[i] + ((scales[i + 1] - scales[i]) / (borders[i + 1] - borders[i])) * (x - borders[i]);
  }

  function mixtureStddev(law, value, narrowed) {
    const many = narrowed.reduce((sum, one) => sum + one, 0), most = law.borders.length;
    const ofRows = Math.min(Math.max(value / law.rows, 0), 1) * law.stddev_of_rows;
    let found = law.stddev_of_rows;
    if (many > 0) {
      const kind = Math.min(many, most) - 1, weights = law.weights.numbers;
      const size = Math.log(Math.max(Math.min(value, law.rows - value), 0.5));
      let sum = weights[kind] + weights[most + kind] * size + weights[2 * most + kind] * ((size * size) / 10);
      narrowed.forEach((one, axis) => (sum += weights[3 * most + axis] * (one / many)));
      const plain = Math.exp(Math.min(Math.max(sum / 2, -5), 40));
      const stretch = interpolated(Math.log(plain), law.borders[kind].numbers, law.scales[kind].numbers);
      found = law.widening[kind] * plain * stretch;
    }
    return Math.max(found, ofRows, law.least);
  }

  /* ---- what a page asks ---- */

  class Answers {
    constructor(model) {
      this.model = model;
      this.attributes = model.attributes;
      this.sizes = model.attributes.map((one) => one.labels.length);
      this.cells = model.attributes.map((one) => one.sizes.reduce((a, b) => a + b, 0));
      this.values = unpacked(model.values);
      this.law = unpacked(model.intervals);
      this.moments = this.law.kind === "moments" ? this.law.axes.map((axis, i) => this.momentsOf(axis, i)) : null;
      if (this.values.kind === "classes") this.values.parts.forEach((part) => (part.cut = this.values.parts.length > 1));
      if (this.values.kind === "asked") {
        this.places = this.values.choices.map((one) => {
          const found = new Map();
          for (let i = 0; i < one.shape[0]; i++) found.set(one.numbers[2 * i] + " " + one.numbers[2 * i + 1], i);
          return found;
        });
      }
    }

    /* The estimates of all combinations of runs of the kept attributes (ascending), the others within masks;
       null if the page cannot answer it. */
    ask(masks, kept = []) {
      if (this.values.kind === "asked") return this.lookedUp(masks, kept);
      const value = this.sums(this.values, masks, kept);
      const around = this.law.around ? this.sums(this.law.around, masks, kept) : value;
      const shape = kept.map((axis) => this.sizes[axis]), n = product(shape);
      const low = new Float64Array(n), high = new Float64Array(n), stddev = new Float64Array(n);
      const noise = this.noiseOf(masks, kept);
      if (!noise) return null;
      for (let k = 0; k < n; k++) {
        if (this.law.kind === "errors") {
          value[k] = Math.max(value[k], 0);
          stddev[k] = mixtureStddev(this.law, value[k], noise(k));
          const width = this.law.deviations * stddev[k];
          [low[k], high[k]] = [Math.max(value[k] - width, 0), value[k] + width];
          continue;
        }
        const [width, spread] = noise(k);
        [low[k], high[k], stddev[k]] = [around[k] - width, around[k] + width, spread];
        if (this.law.around) {
          const least = this.law.least === null ? -Infinity : this.law.least;
          value[k] = Math.max(value[k], least);
          low[k] = Math.min(Math.max(low[k], least), value[k]);
          high[k] = Math.max(Math.max(high[k], least), value[k]);
        }
      }
      return { shape, value, low, high, stddev };
    }

    sums(values, masks, kept) {
      if (values.kind === "classes") return ofClasses(values.parts, masks, kept, this.sizes);
      return (values.sums = values.sums || new Sums(values.cells)).over(masks, kept);
    }

    /* Returns a function of the place among the kept combinations: what makes the interval of each. */
    noiseOf(masks, kept) {
      const kind = this.law.kind, shape = kept.map((axis) => this.sizes[axis]);
      const runOf = (k, i) => (i === 0 && kept.length === 2 ? Math.floor(k / shape[1]) : kept.length === 2 ? k % shape[1] : k);
      if (kind === "errors") {
        const narrowed = this.sizes.map((_, axis) => Number(this.chosenCells(axis, masks[axis]) < this.cells[axis]));
        return (k) => {
          kept.forEach((axis, i) => (narrowed[axis] = Number(this.attributes[axis].sizes[runOf(k, i)] < this.cells[axis])));
          return narrowed;
        };
      }
      const others = this.sizes.map((_, axis) => axis).filter((axis) => !kept.includes(axis));
      if (kind === "sums") {
        const outside = product(others.map((axis) => this.chosenCells(axis, masks[axis])));
        return (k) => {
          const cells = outside * product(kept.map((axis, i) => this.attributes[axis].sizes[runOf(k, i)]));
          return [staircase(this.law, cells), Math.sqrt(cells) * this.law.stddev];
        };
      }
      const fixed = [1, 1, 1];
      for (const axis of others) {
        const found = this.moments[axis].of(masks[axis]);
        if (!found) return null;
        found.forEach((moment, p) => (fixed[p] *= moment));
      }
      return (k) => {
        const m = fixed.slice();
        kept.forEach((axis, i) => this.moments[axis].each(runOf(k, i)).forEach((moment, p) => (m[p] *= moment)));
        return [halfWidth(this.law, m[0], m[1], m[2]), Math.sqrt(m[0] * this.law.variance)];
      };
    }

    chosenCells(axis, mask) {
      return this.attributes[axis].sizes.reduce((sum, size, i) => sum + (!mask || mask[i] ? size : 0), 0);
    }

    /* The sums of powers of the noise weights of sets of runs of one attribute. */
    momentsOf(axis, place) {
      const n = this.sizes[place], sizes = this.attributes[place].sizes;
      if (axis.kind === "flat") {
        return { of: (mask) => { const c = this.chosenCells(place, mask); return [c, c, c]; },
                 each: (i) => [sizes[i], sizes[i], sizes[i]] };
      }
      if (axis.kind === "weights") {
        const weights = axis.weights.numbers, rows = axis.weights.shape[1];
        const of = (mask) => {
          const joined = new Float64Array(rows);
          for (let i = 0; i < n; i++) {
            if (mask && !mask[i]) continue;
            for (let r = 0; r < rows; r++) joined[r] += weights[i * rows + r];
          }
          return powers(joined);
        };
        const each = [];
        for (let i = 0; i < n; i++) each.push(powers(weights.subarray(i * rows, (i + 1) * rows)));
        return { of, each: (i) => each[i] };
      }
      const [, total] = axis.moments.shape, at = (low, high) => (low * (2 * n - low + 1)) / 2 + high - low;
      const read = (low, high) => [0, 1, 2].map((p) => axis.moments.numbers[p * total + at(low, high)]);
      return {
        of: (mask) => { const ends = endsOf(mask, n); return ends && read(ends[0], ends[1]); },
        each: (i) => read(i, i),
      };
    }

    lookedUp(masks, kept) {
      const narrowed = [];
      masks.forEach((mask, axis) => { if (kept.includes(axis) || (mask && !mask.every(Boolean))) narrowed.push(axis); });
      const table = this.values.tables.find((one) => one.axes.join() === narrowed.join());
      if (!table) return null;
      const shape = kept.map((axis) => this.sizes[axis]), n = product(shape), total = table.numbers.numbers.length / 4;
      const found = { shape, value: new Float64Array(n), low: new Float64Array(n), high: new Float64Array(n), stddev: new Float64Array(n) };
      for (let k = 0; k < n; k++) {
        let at = 0;
        for (const axis of narrowed) {
          const i = kept.indexOf(axis);
          const run = i < 0 ? 0 : kept.length === 2 ? (i ? k % shape[1] : Math.floor(k / shape[1])) : k;
          const ends = i < 0 ? endsOf(masks[axis], this.sizes[axis]) : [run, run];
          const place = ends && this.places[axis].get(ends[0] + " " + ends[1]);
          if (place === undefined || place === null) return null;
          at = at * this.places[axis].size + place;
        }
        ["value", "low", "high", "stddev"].forEach((name, row) => (found[name][k] = table.numbers.numbers[row * total + at]));
      }
      return found;
    }
  }

  function powers(weights) {
    let second = 0, fourth = 0, sixth = 0;
    for (const w of weights) {
      const square = w * w;
      second += square;
      fourth += square * square;
      sixth += square * square * square;
    }
    return [second, fourth, sixth];
  }

  /* The first and the last chosen run if there is no gap between them, else null. */
  function endsOf(mask, n) {
    if (!mask) return [0, n - 1];
    const first = mask.indexOf(1), last = mask.lastIndexOf(1);
    if (first < 0) return null;
    for (let i = first; i <= last; i++) if (!mask[i]) return null;
    return [first, last];
  }

  Object.assign(V, { Answers, endsOf });
})(typeof window === "undefined" ? globalThis : window);
