import { ActionIcon, Menu, Text, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";

import { Icon } from "../parts/Icon";
import { help } from "./Keys";
import { useLogout, useSession } from "./session";

/** Light or dark, help, and the way out. */
export function Person() {
  const scheme = useComputedColorScheme("light");
  const { setColorScheme } = useMantineColorScheme();
  const { data } = useSession();
  const logout = useLogout();
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <>
      <ActionIcon onClick={() => setColorScheme(other)} aria-label={`Change to ${other} colours`} size="md">
        <Icon name={scheme === "dark" ? "sun" : "moon"} />
      </ActionIcon>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon aria-label="You" size="md">
            <Icon name="access" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            <Text size="sm" fw={600} truncate>
              {data?.name || "You"}
            </Text>
            <Text size="xs" c="dimmed">
              {data?.role}
            </Text>
          </Menu.Label>
          <Menu.Divider />
          <Menu.Item leftSection={<Icon name="question" />} onClick={() => help.dispatchEvent(new Event("open"))}>
            Keys and help
          </Menu.Item>
          <Menu.Item component="a" href="/api/docs" leftSection={<Icon name="file" />}>
            API documentation
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="logout" />} onClick={() => void logout()}>
            Log out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}
