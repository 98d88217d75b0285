import { Group, Stack, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

/** A page: its title, what can be done on it, and its content. */
export function Page(props: { title: string; heading?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  useDocumentTitle(`${props.title} · Headway`);
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="sm">
        <Title order={1} style={{ minWidth: 0 }}>
          {props.heading ?? props.title}
        </Title>
        {props.actions && <Group gap="xs">{props.actions}</Group>}
      </Group>
      {props.children}
    </Stack>
  );
}
