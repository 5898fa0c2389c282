// Filters the rows and the tree of a page while the user chooses and types. A page without it shows the same rows, folded.
"use strict";
(() => {
  const form = document.querySelector("form.filter");
  const groups = [...document.querySelectorAll("details.rows")];
  const tree = [...document.querySelectorAll(".tree li")];
  if (!form || !(groups.length || tree.length)) return;
  const MAX_OPEN = 200;
  const opened = groups.map((group) => group.open);
  const openedTree = tree.map((line) => line.firstElementChild?.open);
  const verdict = form.elements.verdict, text = form.elements.q, result = form.querySelector("output");
  form.hidden = false;

  function apply() {
    const wanted = verdict?.value ?? "", words = text.value.toLowerCase();
    let shown = 0, total = 0, open = 0;
    groups.forEach((group, n) => {
      let found = 0;
      for (const row of group.querySelectorAll("tbody tr")) {
        total += 1;
        row.hidden = !((!wanted || row.dataset.verdicts.split(" ").includes(wanted)) && row.textContent.toLowerCase().includes(words));
        found += row.hidden ? 0 : 1;
      }
      shown += found;
      group.hidden = !found;
      group.open = wanted || words ? found > 0 && open + found <= MAX_OPEN : opened[n];
      open += group.open ? found : 0;
    });
    const found = tree.filter((line) => words && line.textContent.toLowerCase().includes(words));
    tree.forEach((line, n) => {
      line.hidden = found.length > 0 && !found.includes(line);
      if (openedTree[n] !== undefined) line.firstElementChild.open = openedTree[n] || (found.length <= MAX_OPEN && found.includes(line));
    });
    const documents = tree.length ? `, ${found.length} of ${tree.length} documents` : "";
    result.textContent = wanted || words ? `${shown} of ${total} rows${words ? documents : ""}` : "";
  }

  form.addEventListener("submit", (event) => {
    if (form.dataset.filtered === undefined) {
      event.preventDefault();
      apply();
    }
  });
  form.addEventListener("input", () => form.dataset.filtered === undefined ? apply() : undefined);
})();
