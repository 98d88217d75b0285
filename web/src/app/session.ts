import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { get, post, remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Permission, Session } from "../api/types";
import { forgetAll } from "./drafts";

/** Who looks at this page; null if nobody has said so yet. */
const whoLooks = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ client }): Promise<Session | null> => {
    try {
      return await get<Session>("/session");
    } catch (error) {
      // Whose session has ended is still the one whose forms are open.
      if (error instanceof Problem && error.status === 401 && !client.getQueryData(["session"])) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

export const useSession = () => useQuery(whoLooks);

/** Whether whoever looks may do something. */
export function useMay(): (permission: Permission) => boolean {
  const { data } = useSession();
  return useCallback((permission: Permission) => data?.permissions.includes(permission) ?? false, [data]);
}

export type Credentials = { code: string } | { name: string; password: string } | { token: string };

export function useLogin() {
  const queries = useQueryClient();
  return async (credentials: Credentials) => {
    const before = queries.getQueryData(whoLooks.queryKey);
    await post("/session", credentials);
    if (!before) return queries.resetQueries();
    const now = await queries.fetchQuery({ ...whoLooks, staleTime: 0 });
    if (now?.name !== before.name) leave();
    else await queries.invalidateQueries();
  };
}

export function useLogout() {
  const queries = useQueryClient();
  return async () => {
    await remove("/session");
    queries.clear();
    leave();
  };
}

/** Nothing that somebody has written stays for the next one. */
function leave(): void {
  forgetAll();
  window.location.assign("/");
}
