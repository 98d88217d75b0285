import { Checkbox, Stack, Textarea } from "@mantine/core";

import { plural } from "../../lib/numbers";
import { urlsIn } from "../../lib/urls";
import { Headers } from "./HttpFields";
import type { FieldsProps } from "./KindFields";

/** A list of addresses to fetch, as one batch. */
export function FetchFields({ draft, set, wrong }: FieldsProps) {
  const { urls } = urlsIn(draft.urls);
  const distinct = new Set(urls).size;
  const told = urls.length ? `${plural(urls.length, "address", "addresses")}${distinct < urls.length ? `, ${distinct} different` : ""}` : "One on each line";
  return (
    <Stack gap="sm">
      <Textarea label="URLs" required description={told} placeholder={"https://example.com/a\nhttps://example.com/b"} autosize minRows={8} maxRows={20} value={draft.urls} error={wrong.urls} onChange={(e) => set({ urls: e.currentTarget.value })} />
      <Headers headers={draft.headers} wrong={wrong.headers} change={(headers) => set({ headers })} />
      <Checkbox size="sm" label="Fetch them even if they were fetched within the last hour" checked={draft.refetch} onChange={(e) => set({ refetch: e.currentTarget.checked })} />
    </Stack>
  );
}
