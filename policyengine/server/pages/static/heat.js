// The picture of all nodes: a square each, in groups, on one canvas.
"use strict";

(() => {
  const box = document.getElementById("heat"), data = document.getElementById("heat_data");
  if (!box || !data) return;
  const canvas = box.querySelector("canvas"), said = document.getElementById("heat-said");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let nodes = {names: [], groups: [], values: []}, places = [], size = 14, chosen = -1;

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return name => style.getPropertyValue("--" + name).trim();
  };
  const step = value => value < 0 ? "hx" : value > 100 ? "h5" : "h" + Math.min(4, Math.floor(value / 20.01));

  function draw() {
    box.hidden = nodes.names.length === 0;
    const width = box.clientWidth, gap = 2, heading = 18, colour = colours(), ratio = devicePixelRatio || 1;
    if (!width) return;
    const count = nodes.names.length;
    size = count > 2000 ? 9 : count > 300 ? 13 : 22;
    const across = Math.max(1, Math.floor(width / (size + gap)));
    places = [];
    const titles = [];
    let x = 0, y = 0, group = null;
    nodes.names.forEach((_, at) => {
      if (nodes.groups[at] !== group) {
        group = nodes.groups[at];
        if (at) y += size + gap + 6;
        titles.push([group, y]);
        x = 0;
        y += heading;
      } else if (x === across) {
        x = 0;
        y += size + gap;
      }
      places.push([x * (size + gap), y]);
      x += 1;
    });
    const height = y + size + gap;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour("soft");
    pen.font = "13px system-ui, sans-serif";
    for (const [title, top] of titles) pen.fillText(title || "without the label", 0, top + 13, width);
    const paint = {};
    for (const name of ["h0", "h1", "h2", "h3", "h4", "h5", "hx"]) paint[name] = colour(name);
    const line = colour("line"), ink = colour("ink");
    places.forEach(([left, top], at) => {
      pen.fillStyle = paint[step(nodes.values[at])];
      pen.fillRect(left, top, size, size);
      pen.strokeStyle = at === chosen ? ink : line;
      pen.lineWidth = at === chosen ? 2 : 0.5;
      pen.strokeRect(left + 0.5, top + 0.5, size - 1, size - 1);
    });
  }

  function choose(at) {
    if (at < 0 || at >= nodes.names.length || at === chosen) return;
    chosen = at;
    const value = nodes.values[at];
    said.textContent = `${nodes.names[at]}: ${value < 0 ? "none" : value + " %"}. Enter or a click shows it.`;
    draw();
  }
  const at = event => places.findIndex(([left, top]) => event.offsetX >= left && event.offsetX < left + size + 2
    && event.offsetY >= top && event.offsetY < top + size + 2);
  const show = () => {
    if (chosen >= 0) location.href = box.dataset.node.replace("NODE", () => encodeURIComponent(nodes.names[chosen]));
  };
  function read() {
    nodes = JSON.parse(data.textContent);
    canvas.tabIndex = 0;
    draw();
  }
  canvas.addEventListener("mousemove", event => choose(at(event)));
  canvas.addEventListener("click", event => { choose(at(event)); if (at(event) >= 0) show(); });
  canvas.addEventListener("keydown", event => {
    const across = Math.max(1, Math.floor(box.clientWidth / (size + 2)));
    const moves = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across};
    if (event.key in moves) {
      event.preventDefault();
      said.setAttribute("aria-live", "polite");
      choose(Math.min(nodes.names.length - 1, Math.max(0, chosen + moves[event.key])));
    } else if (event.key === "Enter") show();
  });
  data.addEventListener("fresh", read);
  addEventListener("resize", draw);
  dark.addEventListener("change", draw);
  box.hidden = false;
  read();
})();
