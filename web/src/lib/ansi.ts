/** Text with ANSI escapes, as spans. Only colours and weights are kept; everything else that a terminal would obey
 * (moving the cursor, titles, links, clearing) is dropped. The result is data: nothing in it can become markup. */

export type Span = { text: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean; color: string | null; background: string | null };
export type Style = Omit<Span, "text">;

export const plain: Style = { bold: false, dim: false, italic: false, underline: false, color: null, background: null };

/** Chosen to be legible on the terminal's dark ground. */
const basic = ["#8390a1", "#ff8f73", "#63d6a4", "#f2c45a", "#7cc0ff", "#e5a1dd", "#6fd5e7", "#dbe2ea"];
const bright = ["#a4afbd", "#ffb4a0", "#92ebc5", "#ffdf94", "#a9d6ff", "#f4c6ee", "#a5e8f3", "#ffffff"];
const grounds = ["#1d252f", "#7a2410", "#0d4a36", "#5c4508", "#0d3a66", "#5b1f4b", "#0c4a57", "#414c5a"];

// CSI … final byte, OSC … (BEL or ST), other two-byte escapes, and control characters that print nothing.
// eslint-disable-next-line no-control-regex
const escapes = /\x1b\[([0-9;:?<=>]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[PX^_][^\x1b]*(?:\x1b\\|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** The spans of one line, and the style in which the next one begins. */
export function spans(line: string, from: Style = plain): { spans: Span[]; style: Style } {
  const found: Span[] = [];
  let style = from;
  let at = 0;
  const push = (text: string) => {
    if (text) found.push({ text, ...style });
  };
  for (const match of line.matchAll(escapes)) {
    push(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") style = restyled(style, match[1] ?? "");
  }
  push(line.slice(at));
  return { spans: found, style };
}

/** What the eye sees, for searching and copying. A carriage return begins the line anew, as progress bars do. */
export function visible(line: string): string {
  return spans(line).spans.map((span) => span.text).join("");
}

export function lastOverwrite(line: string): string {
  const trimmed = line.endsWith("\r") ? line.slice(0, -1) : line;
  return trimmed.slice(trimmed.lastIndexOf("\r") + 1);
}

function restyled(style: Style, codes: string): Style {
  const numbers = (codes || "0").split(/[;:]/).map((code) => Number(code || 0));
  const next = { ...style };
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i] ?? 0;
    if (code === 38 || code === 48) {
      const [color, used] = extended(numbers.slice(i + 1));
      if (code === 38) next.color = color;
      else next.background = color;
      i += used;
    } else apply(next, code);
  }
  return next;
}

function apply(style: Style, code: number): void {
  if (code === 0) Object.assign(style, plain);
  else if (code === 1) style.bold = true;
  else if (code === 2) style.dim = true;
  else if (code === 3) style.italic = true;
  else if (code === 4) style.underline = true;
  else if (code === 22) style.bold = style.dim = false;
  else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code >= 30 && code <= 37) style.color = basic[code - 30] ?? null;
  else if (code === 39) style.color = null;
  else if (code >= 40 && code <= 47) style.background = grounds[code - 40] ?? null;
  else if (code === 49) style.background = null;
  else if (code >= 90 && code <= 97) style.color = bright[code - 90] ?? null;
  else if (code >= 100 && code <= 107) style.background = grounds[code - 100] ?? null;
}

/** 256 colours and true colour: the colour, and how many numbers it took. */
function extended(rest: number[]): [string | null, number] {
  if (rest[0] === 5) return [indexed(rest[1] ?? 0), 2];
  if (rest[0] === 2) return [rgb(rest[1] ?? 0, rest[2] ?? 0, rest[3] ?? 0), 4];
  return [null, rest.length];
}

function indexed(n: number): string {
  if (n < 8) return basic[n] ?? "#dbe2ea";
  if (n < 16) return bright[n - 8] ?? "#dbe2ea";
  if (n >= 232) {
    const grey = 8 + (Math.min(n, 255) - 232) * 10;
    return rgb(grey, grey, grey);
  }
  const level = (x: number) => (x === 0 ? 0 : 55 + x * 40);
  const cube = n - 16;
  return rgb(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

const rgb = (...parts: number[]): string => `#${parts.map((n) => Math.max(0, Math.min(255, n)).toString(16).padStart(2, "0")).join("")}`;
