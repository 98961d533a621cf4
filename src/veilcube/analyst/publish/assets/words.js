/* Numbers as veilcube prints them, and the SQL and Python that ask the same question. */
"use strict";
(function (root) {
  const V = (root.Veilcube = root.Veilcube || {});

  /* As Python's f"{x:.{digits}e}": exact halves go to the even digit, where JavaScript's own goes up. */
  function rounded(x, digits) {
    const [all, power] = Math.abs(x).toExponential(60).split("e");
    const text = all.replace(".", ""), rest = text.slice(digits);
    let kept = BigInt(text.slice(0, digits)), exponent = Number(power);
    const isHalf = /^50*$/.test(rest);
    if (isHalf ? kept % 2n === 1n : rest[0] >= "5") kept += 1n;
    if (String(kept).length > digits) [kept, exponent] = [kept / 10n, exponent + 1];
    return [String(kept), exponent];
  }

  const grouped = (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ",");

  function wholeNumber(x) {
    const below = Math.floor(x), apart = x - below;
    const value = apart > 0.5 || (apart === 0.5 && below % 2 !== 0) ? below + 1 : below;
    const text = grouped(Math.abs(value).toLocaleString("en-US", { useGrouping: false, maximumFractionDigits: 0 }));
    return (x < 0 || Object.is(x, -0) ? "-" : "") + text;
  }

  /* show_number of veilcube: whole if it is whole or large, else four digits. */
  function shown(given) {
    if (!Number.isFinite(given)) return "-";
    const x = Math.abs(given) < 1e9 ? Number(given.toPrecision(10)) : given;
    if (Math.abs(x) >= 1000 || Number.isInteger(x)) return wholeNumber(x);
    const [digits, exponent] = rounded(x, 4), sign = x < 0 ? "-" : "";
    const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent < -4 || exponent >= 4) {
      const power = String(Math.abs(exponent)).padStart(2, "0");
      return sign + trimmed(digits[0] + "." + digits.slice(1)) + "e" + (exponent < 0 ? "-" : "+") + power;
    }
    if (exponent < 0) return sign + trimmed("0." + "0".repeat(-exponent - 1) + digits);
    return sign + trimmed(digits.slice(0, exponent + 1) + "." + digits.slice(exponent + 1));
  }

  const interval = (low, high) => shown(low) + " to " + shown(high);

  /* ---- what is chosen, in SQL ---- */

  function runsOf(mask, end) {
    const found = [];
    for (let i = 0; i < end; i++) {
      if (!mask[i]) continue;
      if (found.length && found[found.length - 1][1] === i - 1) found[found.length - 1][1] = i;
      else found.push([i, i]);
    }
    return found;
  }

  function rangeInSql(sql, [first, last], regular) {
    const from = sql.from[first], to = sql.to[last];
    if (sql.kind === "edges") return sql.name + " >= " + from + " AND " + sql.name + (last === regular - 1 ? " <= " : " < ") + to;
    return from === to ? sql.name + " = " + from : sql.name + " BETWEEN " + from + " AND " + to;
  }

  /* The condition on one attribute; "" if everything is chosen, null if SQL has no words for it. */
  function conditionOf(attribute, mask) {
    if (!mask || mask.every(Boolean)) return "";
    const sql = attribute.sql, n = mask.length, parts = [];
    for (let i = attribute.regular; i < n; i++) if (mask[i] && i !== attribute.missing) return null;
    if (sql.kind === "names") {
      const chosen = [];
      for (let i = 0; i < attribute.regular; i++) if (mask[i]) chosen.push(sql.from[i]);
      const group = attribute.groups.find((one) => {
        if (one.last - one.first + 1 !== chosen.length) return false;
        for (let i = one.first; i <= one.last; i++) if (!mask[i]) return false;
        return true;
      });
      if (group) parts.push(sql.name + " = '" + group.name.replaceAll("'", "''") + "'");
      else if (chosen.length === 1) parts.push(sql.name + " = " + chosen[0]);
      else if (chosen.length) parts.push(sql.name + " IN (" + chosen.join(", ") + ")");
    } else {
      for (const run of runsOf(mask, attribute.regular)) parts.push(rangeInSql(sql, run, attribute.regular));
    }
    if (attribute.missing !== null && mask[attribute.missing]) parts.push(sql.name + " IS NULL");
    if (parts.length === 1) return parts[0];
    return "(" + parts.map((part) => (part.includes(" AND ") && !part.includes("BETWEEN") ? "(" + part + ")" : part)).join(" OR ") + ")";
  }

  /* The whole condition; null if SQL has no words for it. */
  function inSql(attributes, masks) {
    const parts = attributes.map((one, axis) => conditionOf(one, masks[axis]));
    if (parts.includes(null)) return null;
    return parts.filter(Boolean).join(" AND ") || "TRUE";
  }

  function pythonText(text) {
    return '"' + text.replaceAll("\\", "\\\\").replaceAll('"', '\\"') + '"';
  }

  /* What is chosen, for people. */
  function inWords(attributes, masks) {
    const parts = [];
    attributes.forEach((one, axis) => {
      const mask = masks[axis];
      if (!mask || mask.every(Boolean)) return;
      const labels = one.labels.filter((_, i) => mask[i]);
      const ends = V.endsOf(mask, mask.length);
      const group = one.groups.find((g) => ends && g.first === ends[0] && g.last === ends[1]);
      let said = labels.length > 4 ? labels.length + " values" : labels.join(", ");
      if (group) said = group.name;
      else if (one.ordered && ends && labels.length > 1 && ends[1] < one.regular) said = spanned(labels[0], labels[labels.length - 1]);
      parts.push(one.name + ": " + said);
    });
    return parts.join("; ") || "all rows";
  }

  function spanned(first, last) {
    if (first.startsWith("[")) return first.split(",")[0] + "," + last.split(",")[1];
    return first.split(" to ")[0] + " to " + last.split(" to ").pop();
  }

  Object.assign(V, { shown, interval, inSql, inWords, pythonText });
})(typeof window === "undefined" ? globalThis : window);
