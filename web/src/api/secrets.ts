import { useQuery } from "@tanstack/react-query";

import { useMay } from "../app/session";
import { get } from "./client";
import type { Page, Secret } from "./types";

export function useSecretNames(): string[] {
  const may = useMay();
  const { data } = useQuery({ queryKey: ["secrets"], queryFn: () => get<Page<Secret>>("/secrets"), staleTime: 10_000, enabled: may("manage_targets") });
  return data?.items.map((one) => one.name) ?? [];
}
