// The buttons of dialogues that cover the page, and other buttons with short labels. Runs in an isolated world; `press` presses one of them.
() => {
  const roots = [document];
  for (const root of roots) for (const el of root.querySelectorAll("*")) if (el.shadowRoot) roots.push(el.shadowRoot);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]);
  const seen = (el) => {
    const r = el.getBoundingClientRect();
    return r.width > 1 && r.height > 1 && el.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const around = (el) => el.parentElement || (el.getRootNode() instanceof ShadowRoot ? el.getRootNode().host : null);
  const contains = (outer, el) => {
    for (let at = el; at; at = around(at)) if (at === outer) return true;
    return false;
  };
  const roles = "[role=dialog], [role=alertdialog], [aria-modal=true], dialog[open]";
  const covering = (el) => {
    const style = getComputedStyle(el);
    if (!["fixed", "sticky"].includes(style.position)) return false;
    const r = el.getBoundingClientRect();
    const part = Math.max(0, Math.min(r.right, innerWidth) - Math.max(r.left, 0)) * Math.max(0, Math.min(r.bottom, innerHeight) - Math.max(r.top, 0));
    return part > 0.25 * innerWidth * innerHeight || (r.bottom >= innerHeight - 40 && r.top > innerHeight / 3);  // in the way, or a bar at the bottom
  };
  const dialogues = [...new Set([...all(roles), ...all("body *").filter(covering)])].filter(seen);
  const selector = "button, [role=button], input[type=button], input[type=submit], a:not([href]), a[href='#'], a[href^='javascript:']";
  const labelOf = (el) => (el.innerText || el.value || el.getAttribute("aria-label") || el.title || "").trim().slice(0, 200);
  const rows = [];
  globalThis.pandoraButtons = [];
  globalThis.pandoraDialogues = dialogues;
  for (const el of all(selector)) {
    if (!seen(el) || el.disabled) continue;
    const dialogue = dialogues.find((d) => contains(d, el));
    const form = el.closest("form");
    rows.push({
      number: globalThis.pandoraButtons.push(el) - 1,
      label: labelOf(el),
      sign: (el.getAttribute("aria-label") || el.title || "").trim().slice(0, 200),
      dialogue: dialogue ? dialogues.indexOf(dialogue) : -1,
      text: dialogue ? dialogue.innerText.slice(0, 3000) : "",
      typed: Boolean(form && form.querySelector("input:not([type=checkbox]):not([type=radio]):not([type=hidden]):not([type=submit]):not([type=button]), textarea")),
    });
    if (rows.length >= 500) break;
  }
  return rows;
}
