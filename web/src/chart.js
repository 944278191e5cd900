// Columns over time as a picture, in the page's own colours, by uPlot.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// 90 -> "1:30", 7200 -> "2:00:00": seconds from a start.
function lapse(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, at) => (at ? String(part).padStart(2, "0") : part)).join(":");
}

const STEPS = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000];

// A moment in UTC, as everywhere on the pages; short where the axis of a plot is less than a day.
function utc(seconds, made) {
  const text = new Date(seconds * 1000).toISOString();
  if (!made) return text.slice(0, 19).replace("T", " ");
  return made.scales.x.max - made.scales.x.min < 86400 ? text.slice(11, 19) : text.slice(5, 16).replace("T", " ");
}

function line(made, x) {
  const { left, top, width, height } = made.bbox;
  if (x < left - 1 || x > left + width + 1) return;
  made.ctx.fillStyle = colour("--ink");
  made.ctx.fillRect(x - 1, top, 2, height);
}

// Steps: what is told holds until the next moment.
//
// lines: [{name, values, variable}], variable: the CSS variable of its colour. at: seconds from a start, or where `clock`
// since 1970; mark: the moment that a line marks; least: seconds that are shown.
export function drawn(host, title, at, lines, { clock = false, unit = "", most = null, mark = null, least = 0 } = {}) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const place = document.createElement("div");
  place.setAttribute("role", "img");
  figure.append(caption, place);
  host.append(figure);

  let plot = null;
  let shown = [at, ...lines.map((line) => line.values)];
  const say = () => {
    const said = lines.map((line, index) => {
      const values = shown[index + 1];
      return values.length ? `${line.name} at most ${Math.max(...values)}${unit}, in the end ${values.at(-1)}${unit}` : `${line.name}: nothing yet`;
    });
    place.setAttribute("aria-label", `${title}: ${said.join("; ")}`);
  };

  function draw() {
    plot?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "13px system-ui, sans-serif" };
    const steps = uPlot.paths.stepped({ align: 1 });
    plot = new uPlot(
      {
        width: Math.max(200, figure.clientWidth),
        height: 190,
        hooks: { draw: [(made) => mark !== null && line(made, made.valToPos(mark, "x", true))] },
        scales: { x: { time: clock, range: (_, low, high) => [low, Math.max(high, low + least)] }, y: { range: (_, low, high) => [0, most ?? Math.max(1, high * 1.05)] } },
        axes: [
          { ...axis, space: 90, values: (made, ticks) => ticks.map(clock ? (tick) => utc(tick, made) : lapse), incrs: STEPS },
          { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick.toLocaleString() + unit : "")) },
        ],
        series: [
          { label: clock ? "UTC" : "after", value: (_, value) => (value == null ? "–" : clock ? utc(value) : lapse(value)) },
          ...lines.map((line) => ({
            label: line.name, stroke: colour(line.variable), width: 2, paths: steps, points: { show: false },
            dash: line.dash, value: (_, value) => (value == null ? "–" : value.toLocaleString() + unit),
          })),
        ],
      },
      shown,
      place,
    );
    say();
  }

  draw();
  const resized = new ResizeObserver(() => plot?.setSize({ width: Math.max(200, figure.clientWidth), height: 190 }));
  resized.observe(figure);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", draw);
  return {
    update(newAt, values) {
      shown = [newAt, ...values];
      plot.setData(shown);
      say();
    },
    remove() {
      resized.disconnect();
      dark.removeEventListener("change", draw);
      plot.destroy();
      figure.remove();
    },
  };
}
