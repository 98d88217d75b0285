import { useQuery } from "@tanstack/react-query";

import { get } from "./client";
import type { History, Page, Period, Stats, Worker } from "./types";

export const useStats = () => useQuery({ queryKey: ["live", "stats"], queryFn: () => get<Stats>("/stats"), refetchInterval: 5_000 });
export const useHistory = (period: Period, queue?: string) => useQuery({ queryKey: ["history", period, queue], queryFn: () => get<History>("/stats/history", { period, queue }), refetchInterval: 15_000, placeholderData: (before) => before });
export const useWorkers = () => useQuery({ queryKey: ["live", "workers"], queryFn: () => get<Page<Worker>>("/workers"), refetchInterval: 5_000 });
