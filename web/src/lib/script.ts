import type { Language } from "../parts/CodeEditor";

/** What can be said of a script before it is sent. */
export function troubleOf(script: string): string | null {
  if (!script.trim()) return "The script is empty.";
  if (new TextEncoder().encode(script).length > 1024 * 1024) return "The script is larger than 1 MiB: upload it as a file for a short script to run.";
  if (script.startsWith("#!") && !/^#!\s*\/\S+/.test(script)) return "The first line must name a program by its whole path, such as #!/bin/sh.";
  return null;
}

/** The program that the first line names, if it names one. */
export function interpreterOf(script: string): string | null {
  const line = /^#!\s*(\S+)(?:\s+(\S+))?/.exec(script);
  if (!line) return null;
  return line[1]!.endsWith("/env") && line[2] ? line[2] : line[1]!;
}

const modes: [RegExp, Language][] = [
  [/python/, "python"],
  [/(^|\/)(ba|da|z|k)?sh$/, "shell"],
  [/node|deno/, "javascript"],
  [/perl/, "perl"],
  [/ruby/, "ruby"],
];

/** How to highlight it. */
export function languageOf(script: string, interpreter: string): Language {
  const named = interpreter || interpreterOf(script) || "sh";
  return modes.find(([pattern]) => pattern.test(named))?.[1] ?? "shell";
}
