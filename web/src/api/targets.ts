import { useQuery } from "@tanstack/react-query";

import { get } from "./client";
import type { Page, Target } from "./types";

export const useTargets = () => useQuery({ queryKey: ["live", "targets"], queryFn: () => get<Page<Target>>("/targets") });
