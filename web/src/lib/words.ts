/** Small texts as people write them. */

/** Words as a shell would part them; quotes hold words together. */
export function wordsOf(text: string): string[] {
  return [...text.matchAll(/(?:"[^"]*"|'[^']*'|\S)+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

/** Words as one text that is parted into the same words again, here and by shells. */
export const quoted = (words: readonly string[]): string => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : word.split("'").map((part) => `'${part}'`).join(`"'"`))).join(" ");

/** `NAME=value` on each line. */
export function pairsOf(text: string): { pairs: Record<string, string>; wrong: string | null } {
  const pairs: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const at = line.indexOf("=");
    if (at < 1) return { pairs, wrong: `"${line.trim()}" must look like NAME=value.` };
    pairs[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return { pairs, wrong: null };
}
