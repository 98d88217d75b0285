import { ActionIcon, Button, Group, Input, Select, Stack, TextInput } from "@mantine/core";

import { Icon } from "../../parts/Icon";
import type { RetryRule } from "./draft";

const causes = [
  { value: "exception", label: "Exception" },
  { value: "status", label: "HTTP status" },
  { value: "exit", label: "Exit code" },
  { value: "message", label: "Message" },
];
const examples: Record<string, string> = { exception: "ConnectionError", status: "500-599", exit: "75", message: "regular expression" };

/** Failures that are waited for longer or shorter than others, or not retried at all; the first that fits decides. */
export function RetryRules({ rules, wrong, change }: { rules: RetryRule[]; wrong?: string; change: (rules: RetryRule[]) => void }) {
  const put = (at: number, part: Partial<RetryRule>) => change(rules.map((rule, i) => (i === at ? { ...rule, ...part } : rule)));
  return (
    <Input.Wrapper label="Rules of retrying" labelElement="div" error={wrong}>
      <Stack gap={6} mt={4}>
        {rules.map((rule, i) => (
          <Group key={i} gap={6} wrap="nowrap" className="entry-row">
            <Select aria-label={`Rule ${i + 1}, what it looks at`} w={120} data={causes} value={rule.on} allowDeselect={false} onChange={(on) => put(i, { on: on ?? "exception" })} />
            <TextInput aria-label={`Rule ${i + 1}, what it looks for`} placeholder={examples[rule.on]} style={{ flex: 1, minWidth: 0 }} value={rule.match} onChange={(e) => put(i, { match: e.currentTarget.value })} />
            <TextInput aria-label={`Rule ${i + 1}, seconds to wait`} placeholder="no retry" w={76} inputMode="decimal" value={rule.then} onChange={(e) => put(i, { then: e.currentTarget.value.replace(/[^\d.]/g, "") })} />
            <ActionIcon aria-label={`Remove rule ${i + 1}`} onClick={() => change(rules.filter((_, other) => other !== i))}>
              <Icon name="cross" size={12} />
            </ActionIcon>
          </Group>
        ))}
        <Button variant="default" size="compact-xs" leftSection={<Icon name="plus" size={12} />} onClick={() => change([...rules, { on: "exception", match: "", then: "" }])} style={{ alignSelf: "flex-start" }}>
          Add a rule
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
