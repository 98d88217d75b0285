import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { javascript, json } from "@codemirror/legacy-modes/mode/javascript";
import { perl } from "@codemirror/legacy-modes/mode/perl";
import { python } from "@codemirror/legacy-modes/mode/python";
import { ruby } from "@codemirror/legacy-modes/mode/ruby";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

import { nonce } from "../app/nonce";

const languages = { shell, python, javascript, json, perl, ruby } as const;
export type Language = keyof typeof languages | "text";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.definitionKeyword, tags.controlKeyword], color: "var(--running)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--completed)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--retrying)" },
  { tag: [tags.variableName, tags.propertyName, tags.definition(tags.variableName)], color: "var(--blocked)" },
  { tag: [tags.standard(tags.variableName), tags.typeName, tags.meta], color: "var(--failed)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--mantine-color-text)" },
  ".cm-content": { fontFamily: "var(--mantine-font-family-monospace)", caretColor: "var(--mantine-color-text)", minHeight: "var(--editor-height, 180px)" },
  ".cm-gutters": { backgroundColor: "var(--surface-sunk)", color: "var(--mantine-color-dimmed)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused": { outline: "2px solid var(--mantine-color-anchor)", outlineOffset: "-1px" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--chosen) !important" },
  ".cm-placeholder": { color: "var(--mantine-color-placeholder)" },
});

type Props = { value: string; onChange?: (value: string) => void; language: Language; label: string; hint?: string; height?: number; readOnly?: boolean };

/** A text editor with highlighting. Escape, then Tab, leaves it. */
export default function CodeEditor({ value, onChange, language, label, hint, height = 180, readOnly = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  const mode = useRef(new Compartment());
  changed.current = onChange;

  useEffect(() => {
    const editor = new EditorView({
      parent: host.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          syntaxHighlighting(colours),
          look,
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          placeholder(hint ?? ""),
          EditorState.readOnly.of(readOnly),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of((update) => update.docChanged && changed.current?.(update.state.doc.toString())),
          mode.current.of(highlighting(language)),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
    // The editor keeps its own text; what comes from outside is handed over below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  useEffect(() => {
    view.current?.dispatch({ effects: mode.current.reconfigure(highlighting(language)) });
  }, [language]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  return <div ref={host} className="cm-host" style={{ ["--editor-height" as string]: `${height}px` }} />;
}

const highlighting = (language: Language): Extension => (language === "text" ? [] : StreamLanguage.define(languages[language]));
