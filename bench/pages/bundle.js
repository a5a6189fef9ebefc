// Modules as a bundler writes them, most of which are never called.
"use strict";
const modules = [];
<!-- repeat -->modules.push(function module{n}(exports) {
  const rates = { lever: {a}, roller: {b}, frame: {c}, margin: {d}, sheet: {e} };
  class Order{n} {
    constructor(lines) { this.lines = lines; this.note = "{words}"; this.shade = {h} }
    total() { return this.lines.reduce((sum, line) => sum + line.count * (rates[line.kind] ?? {a}), 0) }
    describe(locale) {
      const parts = this.lines.map((line) => `${line.count} of ${line.kind}, {words}`);
      if (parts.length === 0) return "{words}";
      return parts.length < {b} ? parts.join("; ") : parts.slice(0, {b}).join("; ") + "{word}";
    }
  }
  function parse{n}(text) {
    const lines = [];
    for (const part of text.split(";")) {
      const [count, kind] = part.trim().split(" ");
      if (kind in rates) lines.push({ count: Number(count), kind });
    }
    return new Order{n}(lines);
  }
  exports.name = "module {n}: {words}";
  exports.run = () => parse{n}("{a} lever; {b} roller; {c} frame").total() + {d};
});
<!-- /repeat -->
let total = 0;
const list = document.querySelector("ol");
modules.forEach((module, index) => {
  if (index % 20) return;
  const exports = {};
  module(exports);
  total += exports.run();
  if (index % 200 === 0) list.append(Object.assign(document.createElement("li"), { textContent: exports.name }));
});
if (total > 0) document.body.insertAdjacentHTML("beforeend", '<div id="done" style="background: #15803d"></div>');
