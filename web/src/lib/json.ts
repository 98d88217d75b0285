/** JSON whose whole numbers stay as they are written: those that a number of JavaScript can't hold are kept as their text,
 * where the browser knows how, and written out again as they came. */

type Source = { source?: string };
type Exact = { rawJSON: (text: string) => object; isRawJSON: (value: unknown) => value is { rawJSON: string } };

const exact = "rawJSON" in JSON ? (JSON as unknown as Exact) : null;

export const parse = (text: string): unknown => JSON.parse(text, (_name: string, value: unknown, context?: Source) => (typeof value === "number" && context?.source ? whole(value, context.source) : value));

/** The number that a text of digits means. */
export const wholeNumber = (text: string): unknown => whole(Number(text), text.trim());

function whole(value: number, text: string): unknown {
  return exact && !Number.isSafeInteger(value) && /^-?\d+$/.test(text) ? exact.rawJSON(text) : value;
}

/** How a value that is no number of JavaScript is written; null for all others. */
export const writtenOut = (value: unknown): string | null => (exact?.isRawJSON(value) ? value.rawJSON : null);
