/** How many fires fall into each of so many equal parts of a span of time. Behind the last that is known, if there are
 * `more`, they are taken to come on as often as the known ones do. */
export function density({ fires, more }: { fires: number[]; more: boolean }, start: number, span: number, parts: number): number[] {
  const found = new Array<number>(parts).fill(0);
  const add = (at: number, weight: number) => {
    const part = Math.floor(((Math.max(at, start) - start) * parts) / span);
    if (part < parts) found[part]! += weight;
  };
  for (const at of fires) add(at, 1);
  const [first, last] = [fires[0], fires.at(-1)];
  if (!more || first === undefined || last === undefined || last <= first) return found;
  const pace = (last - first) / (fires.length - 1);
  const width = span / parts;
  for (let at = last; at < start + span; ) {
    const edge = start + (Math.floor((at - start) / width) + 1) * width;
    add(at, Math.round((edge - at) / pace));
    at = edge;
  }
  return found;
}
