import { Button, Center, Code, Stack, Text, Title } from "@mantine/core";
import { useRouteError } from "react-router";

/** A page that broke. Nothing was lost: all of it lives in the service. */
export function Crash() {
  const error = useRouteError();
  return (
    <Center mih="60vh" p="md">
      <Stack maw={560} gap="sm">
        <Title order={1}>This page broke</Title>
        <Text size="sm">Your jobs are not concerned: they live in the service. Load the page again; if it breaks again, report this:</Text>
        <Code block>{error instanceof Error ? (error.stack ?? error.message) : String(error)}</Code>
        <Button onClick={() => window.location.reload()}>Load again</Button>
      </Stack>
    </Center>
  );
}
