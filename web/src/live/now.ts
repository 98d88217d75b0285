import { useSyncExternalStore } from "react";

/** One clock for the whole page, so that relative times tick together, and not at all while nobody looks. */
const listeners = new Set<() => void>();
let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;

function tick() {
  if (document.hidden) return;
  now = new Date();
  for (const listener of listeners) listener();
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!timer) {
    now = new Date(); // it stood still while nobody listened
    timer = setInterval(tick, 1000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export const current = (): Date => now;

/** The time, to the second. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, current);
}

/** A text made from the time; renders again only when the text changes. */
export function useTicking(text: (now: Date) => string): string {
  return useSyncExternalStore(subscribe, () => text(now));
}
