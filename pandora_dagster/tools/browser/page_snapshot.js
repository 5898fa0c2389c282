// The page as HTML, with a mark on every element that nobody sees. Runs in an isolated world: the page cannot change its functions.
(mark, limits) => {
  const started = performance.now();
  const notices = new Set();
  const UNSEEN = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SVG", "MATH", "CANVAS", "AUDIO", "VIDEO", "OBJECT", "EMBED", "TEXTAREA", "PARAM", "SOURCE", "TRACK"]);
  const VOID = new Set(["AREA", "BASE", "BR", "COL", "EMBED", "HR", "IMG", "INPUT", "LINK", "META", "SOURCE", "TRACK", "WBR"]);
  const REPLACED = new Set(["IMG", "VIDEO", "CANVAS", "SVG", "IFRAME", "OBJECT", "EMBED"]);
  const MIN_OPACITY = 0.05, MIN_FONT_PX = 2, MIN_CONTRAST = 15, MIN_PX = 2, COVERING_SHARE = 0.5;
  const nameOf = (el) => el.tagName.toUpperCase();
  const parentOf = (el) => el.assignedSlot || el.parentElement || (el.getRootNode() instanceof ShadowRoot ? el.getRootNode().host : null);
  const styles = new Map();
  const styleOf = (el) => {
    if (!styles.has(el)) styles.set(el, getComputedStyle(el));
    return styles.get(el);
  };
  const color = (text) => {  // [r, g, b, alpha] of a computed color; null for a form that is not known
    const found = text.match(/^rgba?\(([^)]*)\)$/);
    if (!found) return null;
    const parts = found[1].split(/[\s,/]+/).map(Number);
    return [parts[0], parts[1], parts[2], parts.length > 3 ? parts[3] : 1];
  };
  const ownTexts = (el) => [...el.childNodes].filter((node) => node.nodeType === 3 && /\S/.test(node.data));
  const textRects = (el) => {
    const rects = [];
    for (const node of ownTexts(el).slice(0, 4)) {
      const range = el.ownerDocument.createRange();
      range.selectNodeContents(node);
      const all = [...range.getClientRects()].filter((r) => r.width > 0 && r.height >= MIN_PX);
      rects.push(...(all.length > 3 ? [all[0], all[all.length >> 1], all[all.length - 1]] : all));
    }
    return rects;
  };
  const gone = (el, style, opacity) => {  // nothing inside it can be seen either
    if (style.display === "none") return true;
    if (style.display !== "contents" && !el.checkVisibility()) return true;
    if (opacity <= MIN_OPACITY || /opacity\(0(?:\.0\d*)?%?\)/.test(style.filter)) return true;
    if (style.position === "absolute" || style.position === "fixed") {
      const clip = style.clip.match(/^rect\(([^)]*)\)$/);
      if (clip) {
        const [top, right, bottom, left] = clip[1].split(/[\s,]+/).map(parseFloat);
        if (right - left <= MIN_PX || bottom - top <= MIN_PX) return true;
      }
    }
    return false;
  };
  // Whether elements around it that cannot be scrolled cut it off, and the innermost one around it that can.
  const frameOf = (el, rect) => {
    let box = rect, escape = styleOf(el).position, scroller = null;
    for (let around = parentOf(el), inner = el; around; inner = around, around = parentOf(around)) {
      const name = nameOf(around);
      if (name === "HTML" || name === "BODY") break;
      const style = styleOf(around);
      if (style.display === "contents" || style.display === "inline") continue;
      const holds = style.transform !== "none" || style.contain.includes("paint");
      if ((escape === "fixed" && !holds) || (escape === "absolute" && style.position === "static" && !holds)) continue;
      const r = around.getBoundingClientRect();
      const across = style.overflowX, down = style.overflowY;
      if ((across === "hidden" || across === "clip") && (Math.min(box.right, r.right) - Math.max(box.left, r.left) < MIN_PX)) return { isCut: true, scroller };
      if ((down === "hidden" || down === "clip") && (Math.min(box.bottom, r.bottom) - Math.max(box.top, r.top) < MIN_PX)) return { isCut: true, scroller };
      const slides = (/auto|scroll/.test(across) && around.scrollWidth > around.clientWidth) || (/auto|scroll/.test(down) && around.scrollHeight > around.clientHeight);
      if (slides) { box = r; scroller = scroller || around; }
      escape = style.position;
    }
    return { isCut: false, scroller };
  };
  const within = (r, outer) => r.left + r.width / 2 >= outer.left && r.left + r.width / 2 < outer.right && r.top + r.height / 2 >= outer.top && r.top + r.height / 2 < outer.bottom;
  const opaque = (el) => {  // its background as [r, g, b]; null: see through; "picture": not known
    const style = styleOf(el);
    if (REPLACED.has(nameOf(el))) return "picture";
    if (style.backgroundImage !== "none" && style.webkitBackgroundClip !== "text") return "picture";
    const found = color(style.backgroundColor);
    if (!found) return style.backgroundColor === "transparent" ? null : "picture";
    return found[3] >= 0.5 ? found : null;
  };
  const behind = (elements) => {
    for (const el of elements) {
      const found = opaque(el);
      if (found) return found;
    }
    return [255, 255, 255, 1];
  };
  const lineage = (el) => {
    const list = [];
    for (let at = el; at; at = parentOf(at)) list.push(at);
    return list;
  };
  const sameColor = (el, stack) => {
    const style = styleOf(el);
    if (style.textShadow !== "none") return false;
    if (parseFloat(style.webkitTextStrokeWidth) > 0) return false;
    const text = color(style.webkitTextFillColor) || color(style.color);
    if (!text) return false;
    if (style.webkitBackgroundClip === "text" && style.backgroundImage !== "none") return false;
    if (text[3] <= MIN_OPACITY) return true;
    const back = behind(stack);
    if (back === "picture") return false;
    return [0, 1, 2].every((i) => Math.abs(text[i] * text[3] + back[i] * (1 - text[3]) - back[i]) < MIN_CONTRAST);
  };
  const covers = (el, view) => {
    if (!opaque(el)) return false;
    let opacity = 1, fixed = null;
    for (const at of lineage(el)) {
      opacity *= parseFloat(styleOf(at).opacity);
      if (["fixed", "sticky"].includes(styleOf(at).position)) fixed = at;
    }
    if (opacity < 0.9) return false;
    const alpha = color(styleOf(el).backgroundColor);
    if (!REPLACED.has(nameOf(el)) && styleOf(el).backgroundImage === "none" && alpha && alpha[3] < 0.9) return false;
    if (!fixed) return true;
    const r = fixed.getBoundingClientRect();
    return r.width * r.height >= COVERING_SHARE * view.innerWidth * view.innerHeight;  // a bar at an edge: the page scrolls below it
  };
  const seenAt = (el, x, y, view) => {
    const stack = el.getRootNode().elementsFromPoint(x, y);
    const place = stack.indexOf(el);
    if (place < 0) return false;
    for (const above of stack.slice(0, place)) if (!el.contains(above) && covers(above, view)) return false;
    return !sameColor(el, stack.slice(place).concat(lineage(el)));
  };
  const inView = (r, view) => r.left + r.width / 2 >= 0 && r.left + r.width / 2 < view.innerWidth && r.top + r.height / 2 >= 0 && r.top + r.height / 2 < view.innerHeight;
  const showsText = (el) => {
    const view = el.ownerDocument.defaultView;
    const style = styleOf(el);
    if (style.visibility !== "visible" || parseFloat(style.fontSize) < MIN_FONT_PX) return false;
    let rects = textRects(el);
    if (!rects.length) return false;
    const root = el.ownerDocument.documentElement;
    const width = Math.max(root.scrollWidth, view.innerWidth), height = Math.max(root.scrollHeight, view.innerHeight);
    const away = (r) => r.right + view.scrollX <= MIN_PX || r.bottom + view.scrollY <= MIN_PX
      || r.left + view.scrollX >= Math.min(width, 3 * view.innerWidth) - MIN_PX || r.top + view.scrollY >= height - MIN_PX;
    rects = rects.filter((r) => !frameOf(el, r).isCut);
    const scroller = rects.length ? frameOf(el, rects[0]).scroller : null;
    if (!scroller) rects = rects.filter((r) => !away(r));
    if (!rects.length) return false;
    if (performance.now() - started > limits.milliseconds) {
      notices.add("some text of a large page was not tested for what covers it");
      return !sameColor(el, lineage(el));
    }
    if (!inView(rects[0], view)) {
      view.scrollTo({ left: view.scrollX + rects[0].left - view.innerWidth / 2, top: view.scrollY + rects[0].top - view.innerHeight / 2, behavior: "instant" });
    }
    if (scroller && !within(textRects(el)[0] || rects[0], scroller.getBoundingClientRect())) {
      el.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    }
    const now = textRects(el).filter((r) => inView(r, view) && !frameOf(el, r).isCut);
    if (!now.length) return Boolean(scroller) && !sameColor(el, lineage(el));
    return now.some((r) => seenAt(el, r.left + r.width / 2, r.top + r.height / 2, view) || seenAt(el, r.left + Math.min(3, r.width / 4), r.top + r.height / 2, view));
  };
  const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const escapeValue = (text) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
  const out = [];
  let size = 0;
  const put = (text) => { size += text.length; if (size <= limits.characters) out.push(text); };
  const open = (el, state) => {
    const name = el.localName.replace(/[^\w-]/g, "-");
    let text = `<${name}`;
    for (const { name: key, value } of el.attributes) {
      if (/^[\w:.-]+$/.test(key) && !/^on|^style$|^srcdoc$/i.test(key) && key !== mark) text += ` ${key}="${escapeValue(value.slice(0, limits.value))}"`;
    }
    if (state === "struck") text += ' style="text-decoration: line-through"';
    return text;
  };
  const children = (el) => {
    if (el.shadowRoot) return [...el.shadowRoot.childNodes];
    if (nameOf(el) === "SLOT" && el.assignedNodes().length) return el.assignedNodes();
    return [...el.childNodes];
  };
  // `hidden`: the nearest element around it that says so is marked; `lost`: nothing inside can be seen.
  const walk = (el, hidden, lost, depth, around) => {
    const name = nameOf(el);
    if (UNSEEN.has(name)) {
      if (name === "SCRIPT" && /^application\/ld\+json\s*$/i.test(el.type)) put(`${open(el)}>${el.textContent.replace(/<\//g, "<\\/")}</script>`);
      return;
    }
    const style = styleOf(el);
    const opacity = around * parseFloat(style.opacity);
    const nowLost = lost || gone(el, style, opacity);
    let nowHidden = hidden || nowLost;
    if (!nowLost && ownTexts(el).length) nowHidden = !showsText(el);
    else if (!nowLost && (name === "IFRAME" || name === "FRAME")) {
      const r = el.getBoundingClientRect();
      nowHidden = hidden || style.visibility !== "visible" || r.width < 10 || r.height < 10 || frameOf(el, r).isCut;
    }
    const struck = style.textDecorationLine.includes("line-through") && !["S", "DEL", "STRIKE"].includes(name);
    const isFrame = name === "IFRAME" || name === "FRAME";
    put((isFrame ? "<div" : open(el, struck ? "struck" : "")) + (nowHidden === hidden ? "" : nowHidden ? ` ${mark}=""` : ` ${mark}="no"`) + ">");
    if (VOID.has(name)) return;
    if (isFrame) {
      let inner = null;
      try { inner = el.contentDocument; } catch { inner = null; }
      if (inner && inner.body) {
        prepare(inner);
        for (const child of inner.body.children) walk(child, nowHidden, nowLost || nowHidden, depth + 1, opacity);
      }
      put("</div>");
      return;
    }
    if (depth > limits.depth) { notices.add("elements nested too deep were flattened"); put(escapeText(el.textContent)); }
    else for (const child of children(el)) {
      if (child.nodeType === 3) put(escapeText(child.data));
      else if (child.nodeType === 1) walk(child, nowHidden, nowLost, depth + 1, opacity);
    }
    put(`</${el.localName.replace(/[^\w-]/g, "-")}>`);
  };
  const sheet = new CSSStyleSheet();
  const roots = (doc) => {
    const list = [doc];
    for (const root of list) for (const el of root.querySelectorAll("*")) if (el.shadowRoot) list.push(el.shadowRoot);
    return list;
  };
  // Hit tests see every element, and what moves stands still.
  const prepare = (doc) => {
    for (const root of roots(doc)) {
      try {
        const own = doc === document ? sheet : new doc.defaultView.CSSStyleSheet();
        own.replaceSync("* { pointer-events: auto !important; scroll-behavior: auto !important }");
        root.adoptedStyleSheets = [...root.adoptedStyleSheets, own];
      } catch { notices.add("some text was not tested for what covers it"); }
    }
    for (const el of doc.querySelectorAll("details:not([open])")) el.open = true;
  };
  prepare(document);
  const html = document.documentElement;
  put(`<!DOCTYPE html>${open(html)}><head>`);
  for (const el of document.head ? document.head.querySelectorAll("title, meta, link, base, script[type='application/ld+json' i]") : []) {
    if (nameOf(el) === "TITLE") put(`<title>${escapeText(el.textContent)}</title>`);
    else if (nameOf(el) === "SCRIPT") walk(el, false, false, 0, 1);
    else put(`${open(el)}>`);
  }
  put("</head>");
  const whole = parseFloat(styleOf(html).opacity);
  if (document.body) walk(document.body, false, gone(html, styleOf(html), whole), 0, whole);
  put("</html>");
  if (size > limits.characters) notices.add(`the rendered page is longer than ${limits.characters} characters: its end was left out`);
  const pictures = new Set();
  for (const root of roots(document)) for (const el of root.querySelectorAll("img, canvas, svg, object, embed, video")) if (el.checkVisibility()) pictures.add(el.localName);
  return { html: out.join(""), notices: [...notices], pictures: [...pictures] };
}
