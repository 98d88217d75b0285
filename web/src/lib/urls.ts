/** Addresses from pasted text: one per line, or parted by spaces or commas. */
export function urlsIn(text: string): { urls: string[]; wrong: string[] } {
  const urls: string[] = [];
  const wrong: string[] = [];
  for (const piece of text.split(/[\s,]+/).filter(Boolean)) (isAddress(piece) ? urls : wrong).push(piece);
  return { urls, wrong };
}

function isAddress(text: string): boolean {
  try {
    return ["http:", "https:"].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}
