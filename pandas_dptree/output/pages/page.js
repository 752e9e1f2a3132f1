"use strict";
// Search, sorting and folding. All that they show is on the page without them.
(() => {
  const words = JSON.parse(document.body.dataset.words);
  const language = document.documentElement.lang;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const plain = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

  // A run is a head, or none, and the rows below it: a group of a table, or what a total adds up.
  const isHead = row => row.matches(".g, .t");
  const runsOf = body => {
    const runs = [{ head: null, rows: [] }];
    for (const row of body.rows)
      if (isHead(row)) runs.push({ head: row, rows: [] });
      else runs.at(-1).rows.push(row);
    return runs;
  };
  const nameOf = row => (row ? plain(row.cells[0].textContent) : "");
  const tables = all("main table:not(.key)").map(table => ({
    table,
    box: table.closest(".x") ?? table,
    title: table.closest(".cols") && table.caption ? plain(table.caption.textContent) : "",
    runs: [...table.tBodies].flatMap(runsOf).map(run => ({
      ...run, name: nameOf(run.head), names: run.rows.map(nameOf), order: run.rows,
    })),
  }));
  const foldable = all("main details").filter(each => each.querySelector("table:not(.key)"));
  const sections = all("main > section");

  // Folding: groups of tables by a button in their head; `details` fold without a script.
  const folds = tables.flatMap(({ runs }) => runs).filter(({ head }) => head?.matches(".g")).map(run => {
    const cell = run.head.cells[0];
    const button = make("button", { type: "button" }, ...cell.childNodes);
    const fold = open => {
      button.setAttribute("aria-expanded", open);
      run.rows.forEach(row => row.classList.toggle("folded", !open));
    };
    fold(true);
    button.onclick = () => { fold(button.ariaExpanded !== "true"); name(); };
    cell.append(button);
    return { fold, isOpen: () => button.ariaExpanded === "true" };
  });
  const foldAll = make("button", { type: "button" });
  const isAllOpen = () => foldable.every(each => each.open) && folds.every(each => each.isOpen());
  const name = () => { foldAll.textContent = isAllOpen() ? words.fold : words.unfold; };
  const unfold = open => {
    foldable.forEach(each => { each.open = open; });
    folds.forEach(each => each.fold(open));
    name();
  };
  foldAll.hidden = !foldable.length && !folds.length;
  foldAll.onclick = () => unfold(!isAllOpen());
  foldable.forEach(each => each.addEventListener("toggle", name));
  name();

  // Search: what matches stays, with the head above it; below a head that matches, everything does.
  const input = make("input", { type: "search", autocomplete: "off" });
  const status = make("span", { className: "note" });
  status.setAttribute("role", "status");
  const search = () => {
    const wanted = plain(input.value.trim());
    let found = 0;
    for (const { table, box, title, runs } of tables) {
      let any = false;
      for (const { head, rows, name, names } of runs) {
        const whole = (title && title.includes(wanted)) || (head && rows.length && name.includes(wanted));
        let here = Boolean(head) && name.includes(wanted);
        found += here && !rows.length;
        rows.forEach((row, i) => {
          row.hidden = !whole && !names[i].includes(wanted);
          here ||= !row.hidden;
          found += !row.hidden;
        });
        if (head) head.hidden = !here;
        any ||= here;
      }
      table.hidden = box.hidden = !any;
    }
    for (const section of sections) {
      section.hidden = wanted && tables.every(({ table }) => table.hidden || !section.contains(table));
      const link = document.querySelector(`nav a[href="#${CSS.escape(section.id)}"]`);
      if (link) link.parentNode.hidden = section.hidden;
    }
    if (wanted) unfold(true);
    const text = new Intl.PluralRules(language).select(found) === "one" ? words.one : words.many;
    status.textContent = wanted ? text.replace("{n}", found.toLocaleString(language)) : "";
  };
  input.addEventListener("input", search);
  document.querySelector("nav").append(make(
    "div", { className: "tools" }, make("label", {}, words.find, " ", input), foldAll, status));

  // Sorting below each head: names from A, numbers from the largest; then the other way; then as before.
  const collator = new Intl.Collator(language, { numeric: true });
  const number = text => {
    const signs = { [words.thousands]: "", [words.decimal]: ".", [words.minus]: "-" };
    const found = [...text].map(sign => signs[sign] ?? sign).join("").match(/^[^\d\-]*(-?\d+(?:\.\d+)?)(?![\d.:\-])/);
    return found ? Number(found[1]) : NaN;
  };
  const compare = (p, q) => {
    const [x, y] = [number(p), number(q)];
    return Number.isNaN(x) && Number.isNaN(y) ? collator.compare(p, q) : x - y;
  };
  const sort = (runs, column, direction) => {
    for (const { head, rows, order } of runs) {
      const body = (head ?? order[0])?.parentNode;
      if (!body || !order.length) continue;
      const own = new Set(order);
      const after = order.map(row => row.nextElementSibling).find(row => !own.has(row)) ?? null;
      const texts = new Map(order.map(row => [row, row.cells[column]?.textContent.trim() ?? ""]));
      const isMissing = row => /^\p{Pd}?$/u.test(texts.get(row));
      const sign = direction === "ascending" ? 1 : -1;
      const sorted = (p, q) => {
        if (isMissing(p) || isMissing(q)) return isMissing(p) - isMissing(q);
        return sign * (column ? compare : collator.compare)(texts.get(p), texts.get(q));
      };
      (direction ? [...order].sort(sorted) : order).forEach(row => body.insertBefore(row, after));
    }
  };
  for (const { table } of tables) {
    const columns = table.closest(".cols"); // the first of the tables in columns has the heads of all
    const peers = tables.filter(each => each.table === table || (columns && columns.contains(each.table)));
    const beside = peers.flatMap(({ runs }) => runs);
    const heads = all("thead:not(.sr) tr:last-child > th[scope=col]", table);
    for (const head of heads) {
      if (!head.textContent.trim() || head.querySelector(".axis")) continue;
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.onclick = () => {
        const cycle = head.cellIndex ? ["descending", "ascending"] : ["ascending", "descending"];
        const direction = cycle[cycle.indexOf(head.ariaSort) + 1];
        heads.forEach(each => each.removeAttribute("aria-sort"));
        if (direction) head.setAttribute("aria-sort", direction);
        sort(beside, head.cellIndex, direction);
      };
    }
  }
})();
