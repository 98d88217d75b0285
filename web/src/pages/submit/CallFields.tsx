import { Autocomplete, Checkbox, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";

import { fieldsOf, type Entered, type Field } from "../../lib/form";
import { enteredIn } from "./draft";
import type { FieldsProps } from "./KindFields";

/** A function of the registry, and a form made from its signature. */
export function CallFields({ draft, set, wrong, functions }: FieldsProps) {
  const known = functions.find((one) => one.name === draft.function);
  const fields = known && fieldsOf(known.parameters);
  const entered = fields && enteredIn(fields, draft);
  const choose = (name: string) => set({ function: name, entered: {}, ...(functions.some((one) => one.name === name) && { rawArgs: "", rawKwargs: "" }) });
  return (
    <Stack gap="sm">
      <Autocomplete
        label="Function"
        required
        placeholder="mail.welcome"
        data={functions.map((one) => one.name)}
        value={draft.function}
        error={wrong.function}
        onChange={choose}
        description={functions.length ? undefined : "No worker has announced a function so far; start one with --app"}
      />
      {fields && entered ? (
        <Signature fields={fields} entered={entered} put={(name, value) => set({ entered: { ...draft.entered, [name]: value } })} wrong={wrong} />
      ) : (
        <>
          {draft.function && !known && (
            <Text size="sm" c="dimmed">
              No worker has announced this function: the job waits until one does. Give its arguments as JSON.
            </Text>
          )}
          <TextInput label="Arguments by position" placeholder="[42]" value={draft.rawArgs} error={wrong.rawArgs} onChange={(e) => set({ rawArgs: e.currentTarget.value })} />
          <TextInput label="Arguments by name" placeholder='{"user_id": 42}' value={draft.rawKwargs} error={wrong.rawKwargs} onChange={(e) => set({ rawKwargs: e.currentTarget.value })} />
        </>
      )}
    </Stack>
  );
}

type SignatureProps = { fields: Field[]; entered: Entered; put: (name: string, value: string | boolean) => void; wrong: FieldsProps["wrong"] };

function Signature({ fields, entered, put, wrong }: SignatureProps) {
  if (!fields.length) return <Text size="sm" c="dimmed">It takes no arguments.</Text>;
  return (
    <>
      {fields.map((field) => (
        <Entry key={field.name} field={field} value={entered[field.name]} put={(value) => put(field.name, value)} wrong={wrong[`args.${field.name}`]} />
      ))}
    </>
  );
}

function Entry({ field, value, put, wrong }: { field: Field; value: string | boolean | undefined; put: (value: string | boolean) => void; wrong?: string }) {
  const fallback = field.schema.default;
  const hint = fallback === undefined || fallback === null ? undefined : `${JSON.stringify(fallback)} if left out`;
  const common = { label: field.name, required: field.required, error: wrong, description: field.schema.description, placeholder: hint };
  const text = typeof value === "string" ? value : "";
  if (field.kind === "boolean") return <Checkbox size="sm" label={field.name} checked={value === undefined ? fallback === true : value === true || value === "true"} onChange={(e) => put(e.currentTarget.checked)} />;
  if (field.kind === "choice") return <Select {...common} data={field.choices} value={text || null} clearable={!field.required} onChange={(chosen) => put(chosen ?? "")} />;
  if (field.kind === "json") return <Textarea {...common} placeholder={hint ?? "JSON"} autosize minRows={2} value={text} onChange={(e) => put(e.currentTarget.value)} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />;
  return <TextInput {...common} inputMode={field.kind === "text" ? undefined : "decimal"} value={text} onChange={(e) => put(e.currentTarget.value)} />;
}
