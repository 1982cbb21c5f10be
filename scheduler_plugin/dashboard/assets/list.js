// A list of any length: only visible rows exist, and only their windows are fetched.

const WINDOW = 100;
const BEYOND = 6; // Rows that are drawn above and below the visible rows.
const MOST_WINDOWS = 30;
const AGAIN_MS = 3000;

export class List {
  /* `load(offset, limit)` fetches rows, `draw(row)` makes the cells of one, `key(row)` names it,
     `chosen(row)` is called with the row that was opened, `renewed(row)` with its new state, null if
     it is not found any more, and `failed(error)` with the error of a fetch, which is retried. */
  constructor(root, { load, draw, key, chosen, renewed, failed }) {
    Object.assign(this, { root, load, draw, key, chosen, renewed, failed });
    this.total = 0;
    this.number = 0;
    this.windows = new Map();
    this.pending = new Map();
    this.shown = new Map();
    this.active = -1;
    this.open = null;
    this.opened = { index: 0, row: null };
    this.awaited = -1; // The row that was chosen before it was loaded.
    this.pressed = false;
    this.space = document.createElement("div");
    this.space.className = "space";
    root.replaceChildren(this.space);
    root.scrollTop = 0;
    this.aborter = new AbortController();
    const signal = this.aborter.signal;
    root.addEventListener("scroll", () => this.later(), { signal, passive: true });
    root.addEventListener("keydown", (event) => this.keyed(event), { signal });
    root.addEventListener("pointerdown", (event) => (this.pressed = event.button === 0 && event.target !== root), { signal });
    for (const end of ["pointerup", "pointercancel", "contextmenu", "blur"]) window.addEventListener(end, () => this.released(), { signal });
    new ResizeObserver((_, observer) => (signal.aborted ? observer.disconnect() : this.later())).observe(root);
  }

  stop() {
    this.aborter.abort();
    this.root.replaceChildren();
  }

  get height() {
    return parseFloat(getComputedStyle(this.root).getPropertyValue("--row")) || 40;
  }

  /* The list has a new length, and fetched rows are old; they stay until the new rows come. */
  refresh(total, number) {
    this.total = total;
    this.number = number;
    this.later();
  }

  redraw() {
    for (const made of this.shown.values()) made.row = null;
    this.later();
  }

  released() {
    this.pressed = false;
    this.later();
  }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.aborter.signal.aborted) this.render();
    });
  }

  render() {
    const height = this.height;
    this.space.style.height = `${this.total * height}px`;
    const first = Math.max(0, Math.floor(this.root.scrollTop / height) - BEYOND);
    const seen = Math.ceil(this.root.clientHeight / height) + 2 * BEYOND;
    const last = Math.min(this.total, first + seen);
    for (const [index, made] of this.shown) {
      if (index < first || index >= last) {
        made.remove();
        this.shown.delete(index);
      }
    }
    for (let start = first - (first % WINDOW); start < last; start += WINDOW) this.need(start);
    // The open row is followed, wherever the list was scrolled to.
    const { index: place } = this.opened;
    if (this.open !== null && place < this.total) this.need(place - (place % WINDOW));
    if (this.awaited >= 0 && this.awaited < this.total) this.need(this.awaited - (this.awaited % WINDOW));
    // A browser makes no click of a press if its element is replaced before the release.
    if (this.pressed) return;
    for (let index = first; index < last; index += 1) this.place(index, height);
  }

  place(index, height) {
    const row = this.row(index);
    let made = this.shown.get(index);
    if (!made) {
      made = document.createElement("div");
      made.className = "row";
      made.row = null; // A row that loads is undefined, and drawn as well.
      made.setAttribute("role", "option");
      made.addEventListener("click", () => this.choose(index));
      this.space.append(made);
      this.shown.set(index, made);
    }
    made.style.transform = `translateY(${index * height}px)`;
    if (made.row !== row) {
      made.row = row;
      made.replaceChildren(...(row ? this.draw(row) : []));
      made.classList.toggle("loading", !row);
    }
    made.id = `row-${index}`;
    made.setAttribute("aria-posinset", index + 1);
    made.setAttribute("aria-setsize", this.total);
    made.setAttribute("aria-selected", Boolean(row) && this.key(row) === this.open);
    made.classList.toggle("active", index === this.active);
  }

  row(index) {
    return this.windows.get(index - (index % WINDOW))?.rows[index % WINDOW];
  }

  need(start) {
    const known = this.windows.get(start);
    if (known?.number === this.number || this.pending.get(start) === this.number) return;
    const number = this.number;
    this.pending.set(start, number);
    this.load(start, WINDOW, this.aborter.signal)
      .then(({ rows, total }) => {
        this.windows.delete(start);
        this.windows.set(start, { rows, number });
        if (this.windows.size > MOST_WINDOWS) this.windows.delete(this.windows.keys().next().value);
        if (number === this.number) this.total = total;
        this.follow(start, rows);
        if (this.row(this.awaited)) this.choose(this.awaited);
        this.later();
      })
      .catch((error) => {
        if (error.name === "AbortError") return;
        this.failed(error);
        setTimeout(() => this.later(), AGAIN_MS);
      })
      .finally(() => this.pending.get(start) === number && this.pending.delete(start));
  }

  follow(start, rows) {
    const { index, row: before } = this.opened;
    if (this.open === null || start !== index - (index % WINDOW)) return;
    const found = rows.findIndex((row) => this.key(row) === this.open);
    const row = rows[found] ?? null;
    this.opened = { index: row ? start + found : index, row };
    if (JSON.stringify(row) !== JSON.stringify(before)) this.renewed(row);
  }

  keyed(event) {
    const page = Math.max(1, Math.floor(this.root.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.move(Math.max(0, this.active) + (this.active < 0 ? 0 : steps[event.key]));
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.move(this.total - 1);
    else if (event.key === "Enter" && this.active >= 0) this.choose(this.active);
    else return;
    event.preventDefault();
  }

  move(index) {
    if (!this.total) return;
    this.awaited = -1;
    this.active = Math.min(this.total - 1, Math.max(0, index));
    const top = this.active * this.height;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop) this.root.scrollTop = top;
    if (top + this.height > scrollTop + clientHeight) this.root.scrollTop = top + this.height - clientHeight;
    this.root.setAttribute("aria-activedescendant", `row-${this.active}`);
    this.later();
  }

  /* A row that still loads is opened once it is there, unless another is chosen meanwhile. */
  choose(index) {
    const row = this.shown.get(index)?.row ?? this.row(index); // The visible row is the chosen one.
    this.active = index;
    this.awaited = row ? -1 : index;
    if (!row) return this.later();
    this.open = this.key(row);
    this.opened = { index, row };
    this.chosen(row);
    this.later();
  }

  close() {
    this.open = null;
    this.awaited = -1;
    this.later();
  }
}
