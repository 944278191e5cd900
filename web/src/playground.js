// The playground: two texts, and what the server says of them while one types.
import { setDiagnostics } from "@codemirror/lint";
import { yaml } from "@codemirror/lang-yaml";
import { drawn } from "./chart.js";
import { editor, policyLanguage } from "./editor.js";
import { completions, diagnostics, hovers } from "./language.js";
import { read, written } from "./link.js";

const PAUSE = 150; // milliseconds without a key before the server is asked
const element = (id) => document.getElementById(id);
const config = JSON.parse(element("play_config").textContent);
element("play-needs").hidden = true;
const says = (text) => { element("play-status").textContent = text; };

async function ask(question) {
  try {
    const answer = await fetch("playground/ask", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(question),
    });
    return answer.ok ? await answer.json() : { unusable: (await answer.text()).trim() };
  } catch {
    return { unusable: "the server does not answer; is it still running?" };
  }
}

// --- the two texts ---------------------------------------------------------------------------------------

let before = "";
const policy = editor(element("play-policy"), {
  label: "Policy",
  doc: "",
  language: policyLanguage(config.words),
  complete: config.edits ? completions(ask) : null,
  more: config.edits ? [hovers(ask)] : [],
  changed: () => later(),
});
const cluster = editor(element("play-cluster"), {
  label: "Cluster and pods: a scenario, or what kubectl prints",
  doc: "",
  language: yaml(),
  changed: () => later(),
});
const text = (view) => view.state.doc.toString();
const put = (view, value) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
const state = () => ({ policy: text(policy), before, cluster: text(cluster) });

function begin(given) {
  before = given.before ?? given.policy;
  put(policy, given.policy);
  put(cluster, given.cluster);
  later();
}

// --- what is said of them --------------------------------------------------------------------------------

let timer = 0;
let asking = false;
let pictures = [];

function later() {
  clearTimeout(timer);
  timer = setTimeout(look, PAUSE);
}

// One question at a time: what changes meanwhile is asked when it is answered.
async function look() {
  if (asking) return;
  asking = true;
  element("play-answer").setAttribute("aria-busy", "true");
  const asked = state();
  const doc = policy.state.doc;
  const [found, findings] = await Promise.all([ask({ ask: "evaluate", ...asked }), config.edits ? ask({ ask: "findings", policy: asked.policy }) : {}]);
  asking = false;
  if (policy.state.doc.eq(doc) && text(cluster) === asked.cluster && before === asked.before) {
    if (findings.answer) policy.dispatch(setDiagnostics(policy.state, diagnostics(policy.state.doc, findings.answer)));
    show(found);
    element("play-answer").setAttribute("aria-busy", "false");
    remember(asked);
    tests(found.answer?.tests ?? []);
  } else {
    look();
  }
}

function show(found) {
  for (const picture of pictures) picture.remove();
  pictures = [];
  const { answer, unusable } = found;
  if (!answer) {
    element("play-answer").replaceChildren(Object.assign(document.createElement("p"), { className: "note", textContent: unusable }));
    says(unusable);
    return;
  }
  element("play-answer").innerHTML = answer.html; // escaped where it is made: the server's templates
  says(answer.said);
  const host = element("play-pictures");
  if (host && answer.series) {
    const { at, end, waiting, running, cpu, memory } = answer.series;
    const whole = (column) => (end > at.at(-1) ? [...column, column.at(-1)] : column);
    const times = end > at.at(-1) ? [...at, end] : at;
    pictures.push(
      drawn(host, "Pods over time", times, [
        { name: "waiting", values: whole(waiting), variable: "--s6" },
        { name: "running", values: whole(running), variable: "--s0", dash: [6, 3] },
      ]),
      drawn(host, "Asked for, of what there is", times, [
        { name: "cpu", values: whole(cpu), variable: "--s0" },
        { name: "memory", values: whole(memory), variable: "--s1", dash: [6, 3] },
      ], { unit: " %", most: 100 }),
    );
  }
}

element("play-answer").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-line]");
  if (!button) return;
  const line = policy.state.doc.line(Math.min(Number(button.dataset.line), policy.state.doc.lines));
  const at = Math.min(line.from + Number(button.dataset.column ?? 1) - 1, line.to);
  policy.dispatch({ selection: { anchor: at }, scrollIntoView: true });
  policy.focus();
});

// --- links, beginnings, what is taken along --------------------------------------------------------------

let fragment = "";
async function remember(asked) {
  const found = await written(asked);
  element("play-link").disabled = found === null;
  element("play-link").title = found === null ? "The texts are too long for a link: export them" : "";
  if (found !== null && found !== fragment) history.replaceState(null, "", `#${(fragment = found)}`);
}

async function arrive() {
  const given = location.hash.slice(1);
  if (given && given === fragment) return;
  if (given) {
    try {
      begin(await read(given));
      return;
    } catch (error) {
      element("play-link-problem").textContent = `${error.message}; here is what the playground begins with.`;
      element("play-link-problem").hidden = false;
    }
  }
  await start("");
}

async function start(what) {
  const { answer, unusable } = await ask({ ask: "start", what });
  if (answer) begin(answer);
  else says(unusable);
}

let known = "";
function tests(found) {
  const names = found.map((one) => one.name);
  if (JSON.stringify(names) === known) return;
  known = JSON.stringify(names);
  const select = element("play-test");
  select.replaceChildren(new Option("of a test …", ""), ...names.map((name) => new Option(name, name)));
  select.disabled = !names.length;
}

element("play-start").addEventListener("change", (event) => start(event.target.value));
element("play-test").addEventListener("change", async (event) => {
  const what = event.target.value;
  event.target.value = "";
  if (!what) return;
  const { answer, unusable } = await ask({ ask: "cluster", what, policy: text(policy) });
  if (answer) put(cluster, answer);
  else says(unusable ?? "there is no such test any more");
});
element("play-keep").addEventListener("click", () => {
  before = text(policy);
  says("From now on the policy is compared with what it is now.");
  later();
});
element("play-file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  if (file.size > config.most) says(`${file.name} has ${file.size.toLocaleString()} bytes; ${config.most.toLocaleString()} are taken at most`);
  else put(file.name.endsWith(".policy") ? policy : cluster, await file.text());
  event.target.value = "";
});
element("play-link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    says("The link is copied. It holds both texts; no server keeps them.");
  } catch {
    says("The link is this page's address: copy it from there.");
  }
});

const dialog = element("play-export");
for (const button of document.querySelectorAll("button[data-export]")) {
  button.addEventListener("click", async () => {
    const { answer, unusable } = await ask({ ask: "export", what: button.dataset.export, policy: text(policy), cluster: text(cluster) });
    if (!answer) {
      says(unusable);
      return;
    }
    element("play-export-text").value = answer.text;
    element("play-export-text").scrollTop = 0;
    element("play-export-hint").textContent = answer.hint.replace("FILE", answer.file);
    element("play-export-name").textContent = answer.file;
    const save = element("play-export-save");
    if (save.href) URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(new Blob([answer.text], { type: "text/plain" }));
    save.download = answer.file;
    dialog.showModal();
    element("play-export-text").setSelectionRange(0, 0);
  });
}
element("play-export-copy").addEventListener("click", async () => {
  element("play-export-text").select();
  try {
    await navigator.clipboard.writeText(element("play-export-text").value);
    element("play-export-copy").textContent = "copied";
  } catch {
    element("play-export-copy").textContent = "selected: copy it";
  }
});
dialog.addEventListener("close", () => { element("play-export-copy").textContent = "Copy"; });

addEventListener("hashchange", arrive);
arrive();
