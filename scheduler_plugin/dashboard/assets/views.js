// How each list looks: its columns, its rows, and the sentence of an empty list.

import { ago, ceiling, element } from "./dom.js";

const cell = (name, ...children) => element("span", { class: `cell ${name}` }, ...children);
const muted = (text) => element("span", { class: "muted" }, text);
const chip = (text, kind = "") => element("span", { class: `chip ${kind}`, title: text }, text);
const costs = (cost) => cost.map(([key, amount]) => `${amount} ${key}`).join(", ");

/* A bar of usage: the track is the limit or, without one, the quota. Usage above the quota has
   another colour, and a mark is at the quota. */
export function bar(usage, quota, limit) {
  const most = limit ?? quota ?? 0;
  const whole = Math.max(most, usage, quota ?? 0);
  const drawn = element("span", { class: "bar", "aria-hidden": "true" });
  if (!whole) return drawn;
  const part = (amount) => `${(100 * amount) / whole}%`;
  const within = quota === null ? usage : Math.min(usage, quota);
  const used = element("span", { class: "within" });
  used.style.width = part(within);
  const beyond = element("span", { class: "beyond" });
  beyond.style.left = part(within);
  beyond.style.width = part(usage - within);
  drawn.append(used, beyond);
  if (quota !== null && quota > 0 && quota < whole) {
    const mark = element("span", { class: "mark" });
    mark.style.left = part(quota);
    drawn.append(mark);
  }
  return drawn;
}

/* An amount as text: of a measure the quantity that came with the row, else the number. */
export const amount = (row, name) => row.texts?.[name] ?? ceiling(row[name]);
export const waiting = (row) => row.texts?.waiting ?? String(row.requested - row.usage);

export const figures = (row) => {
  const parts = [`quota ${amount(row, "quota")}`];
  if (row.limit !== null) parts.push(`limit ${amount(row, "limit")}`);
  return parts.join(", ");
};

function queueCells(row) {
  const name = cell("name", row.queue);
  name.style.setProperty("--depth", row.depth);
  name.classList.toggle("again", !row.is_first);
  if (!row.device_class) return [name, cell("class", muted("no class")), cell("usage"), cell("waiting"), cell("share")];
  const waits = row.requested > row.usage;
  const usage = element("span", { class: "figures" }, element("b", {}, amount(row, "usage")), " ", muted(figures(row)));
  return [
    name,
    cell("class", row.device_class),
    cell("usage", bar(row.usage, row.quota, row.limit), usage),
    cell("waiting", waits ? chip(`${waiting(row)} waiting`, "wait") : muted("–")),
    cell("share", muted(`share ${amount(row, "share")}`)),
  ];
}

function sharerChips(row) {
  if (!row.sharers) return [muted(row.consumers === 1 ? "1 pod" : `${row.consumers} pods`)];
  if (!row.sharers.length) return [muted("no pod")];
  return row.sharers.map(([queue, pods]) =>
    chip(`${queue || "no queue"} ${pods}`, queue === row.owner ? "owner" : "foreign"),
  );
}

// The name comes first: if there is no room for both, the namespace is cut.
const named = (row) => [element("b", {}, row.name), muted(row.namespace ? ` in ${row.namespace}` : "")];

const claimCells = (row) => [
  cell("name", ...named(row)),
  cell("owner", row.owner ? chip(row.owner, "owner") : muted("no queue")),
  cell("cost", costs(row.cost)),
  cell("device", row.is_allocated ? row.devices.join(", ") : muted("not allocated")),
  cell("sharers", ...sharerChips(row)),
];

function users(row) {
  const held = row.held.map(([node, slots]) => chip(`${slots} on ${node || "a node"}`));
  if (row.claims === undefined) return held;
  const claims = row.claims.slice(0, 6).map(([claim, slots]) => chip(slots > 1 ? `${claim} ×${slots}` : claim, "owner"));
  const more = row.claims.length > 6 ? [muted(`+${row.claims.length - 6}`)] : [];
  return [...held, ...claims, ...more];
}

const slots = (row) =>
  row.slots === null
    ? [element("span", { class: "figures" }, `${row.used} in use`)]
    : [bar(row.used, row.slots, row.slots), element("span", { class: "figures" }, `${row.used} of ${row.slots}`)];

export const WITHHELD = "No ResourceSlice offers the device: no claim gets it.";

// The state of a device, in the list and in the details.
export function deviceState(row) {
  if (row.state === "Ready") return [muted("Ready")];
  const why = row.state === "Withheld" ? WITHHELD : row.taints.join(", ");
  const shown = element("span", { class: "chip wait", title: why }, row.state);
  return [shown, row.since ? ago(row.since) : ""];
}

// Where a device was that no node sees.
const nowhere = (row) => (row.published_on.length ? `no longer on ${row.published_on.join(", ")}` : "no node sees it");

export function nodes(row) {
  if (!row.nodes.length) return muted(nowhere(row));
  return row.nodes[0] === "*" ? muted("anywhere") : row.nodes.join(", ");
}

const deviceCells = (row) => [
  cell("node", nodes(row)),
  cell("name", element("b", {}, row.name)),
  cell("class", row.configuration || muted(row.driver)),
  cell("state", ...deviceState(row)),
  cell("slots", ...slots(row)),
  cell("users", ...(row.used ? users(row) : [muted("free")])),
];

const waitingCells = (row) => [
  cell("name", ...named(row)),
  cell("queue", row.queue ? chip(row.queue) : muted("no queue")),
  cell("reason", chip(row.reason, row.reason === "Fits" ? "fits" : "wait")),
  cell("since", ago(row.since)),
  cell("sentence", element("span", { title: row.sentence }, row.sentence)),
];

const eventCells = (row) => [
  cell("since", ago(row.at, { after: " ago" })),
  cell("reason", chip(row.reason, row.type === "Warning" ? "wait" : "")),
  cell("name", muted(`${row.kind} `), ...named(row)),
  cell("sentence", element("span", { title: row.note }, row.note)),
];

const objectKey = (row) => `${row.namespace}/${row.name}`;

export const VIEWS = {
  queues: {
    title: "Queues",
    heads: { name: "Queue", class: "Class", usage: "Usage", waiting: "Waiting", share: "Fair share" },
    cells: queueCells,
    key: (row) => `${row.queue} ${row.device_class}`,
    empty: "There are no Queues yet. docs/queues.md explains how to create one.",
  },
  claims: {
    title: "Claims",
    heads: { name: "Claim", owner: "Charged to", cost: "Cost", device: "Device", sharers: "Pods by queue" },
    cells: claimCells,
    key: objectKey,
    empty: "No claim requests accounted devices.",
  },
  devices: {
    title: "Devices",
    heads: { node: "Node", name: "Device", class: "Configuration", state: "State", slots: "Slots", users: "Used by" },
    cells: deviceCells,
    key: (row) => `${row.driver} ${row.pool} ${row.name}`,
    empty: "No device was discovered. Create a Configuration that says what to look for.",
  },
  waiting: {
    title: "Waiting",
    heads: { name: "Pod", queue: "Queue", reason: "Reason", since: "For", sentence: "Why" },
    cells: waitingCells,
    key: objectKey,
    empty: "No pod waits.",
  },
  events: {
    title: "Events",
    heads: { since: "When", reason: "What", name: "On", sentence: "Why" },
    cells: eventCells,
    key: (row) => `${row.at} ${row.kind} ${objectKey(row)} ${row.reason}`,
    empty: "There are no Events of evictions, shared claims or refusals. The API server keeps Events for one hour by default.",
  },
};

export const headCells = (view) => Object.entries(view.heads).map(([name, text]) => cell(name, text));
