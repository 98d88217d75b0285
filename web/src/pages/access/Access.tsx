import { Stack } from "@mantine/core";

import { Page } from "../../parts/Page";
import { Tokens } from "./Tokens";
import { Users } from "./Users";

/** Who may use this service, people and programs. */
export function Access() {
  return (
    <Page title="Users and tokens">
      <Stack gap="md">
        <Users />
        <Tokens />
      </Stack>
    </Page>
  );
}
