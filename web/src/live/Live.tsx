import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";

import { Gatherer } from "./gatherer";
import { stream, type Health } from "./stream";

export function useHealth(): Health {
  return useSyncExternalStore(
    (watcher) => stream.onHealth(watcher),
    () => stream.health,
  );
}

/** Keeps everything on the page up to date with what the service tells. */
export function useLive(active: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!active) return;
    const gatherer = new Gatherer(queries);
    const stopHearing = stream.onEvent((event) => gatherer.add(event));
    stream.start();
    return () => {
      stopHearing();
      gatherer.stop();
      stream.stop();
    };
  }, [active, queries]);
}
