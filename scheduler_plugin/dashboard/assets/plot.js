// The last hours of a queue, drawn by uPlot.

import { element } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* What was sampled, and the figures of this moment at the end. */
export function plot(root, said, row) {
  const times = [...said.past.times, Date.now() / 1000];
  const flat = (most) => times.map(() => most);
  const data = [times, [...said.past.usage, row.usage], [...said.past.requested, row.requested]];
  const series = [
    {},
    { label: "usage", stroke: colour("--within"), fill: colour("--within-soft"), width: 2 },
    { label: "requested", stroke: colour("--wait"), width: 1.5, dash: [4, 3] },
  ];
  if (said.quota !== null) {
    series.push({ label: "quota", stroke: colour("--muted"), width: 1, points: { show: false } });
    data.push(flat(said.quota));
  }
  if (said.limit !== null) {
    series.push({ label: "limit", stroke: colour("--limit"), width: 1, points: { show: false } });
    data.push(flat(said.limit));
  }
  if (times.length < 2) {
    root.append(element("p", { class: "muted" }, "Samples are taken every 20 s; none is there yet."));
    return;
  }
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  series[0].value = (_, seconds) => (seconds == null ? "–" : clock(seconds));
  const stepped = uPlot.paths.stepped({ align: 1 });
  for (const one of series.slice(1)) Object.assign(one, { paths: stepped, points: { show: false } });
  // The panel is not in the document yet: its width is known one frame later.
  requestAnimationFrame(() => {
    const width = Math.max(220, root.clientWidth);
    new uPlot(
      {
        width,
        height: 190,
        series,
        axes: [{ ...axis, space: 60, values: (_, moments) => moments.map(clock) }, { ...axis, size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] }],
        scales: { y: { range: (_, __, high) => [0, Math.max(1, high) * 1.1] } },
        legend: { live: true },
        cursor: { drag: { x: false, y: false } },
      },
      data,
      root,
    );
  });
}
