// Keeps the page fresh, moves the slider, copies commands. Without it every page can be read and reloaded.
"use strict";

const told = document.getElementById("fresh");
const says = text => { if (told) told.textContent = text; };

// An element takes its new HTML; what had the keyboard's focus in it has it afterwards.
function replace(id, html) {
  const element = document.getElementById(id);
  if (!element || element.dataset.shown === html) return;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const same = focused && focused !== element && (focused.id ? "#" + CSS.escape(focused.id)
    : focused.getAttribute("href") ? `${focused.tagName}[href="${CSS.escape(focused.getAttribute("href"))}"]` : null);
  if (element.tagName === "SCRIPT") element.textContent = html; else element.innerHTML = html;
  const again = same && element.querySelector(same);
  if (again) again.focus({preventScroll: true});
  element.dispatchEvent(new CustomEvent("fresh", {bubbles: true}));
}

// One stream a page, and none while nobody sees it: a browser has six connections for all its tabs.
let stream = null;
function follow() {
  if (document.hidden) {
    if (stream) stream.close();
    stream = null;
  } else if (!stream) {
    stream = new EventSource(location.href);
    stream.onopen = () => says("followed from now on");
    stream.onmessage = event => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) replace(id, html);
      says("as of " + new Date().toLocaleTimeString());
    };
    stream.onerror = () => says(stream && stream.readyState === EventSource.CLOSED
      ? "not followed: too many pages are watched, or this one is gone; reload it" : "connection lost; trying again");
  }
}
document.documentElement.classList.add("js");
if (document.body.hasAttribute("data-follow") && document.querySelector("[data-live]")) {
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => { if (stream) stream.close(); stream = null; });
  follow();
}

for (const select of document.querySelectorAll("form.choose select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

const slider = document.getElementById("at");
if (slider) {
  const said = document.getElementById("at-said");
  slider.addEventListener("input", () => {
    said.textContent = new Date(slider.value * 1000).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
    slider.setAttribute("aria-valuetext", said.textContent);
  });
  slider.addEventListener("change", () => slider.form.requestSubmit());
}

document.addEventListener("click", async event => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const command = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(command);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(document.getElementById(button.dataset.copy));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "selected: copy it";
  }
});
