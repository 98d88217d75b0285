import { useQuery } from "@tanstack/react-query";

import { get } from "../../api/client";
import type { FunctionInfo, Page } from "../../api/types";

/** The functions that workers have announced. */
export function useFunctions(): FunctionInfo[] {
  const { data } = useQuery({ queryKey: ["functions"], queryFn: () => get<Page<FunctionInfo>>("/functions"), staleTime: 10_000 });
  return data?.items ?? [];
}
