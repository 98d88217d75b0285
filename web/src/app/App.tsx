import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "react-router/dom";

import { Problem } from "../api/problem";
import { nonce } from "./nonce";
import { router } from "./router";
import { theme, variables } from "./theme";

const queries = new QueryClient({
  queryCache: new QueryCache(),
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      refetchOnWindowFocus: true,
      // What the service refuses it would refuse again; what never reached it is worth another try.
      retry: (count, error) => Problem.of(error).status === 0 && count < 2,
    },
  },
});

export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queries}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
