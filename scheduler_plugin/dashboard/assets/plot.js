// The last hours of a queue, drawn by uPlot.

import { element } from "./dom.js";

const LEAST_SECONDS = 600; // The shortest visible time: a few samples are no trend.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* The samples, and the current figures at the end. */
export function plot(root, said, row) {
  const now = Date.now() / 1000;
  const before = said.past.times[0] > now - LEAST_SECONDS ? [now - LEAST_SECONDS] : [];
  const times = [...before, ...said.past.times, now];
  const scaled = (value) => (value === null ? null : value / said.size);
  const sampled = (past, current) => [...before.map(() => null), ...[...past, current].map(scaled)];
  const flat = (most) => times.map(() => scaled(most));
  const label = (name) => (said.unit ? `${name}, ${said.unit}` : name);
  const data = [times, sampled(said.past.usage, row.usage), sampled(said.past.requested, row.requested)];
  const series = [
    {},
    { label: label("usage"), stroke: colour("--within"), fill: colour("--within-soft"), width: 2 },
    { label: label("requested"), stroke: colour("--wait"), width: 1.5, dash: [4, 3] },
  ];
  if (said.quota !== null) {
    series.push({ label: label("quota"), stroke: colour("--muted"), width: 1, points: { show: false } });
    data.push(flat(said.quota));
  }
  if (said.limit !== null) {
    series.push({ label: label("limit"), stroke: colour("--limit"), width: 1, points: { show: false } });
    data.push(flat(said.limit));
  }
  if (times.length < 2) {
    root.append(element("p", { class: "muted" }, "There is no sample yet: one is taken every 20 s."));
    return;
  }
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  // Devices are whole; a measure has any value.
  const whole = row.texts ? { size: 44 } : { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] };
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  series[0].value = (_, seconds) => (seconds == null ? "–" : clock(seconds));
  const stepped = uPlot.paths.stepped({ align: 1 });
  for (const one of series.slice(1)) Object.assign(one, { paths: stepped, points: { show: false } });
  // The legend is of the moment under the pointer; without a pointer, of now.
  const updateLegend = (drawn) => drawn.cursor.idx == null && drawn.setLegend({ idx: times.length - 1 });
  // The panel is not in the document yet: its width is known one frame later.
  requestAnimationFrame(() => {
    const width = Math.max(220, root.clientWidth);
    new uPlot(
      {
        width,
        height: 190,
        series,
        axes: [{ ...axis, space: 60, values: (_, moments) => moments.map(clock) }, { ...axis, size: 34, ...whole }],
        scales: { y: { range: (_, __, high) => [0, Math.max(1, high) * 1.1] } },
        legend: { live: true },
        hooks: { ready: [updateLegend], setCursor: [updateLegend] },
        cursor: { drag: { x: false, y: false } },
      },
      data,
      root,
    );
  });
}
