// What a person sees of a page, as far as its HTML says it: the text of everything but closed
// details and hidden elements, the lines of its leaves, and its buttons.

const entities = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'" };
const decode = (text) => text.replace(/&(?:lt|gt|amp|quot|#39);/g, (e) => entities[e]);
const empty = new Set(["input", "br", "hr", "img", "meta", "link"]);

export function visible(html) {
  const page = { text: "", lines: [], buttons: [] };
  const stack = [];
  for (const [, comment, close, name, attributes, text] of html.matchAll(/(<!--.*?-->)|<(\/?)([a-z][\w-]*)((?:\s+[^\s=>\/]+(?:="[^"]*")?)*)\s*\/?>|([^<]+)/gsu)) {
    if (comment !== undefined) continue;
    if (text !== undefined) {
      if (stack.some((e) => e.hidden) && !stack.some((e) => e.name === "summary")) continue;
      page.text += decode(text);
      for (const e of stack) e.text += decode(text);
    } else if (close === "/") {
      const e = stack.pop();
      if (e?.name !== name) throw new Error(`</${name}> ends ${e?.name}`);
      if (e.leaf && !stack.some((outer) => outer.hidden)) page.lines.push(e.text);
      if (name === "button" && !e.hidden) page.buttons.push({ text: e.text, disabled: e.disabled });
    } else if (!empty.has(name)) {
      const has = (attribute) => new RegExp(`\\s${attribute}(?:=|\\s|$)`).test(attributes);
      const hidden = (name === "details" && !has("open")) || has("hidden") || /\sclass="(?:[^"]*\s)?hidden[\s"]/.test(attributes) || name === "script" || name === "style";
      stack.push({ name, hidden, leaf: has("data-leaf"), disabled: has("disabled"), text: "" });
    }
  }
  return page;
}
