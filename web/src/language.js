// What the language server says, asked of the page's server: positions and shapes are LSP's.
import { snippet } from "@codemirror/autocomplete";
import { hoverTooltip } from "@codemirror/view";

const KINDS = { 2: "method", 3: "function", 5: "property", 6: "variable", 7: "class", 9: "namespace", 12: "constant", 14: "keyword", 15: "keyword", 20: "enum", 21: "constant", 25: "type" };
const SEVERITIES = { 1: "error", 2: "warning", 3: "info", 4: "hint" };

const offset = (doc, place) => {
  if (place.line >= doc.lines) return doc.length;
  const line = doc.line(place.line + 1);
  return Math.min(line.from + place.character, line.to);
};
const place = (doc, at) => {
  const line = doc.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
};

// Markdown as the language server writes it: blocks of code, paragraphs, rules.
function said(markdown) {
  const box = document.createElement("div");
  box.className = "cm-said";
  for (const [at, part] of markdown.split(/^```\w*\n?/m).entries()) {
    if (at % 2) {
      box.append(Object.assign(document.createElement("pre"), { textContent: part.trimEnd() }));
      continue;
    }
    for (const text of part.split(/\n{2,}/)) {
      if (/^-{3,}$/.test(text.trim())) box.append(document.createElement("hr"));
      else if (text.trim()) box.append(Object.assign(document.createElement("p"), { textContent: text.trim().replaceAll(/\*\*|`/g, "") }));
    }
  }
  return box;
}

// `${1:name}` and `$0` of LSP as CodeMirror has them.
const fields = (text) => text.replaceAll(/\$\{\d+:([^}]*)\}/g, "${$1}").replaceAll(/\$\d+/g, "${}");

export function completions(ask) {
  return async (context) => {
    const word = context.matchBefore(/[A-Za-z_][\w-]*/);
    const before = context.state.sliceDoc(Math.max(0, context.pos - 1), context.pos);
    if (!context.explicit && !word && !/[."?]/.test(before)) return null;
    const doc = context.state.doc;
    const { answer } = await ask({ ask: "complete", policy: doc.toString(), at: place(doc, context.pos) });
    if (!answer?.length || context.aborted) return null;
    return {
      from: offset(doc, answer[0].textEdit.range.start),
      validFor: /^[\w-]*$/,
      options: answer.map((item) => ({
        label: item.label,
        type: KINDS[item.kind],
        detail: item.detail,
        info: item.documentation ? () => said(item.documentation.value) : undefined,
        apply: item.insertTextFormat === 2 ? snippet(fields(item.textEdit.newText)) : item.textEdit.newText,
      })),
    };
  };
}

export function hovers(ask) {
  return hoverTooltip(async (view, at) => {
    const doc = view.state.doc;
    const { answer } = await ask({ ask: "hover", policy: doc.toString(), at: place(doc, at) });
    if (!answer) return null;
    const [pos, end] = [offset(doc, answer.range.start), offset(doc, answer.range.end)];
    return { pos, end, above: true, create: () => ({ dom: said(answer.contents.value) }) };
  });
}

// Findings as CodeMirror shows them, each with its fixes.
export function diagnostics(doc, findings) {
  return findings.map((finding) => ({
    from: offset(doc, finding.range.start),
    to: offset(doc, finding.range.end),
    severity: SEVERITIES[finding.severity] ?? "info",
    source: finding.code ?? undefined,
    message: finding.message,
    actions: finding.actions.map((action) => ({
      name: action.title,
      apply: (view) => {
        const now = view.state.doc;
        view.dispatch({
          changes: action.edits.map((edit) => ({ from: offset(now, edit.range.start), to: offset(now, edit.range.end), insert: edit.newText })),
          userEvent: "input.fix",
        });
      },
    })),
  }));
}
