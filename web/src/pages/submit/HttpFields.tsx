import { ActionIcon, Autocomplete, Button, Checkbox, Group, Input, Select, Stack, TextInput } from "@mantine/core";

import { useSecretNames } from "../../api/secrets";
import { Editor } from "../../parts/Editor";
import { Icon } from "../../parts/Icon";
import type { Header } from "./draft";
import type { FieldsProps } from "./KindFields";
import { NameField } from "./NameField";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** A request to an address of yours. */
export function HttpFields({ draft, set, wrong }: FieldsProps) {
  return (
    <Stack gap="sm">
      <Group align="flex-start" gap="sm" wrap="nowrap">
        <Select label="Method" w={110} data={methods} value={draft.method} allowDeselect={false} onChange={(method) => set({ method: method ?? "POST" })} />
        <TextInput label="URL" required style={{ flex: 1 }} placeholder="https://example.com/hook" value={draft.url} error={wrong.url} onChange={(e) => set({ url: e.currentTarget.value })} />
      </Group>
      <NameField draft={draft} set={set} wrong={wrong} />
      <Headers headers={draft.headers} wrong={wrong.headers} change={(headers) => set({ headers })} />
      <Input.Wrapper label="Payload" description="JSON, or any text" labelElement="div" error={wrong.payload}>
        <div style={{ marginTop: 6 }}>
          <Editor label="Payload" language="json" height={110} value={draft.payload} onChange={(payload) => set({ payload })} hint='{"id": 42}' />
        </div>
      </Input.Wrapper>
    </Stack>
  );
}

export function Headers({ headers, wrong, change }: { headers: Header[]; wrong?: string; change: (headers: Header[]) => void }) {
  const secrets = useSecretNames();
  const put = (at: number, part: Partial<Header>) => change(headers.map((one, i) => (i === at ? { ...one, ...part } : one)));
  return (
    <Input.Wrapper label="Headers" labelElement="div" error={wrong}>
      <Stack gap={6} mt={4}>
        {headers.map((header, i) => (
          <Group key={i} gap={6} wrap="nowrap" align="center" className="entry-row">
            <TextInput aria-label={`Header ${i + 1}, name`} placeholder="Authorization" style={{ flex: 1, minWidth: 0 }} value={header.name} onChange={(e) => put(i, { name: e.currentTarget.value })} />
            {header.secret ? (
              <>
              <TextInput aria-label={`Header ${i + 1}, before the secret`} placeholder="Bearer " w={90} value={header.prefix ?? ""} onChange={(e) => put(i, { prefix: e.currentTarget.value })} />
              <Autocomplete aria-label={`Header ${i + 1}, name of the secret`} placeholder="name of a secret" style={{ flex: 1, minWidth: 0 }} data={secrets} value={header.value} onChange={(value) => put(i, { value })} />
              </>
            ) : (
              <TextInput aria-label={`Header ${i + 1}, value`} style={{ flex: 1, minWidth: 0 }} value={header.value} onChange={(e) => put(i, { value: e.currentTarget.value })} />
            )}
            <Checkbox size="xs" label="secret" checked={header.secret} onChange={(e) => put(i, { secret: e.currentTarget.checked, value: "" })} />
            <ActionIcon aria-label={`Remove header ${i + 1}`} onClick={() => change(headers.filter((_, at) => at !== i))}>
              <Icon name="cross" size={12} />
            </ActionIcon>
          </Group>
        ))}
        <Button variant="default" size="compact-xs" style={{ alignSelf: "flex-start" }} leftSection={<Icon name="plus" size={12} />} onClick={() => change([...headers, { name: "", value: "", secret: false }])}>
          Add a header
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
