"use strict";
// Sorting of tables by their headings. Without script the tables stand as they are.
(function () {
  const collator = new Intl.Collator("en", { numeric: true });

  function valueOf(row, column) {
    const cell = row.cells[column];
    const number = cell.dataset.v;
    return number === undefined ? null : Number(number);
  }

  function compare(a, b, column, numeric) {
    if (numeric) {
      const x = valueOf(a, column);
      const y = valueOf(b, column);
      if (x === null || y === null) return null;
      return x - y;
    }
    return collator.compare(a.cells[column].textContent, b.cells[column].textContent);
  }

  function sort(table, heading, column) {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    const numeric = heading.classList.contains("num");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      const found = compare(a, b, column, numeric);
      if (found === null) {  // what has no number stands last, either way
        return (valueOf(a, column) === null) - (valueOf(b, column) === null);
      }
      return ascending ? found : -found;
    });
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append.apply(body, rows);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.append.apply(button, Array.from(heading.childNodes));
      heading.append(button);
      button.addEventListener("click", function () { sort(table, heading, column); });
    });
  }

  // What is folded is printed, but for the numbers of figures.
  let opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open]):not(.numbers)"));
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", function () {
    for (const part of opened) part.open = false;
  });
})();
