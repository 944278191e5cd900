// Pictures of pages: every element with `data-chart` has those of the JSON in the script that it names.
//
// A list of {title, at, lines: [{name, values, variable}], clock, unit, mark} is drawn as it is; {title, now, point:
// [{name, value, variable}]} adds a point whenever it is sent anew, from when the page was opened.
import { drawn } from "./chart.js";

const KEPT = 3600; // points: two hours of them, one every two seconds

for (const host of document.querySelectorAll("[data-chart]")) {
  const source = document.getElementById(host.dataset.chart);
  host.hidden = false;
  const first = JSON.parse(source.textContent);
  if (!first.point) {
    for (const one of first) drawn(host, one.title, one.at, one.lines, one);
    continue;
  }
  const at = [];
  const values = first.point.map(() => []);
  let picture = null;
  const add = () => {
    const said = JSON.parse(source.textContent);
    if (at.length && said.now <= at.at(-1)) return;
    for (const moment of at.length ? [said.now] : [said.now - 0.001, said.now]) { // no axis is drawn for one point
      at.push(moment);
      said.point.forEach((one, index) => values[index].push(one.value));
    }
    if (at.length > KEPT) for (const column of [at, ...values]) column.shift();
    if (picture) picture.update(at, values);
    else picture = drawn(host, said.title, at, said.point.map((one, index) => ({ ...one, values: values[index] })), { clock: true, least: 60 });
  };
  add();
  source.addEventListener("fresh", add);
}
