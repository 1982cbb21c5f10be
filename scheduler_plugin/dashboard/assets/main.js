// The page: signs in, follows the state, shows one list and the details of the opened row.

import { follow, get, query, token } from "./api.js";
import { DETAILS } from "./details.js";
import { byId, element, show } from "./dom.js";
import { List } from "./list.js";
import { VIEWS, headCells } from "./views.js";

const page = { part: "", list: null, state: null, asked: null, how: "", why: "", unread: "", following: null, opened: null };
const wanted = () => ({ text: byId("filter").value.trim(), namespace: byId("namespace").value.trim() });
const isSame = (one, other) => one?.text === other.text && one?.namespace === other.namespace;
let filter = wanted(); // The filter of the list; the boxes may differ for a moment.

// Signing in.

function signIn(problem = "") {
  stop();
  token.forget();
  show(byId("app"), false);
  show(byId("sign-in"), true);
  byId("sign-in-problem").textContent = problem;
  show(byId("sign-in-problem"), Boolean(problem));
  byId("token").value = "";
  byId("token").focus();
}

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  token.set(byId("token").value.trim().replace(/^Bearer\s+/i, ""));
  const button = event.submitter ?? byId("sign-in-form").querySelector("button");
  button.disabled = true;
  try {
    filter = wanted();
    took(await get(`state?${query(filter)}`), filter);
    start();
  } catch (error) {
    signIn(error.message);
  } finally {
    button.disabled = false;
  }
});

// A token has no line breaks.
byId("token").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  byId("sign-in-form").requestSubmit();
});

byId("sign-out").addEventListener("click", () => signIn());

function start() {
  filter = wanted();
  show(byId("sign-in"), false);
  show(byId("app"), true);
  openPart();
  listen();
}

function stop() {
  page.following?.abort();
  page.opened?.abort();
  page.list?.stop();
  Object.assign(page, { following: null, opened: null, list: null, state: null });
}

// The state from the server.

async function listen() {
  page.following?.abort();
  const aborter = (page.following = new AbortController());
  const asked = filter;
  connection("connecting", "");
  try {
    await follow(query(asked), aborter.signal, (state) => took(state, asked), connection);
  } catch (error) {
    if (!aborter.signal.aborted) signIn(error.message);
  }
}

const SAID = { live: "live", polling: "every 3 s", lost: "connection lost", connecting: "connecting …" };

function connection(how, why) {
  const shown = byId("connection");
  shown.dataset.how = how;
  shown.textContent = SAID[how];
  shown.title = why;
  Object.assign(page, { how, why });
  notice();
}

// Why places in line (from the elected plugin) or Events (from the API server) are not known.
function unavailable() {
  const { leader, events } = page.state ?? {};
  return [leader, events].filter(Boolean).join(" ");
}

function unread(error) {
  page.unread = error ? error.message : "";
  notice();
}

// Why the visible rows are old; else what is not known.
function notice() {
  const problem = page.how === "lost" ? page.why : page.unread;
  const text = problem ? `${problem} What you see is from before; it is tried again.` : unavailable();
  document.body.classList.toggle("stale", Boolean(problem));
  byId("notice").textContent = text;
  show(byId("notice"), Boolean(text));
}

/* A state has the number of rows that match the filter, and of all rows without it. */
function took(state, asked) {
  Object.assign(page, { state, asked });
  byId("viewer").textContent = state.viewer;
  byId("viewer").title = state.viewer;
  for (const tab of byId("tabs").children) {
    const { all, denied } = state.parts[tab.dataset.part];
    tab.lastChild.textContent = denied ? "–" : all;
  }
  notice();
  if (page.part && page.list !== undefined) fill();
  if (page.again) page.again();
}

const unmatched = (all) => `No row matches the filter. Without it there ${all ? (all === 1 ? "is 1" : `are ${all.toLocaleString("en")}`) : "is none"}.`;

function count(total, all) {
  const of = total === all ? "" : ` of ${all.toLocaleString("en")}`;
  return `${total.toLocaleString("en")}${of} ${all === 1 ? "row" : "rows"}`;
}

function fill() {
  // The state is of another filter: the rows of this filter say how many there are.
  if (!isSame(page.asked, filter)) return showPending();
  const { total, all, denied } = page.state.parts[page.part];
  const filtered = Object.values(page.asked).some(Boolean);
  const sentence = denied || (total ? "" : filtered ? unmatched(all) : VIEWS[page.part].empty);
  byId("empty").textContent = sentence;
  byId("empty").classList.toggle("problem", Boolean(denied));
  show(byId("empty"), Boolean(sentence));
  show(byId("list"), !sentence);
  show(byId("head"), !denied);
  byId("count").textContent = denied ? "" : count(total, all);
  page.list?.refresh(denied ? 0 : total, page.state.number);
}

// Shows the list until the state of a new filter comes.
function showPending() {
  const { denied } = page.state.parts[page.part];
  if (denied) return;
  show(byId("empty"), false);
  show(byId("list"), true);
  byId("count").textContent = "";
  page.list?.refresh(1, page.state.number);
}

// Lists.

function openPart() {
  const part = location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "queues";
  if (page.part !== part || !page.list) {
    closeDetail();
    page.part = part;
    byId("panel").dataset.part = part;
    byId("panel").setAttribute("aria-labelledby", `tab-${part}`);
    byId("head").replaceChildren(...headCells(VIEWS[part]));
    for (const tab of byId("tabs").children) tab.setAttribute("aria-selected", tab.dataset.part === part);
    document.title = `${VIEWS[part].title} – Moorage`;
    remake();
  }
}

function remake() {
  const { open = null, opened } = page.list ?? {};
  page.list?.stop();
  page.unread = "";
  const { part } = page;
  page.list = new List(byId("list"), {
    load: async (offset, limit, signal) => {
      const found = await get(`rows/${part}?${query({ ...filter, offset, limit })}`, signal);
      if (page.unread) unread(null);
      return found;
    },
    draw: VIEWS[part].cells,
    key: VIEWS[part].key,
    chosen: openDetail,
    renewed: (row) => page.renewed?.(row),
    failed: (error) => (error.status === 401 ? signIn(error.message) : unread(error)),
  });
  if (page.renewed && opened) Object.assign(page.list, { open, opened: { ...opened, index: 0 } });
  byId("list").setAttribute("aria-label", VIEWS[part].title);
  if (page.state) fill();
}

window.addEventListener("hashchange", () => page.state && openPart());

let typed;

// The list follows the boxes after any event: a browser may empty a box without an input event.
function boxChanged() {
  clearTimeout(typed);
  const isBusy = !isSame(filter, wanted());
  byId("list").setAttribute("aria-busy", isBusy);
  if (isBusy) typed = setTimeout(filterNow, 250);
}

function filterNow() {
  clearTimeout(typed);
  byId("list").setAttribute("aria-busy", false);
  if (isSame(filter, wanted())) return;
  filter = wanted();
  remake();
  listen();
}

for (const id of ["filter", "namespace"])
  for (const happened of ["input", "change", "search"]) byId(id).addEventListener(happened, boxChanged);

// The opened row.

async function openDetail(row) {
  const { part } = page;
  const aborter = new AbortController();
  page.opened?.abort();
  page.opened = aborter;
  const draw = async () => {
    let body;
    const drawn = row;
    try {
      body = await DETAILS[part](row, aborter.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) return signIn(error.message);
      body = [element("p", { class: "problem" }, error.message)];
    }
    if (!aborter.signal.aborted && drawn === row) byId("detail-body").replaceChildren(...body);
  };
  await draw();
  if (aborter.signal.aborted) return;
  show(byId("detail"), true);
  document.body.classList.add("opened");
  // The sharers of a claim, and why a pod waits, may change while their rows do not.
  page.again = part === "claims" || part === "waiting" ? draw : null;
  page.renewed = (found) => {
    if (page.again) return;
    if (!found) return byId("detail-body").prepend(element("p", { class: "problem" }, GONE));
    row = found;
    draw();
  };
}

const GONE = "The row is not in the list any more, or has moved. These details are from before.";

function closeDetail() {
  page.opened?.abort();
  Object.assign(page, { opened: null, again: null, renewed: null });
  document.body.classList.remove("opened");
  show(byId("detail"), false);
  page.list?.close();
}

byId("close").addEventListener("click", () => (closeDetail(), byId("list").focus()));

// Keys.

for (const [number, part] of Object.keys(VIEWS).entries()) {
  const tab = element("a", { role: "tab", href: `#${part}`, id: `tab-${part}`, title: `Key ${number + 1}` }, VIEWS[part].title, element("span", { class: "total" }));
  tab.dataset.part = part;
  byId("tabs").append(tab);
}

document.addEventListener("keydown", (event) => {
  if (byId("app").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, textarea");
  if (event.key === "Escape") {
    if (typing) {
      event.preventDefault();
      event.target.value = "";
      event.target.blur();
      filterNow();
    }
    closeDetail();
    byId("list").focus();
  } else if (!typing && event.key === "/") {
    event.preventDefault();
    byId("filter").focus();
  } else if (!typing && Object.keys(VIEWS)[event.key - 1]) {
    location.hash = Object.keys(VIEWS)[event.key - 1];
    byId("list").focus();
  }
});

// Ages grow while no row changes.
setInterval(() => page.list?.redraw(), 30000);

if (token.get()) start();
else signIn();
