// The parts of the page that know nothing of tables and tasks. All text from outside goes through text nodes.

// 64-bit numbers keep their digits: those that JavaScript cannot hold stay text.
export const digits = (_key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context ? context.source : value;

// Characters that would hide or re-order what stands around them are shown by their code.
export const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (hidden) => `\\u{${hidden.codePointAt(0).toString(16)}}`);

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : visible(String(child)))));
  return element;
}

// Children by key, so that what stands stays where it is: focus, selection and scrolling survive each update.
export function keyed(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const after = items.map((item) => {
    const key = keyOf(item);
    let child = before.get(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    update(child, item);
    return child;
  });
  // What goes, goes first: a child that is moved would lose the focus.
  const stays = new Set(after);
  for (const child of [...parent.children]) if (!stays.has(child)) child.remove();
  after.forEach((child, index) => parent.children[index] !== child && parent.insertBefore(child, parent.children[index] ?? null));
}

// What a parent holds becomes what it should hold; whatever stays the same stays as it is, with its selected text.
export function fill(parent, ...children) {
  match(parent, el("div", {}, ...children));
}

function match(parent, wanted) {
  const all = [...wanted.childNodes];
  all.forEach((fresh, index) => {
    const present = parent.childNodes[index];
    if (!present) parent.append(fresh);
    else if (present.isEqualNode(fresh)) return;
    else if (isLike(present, fresh)) match(present, fresh);
    else present.replaceWith(fresh);
  });
  while (parent.childNodes.length > all.length) parent.lastChild.remove();
}

function isLike(one, other) {
  return one instanceof Element && other instanceof Element && one.tagName === other.tagName
    && one.attributes.length === other.attributes.length
    && [...one.attributes].every((each) => other.getAttribute(each.name) === each.value);
}

export const count = (number) => Number(number).toLocaleString("en");
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) [bytes, unit] = [bytes / 1024, unit + 1];
  return `${bytes.toLocaleString("en", { maximumFractionDigits: unit && bytes < 100 ? 1 : 0 })} ${units[unit]}`;
}

export const named = (text) => el("span", { class: "name", title: visible(text.slice(0, 500)) }, text);
export const tag = (text, tone) => el("span", { class: "tag", "data-tone": tone }, text);

export function bar(...parts) {
  const whole = el("span", { class: "bar", "aria-hidden": "true" });
  for (const [share, kind] of parts.filter(([each]) => each > 0)) {
    const part = el("span", { class: kind });
    part.style.setProperty("--share", Math.min(1, Math.max(0, share)).toFixed(4));
    whole.append(part);
  }
  return whole;
}
