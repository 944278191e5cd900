// A text editor in a shadow root: its styles are adopted there, which the pages' Content-Security-Policy allows.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier], color: "var(--k1)" },
  { tag: [tags.number, tags.bool, tags.atom, tags.null], color: "var(--k2)" },
  { tag: tags.string, color: "var(--k3)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--k4)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--k2)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--link)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--card)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--fill) 9%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--fill) 32%, transparent)",
  },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--card)", border: "1px solid var(--soft)", borderRadius: "6px", maxWidth: "min(560px, 92vw)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--paper)", backgroundColor: "var(--link)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--card)" },
  ".cm-diagnosticAction": { color: "var(--paper)", backgroundColor: "var(--link)" },
  ".cm-said": { padding: "4px 10px", maxHeight: "40vh", overflow: "auto", font: "14px/1.45 system-ui, sans-serif" },
  ".cm-said pre": { margin: "4px 0", whiteSpace: "pre-wrap", fontFamily: "ui-monospace, monospace" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.85" },
});

export function editor(host, { label, doc, language, changed, more = [], complete = null }) {
  const root = host.attachShadow({ mode: "open" });
  const holder = document.createElement("div");
  holder.style.height = "100%";
  root.append(holder);
  return new EditorView({
    parent: holder,
    root,
    state: EditorState.create({
      doc,
      extensions: [
        lineNumbers(), highlightActiveLineGutter(), foldGutter(), history(), drawSelection(), indentOnInput(),
        indentUnit.of("  "), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightSelectionMatches(),
        autocompletion(complete ? { override: [complete] } : { override: [] }),
        // Tab leaves the editor, as everywhere on a page.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
        syntaxHighlighting(colours), look, language, lintGutter(), EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(); }),
        ...more,
      ],
    }),
  });
}

// The policy language, by the grammar's own words.
export function policyLanguage(words) {
  const keywords = new Set(words);
  return StreamLanguage.define({
    name: "policy",
    startState: () => ({ long: "" }),
    token(stream, state) {
      if (state.long) {
        if (stream.skipTo(state.long)) {
          stream.match(state.long);
          state.long = "";
        } else stream.skipToEnd();
        return "string";
      }
      if (stream.eatSpace()) return null;
      if (stream.match(/\/\/.*/)) return "comment";
      const long = stream.match(/[rbRB]{0,2}("""|''')/);
      if (long) {
        state.long = long[1];
        return "string";
      }
      if (stream.match(/[rbRB]{0,2}"(?:[^"\\]|\\.)*"?/) || stream.match(/[rbRB]{0,2}'(?:[^'\\]|\\.)*'?/)) return "string";
      if (stream.match(/0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[A-Za-z]+)?/)) return "number";
      if (stream.match(/\.\??\s*[A-Za-z_]\w*/)) return "propertyName";
      const word = stream.match(/[A-Za-z_]\w*/);
      if (!word) {
        stream.next();
        return null;
      }
      if (word[0] === "true" || word[0] === "false" || word[0] === "null") return "atom";
      if (/^\s*:(?!:)/.test(stream.string.slice(stream.pos))) return "propertyName";
      return keywords.has(word[0]) ? "keyword" : null;
    },
    languageData: { commentTokens: { line: "//" } },
  });
}
