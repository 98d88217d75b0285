import { useQuery } from "@tanstack/react-query";

import { get } from "./client";
import type { Page, Queue } from "./types";

/** The kinds of jobs that this service knows, by its own description. */
export function useKinds(): string[] {
  const { data } = useQuery({
    queryKey: ["kinds"],
    queryFn: async () => {
      const answer = await fetch("/api/openapi.json");
      const document = (await answer.json()) as { components: { schemas: Record<string, unknown> } };
      return Object.keys(document.components.schemas)
        .filter((name) => name.startsWith("JobBody-"))
        .map((name) => name.slice("JobBody-".length));
    },
    staleTime: Infinity,
  });
  return data ?? ["call", "fetch", "http", "script"];
}

export function useQueueNames(): string[] {
  const { data } = useQuery({ queryKey: ["queues", "names"], queryFn: () => get<Page<Queue>>("/queues"), staleTime: 30_000 });
  return data?.items.map((queue) => queue.name) ?? [];
}
