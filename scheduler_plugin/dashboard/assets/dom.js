// Elements from names and text: no text from the cluster is ever parsed as HTML.

export function element(tag, options = {}, ...children) {
  const { class: names, ...attributes } = options;
  const made = document.createElement(tag);
  if (names) made.className = names;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const byId = (id) => document.getElementById(id);

export function show(target, shown) {
  target.hidden = !shown;
}

export function age(moment, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/* The age of a moment; the moment itself is shown under the pointer. */
export function ago(moment, { before = "", after = "" } = {}) {
  const said = age(moment);
  return element("time", { class: "muted", datetime: moment, title: moment }, said ? `${before}${said}${after}` : moment);
}

export const ceiling = (most) => (most === null || most === undefined ? "none" : String(most));
