import { Alert, Button, Center, Group, Skeleton, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { Problem } from "../api/problem";
import { Icon, type IconName } from "./Icon";

/** Nothing here yet, and what to do about it; where it is one of many things on a page, in a line. */
export function Empty(props: { icon?: IconName; title: string; children?: ReactNode; action?: ReactNode; small?: boolean }) {
  if (props.small) return <Text size="sm" c="dimmed" px={12} py="sm" component="div">{props.title}{props.children && <> {props.children}</>}</Text>;
  return (
    <Center py="xl" px="md">
      <Stack align="center" gap="xs" maw={460} ta="center">
        <Text c="dimmed" component="div">
          <Icon name={props.icon ?? "jobs"} size={28} />
        </Text>
        <Text fw={600}>{props.title}</Text>
        {props.children && (
          <Text c="dimmed" size="sm" component="div">
            {props.children}
          </Text>
        )}
        {props.action && <Group mt="xs" justify="center">{props.action}</Group>}
      </Stack>
    </Center>
  );
}

/** What went wrong, to what, and what to do. */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const told = Problem.of(error);
  return (
    <Alert color="red" variant="light" icon={<Icon name="bang" />} title={told.title} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {told.advice}
        </Text>
        {again && (
          <Button variant="default" onClick={again}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** Rows where rows will be, so that nothing jumps. */
export function Waiting({ rows = 6, height = 16 }: { rows?: number; height?: number }) {
  return (
    <Stack gap="sm" p="md" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <Skeleton key={i} height={height} width={`${94 - ((i * 17) % 30)}%`} />
      ))}
    </Stack>
  );
}

type Asked<T> = { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };

/** What was asked for, or that it is on its way, or why it did not come. Old data stays while new is fetched. */
export function Ask<T>({ of, rows, children }: { of: Asked<T>; rows?: number; children: (data: T) => ReactNode }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) {
    return (
      <div style={{ padding: 12 }}>
        <Trouble error={of.error} again={() => void of.refetch()} />
      </div>
    );
  }
  return <Waiting rows={rows} />;
}
