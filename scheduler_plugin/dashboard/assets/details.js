// The details of the opened row, beside the list.

import { get, query } from "./api.js";
import { element } from "./dom.js";
import { plot } from "./plot.js";
import { WITHHELD, amount, bar, deviceState, figures, nodes, waiting } from "./views.js";

const heading = (small, big) => [element("p", { class: "small" }, small), element("h2", {}, big)];
const fact = (name, ...value) => element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, ...value));
const facts = (...found) => element("dl", {}, ...found);
const items = (texts) => element("ul", {}, ...texts.map((text) => element("li", {}, text)));

async function queue(row, signal) {
  const head = heading("Queue", row.queue);
  if (!row.device_class) return [...head, element("p", {}, "The queue lists no device class, and neither uses nor requests one.")];
  const said = await get(`history?${query({ queue: row.queue, device_class: row.device_class })}`, signal);
  const drawn = element("div", { class: "plot" });
  const body = [
    ...head,
    element("p", { class: "small" }, row.device_class),
    bar(row.usage, row.quota, row.limit),
    facts(
      fact("Usage", amount(row, "usage")),
      fact("Quota", amount(row, "quota")),
      fact("Limit", amount(row, "limit")),
      fact("Waiting", waiting(row)),
      fact("Fair share", amount(row, "share")),
      fact("Non-preemptible", amount(row, "non_preemptible")),
    ),
    element("h3", {}, "The last hours"),
    drawn,
  ];
  plot(drawn, said, row);
  return body;
}

async function claim(row, signal) {
  const path = `claims/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;
  const said = await get(path, signal);
  const found = said.claim;
  const sharers = said.sharers?.flatMap(({ queue: name, pods }) => [
    element("h3", {}, name || "no queue", name === found.owner ? " – is charged" : name ? " – uses it for free" : ""),
    items(pods),
  ]);
  return [
    ...heading("ResourceClaim", `${found.namespace}/${found.name}`),
    facts(
      fact("Charged to", found.owner || "no queue"),
      fact("Cost", found.cost.map(([key, amount]) => `${amount} ${key}`).join(", ")),
      fact("Device", found.is_allocated ? found.devices.join(", ") : "not allocated"),
      fact("Pods", String(found.consumers)),
      found.groups.length ? fact("Reserved for", found.groups.map((name) => `PodGroup ${name}`).join(", ")) : "",
    ),
    ...(sharers ?? [element("p", { class: "problem" }, said.denied)]),
  ];
}

async function pod(row, signal) {
  const path = `pods/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;
  const { why, place, held, leader, problem } = await get(path, signal);
  const told = why.figures.map((f) => [
    element("h3", {}, `${f.queue}, ${f.device_class}`),
    bar(f.usage, f.quota, f.limit),
    element("p", { class: "small" }, `uses ${amount(f, "usage")}, this pod adds ${amount(f, "added")}; ${figures(f)}`),
  ]);
  const remedies = why.remedies ?? [];
  return [
    ...heading("Pod", why.pod),
    element("p", { class: "sentence" }, why.sentence),
    facts(
      fact("Reason", why.reason),
      fact("Queue", why.queue || "none"),
      place ? fact("Place", place) : null,
    ),
    leader ? element("p", {}, `The scheduler decided meanwhile: ${leader}`) : null,
    held ? element("p", {}, held) : null,
    problem ? element("p", { class: "problem" }, problem) : null,
    why.claims.length ? items(why.claims) : null,
    ...(remedies.length ? [element("h3", {}, "What would have to change"), items(remedies)] : []),
    ...told.flat(),
  ].filter(Boolean);
}

function device(row) {
  return [
    ...heading(row.driver, row.name),
    row.slots === null ? "" : bar(row.used, row.slots, row.slots),
    facts(
      fact("Slots", `${row.used} of ${row.slots ?? "unknown"}`),
      fact("Configuration", row.configuration || "none"),
      fact("State", ...deviceState(row)),
      row.since ? fact("Since", row.since) : "",
      row.taints.length ? fact("Taints", row.taints.join(", ")) : "",
      fact("Nodes", nodes(row)),
      row.pool ? fact("Pool", row.pool) : "",
    ),
    row.state === "Withheld" ? element("p", {}, WITHHELD) : "",
    ...(row.claims?.length ? [element("h3", {}, "Claims"), items(row.claims.map(([name, slots]) => `${name}: ${slots}`))] : []),
    ...(row.held.length
      ? [element("h3", {}, "Through the device plugin"), items(row.held.map(([node, slots]) => `${node}: ${slots}`))]
      : []),
  ];
}

const event = (row) => [
  ...heading(`${row.reason} · ${row.at}`, `${row.kind} ${row.namespace ? `${row.namespace}/` : ""}${row.name}`),
  element("p", { class: "sentence" }, row.note),
  facts(fact("Action", row.action)),
];

export const DETAILS = { queues: queue, claims: claim, devices: device, waiting: pod, events: event };
