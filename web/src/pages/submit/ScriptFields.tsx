import { Alert, Anchor, Autocomplete, Button, FileButton, Input, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState, type DragEvent } from "react";

import { post } from "../../api/client";
import type { Uploads } from "../../api/types";
import { interpreterOf, languageOf, troubleOf } from "../../lib/script";
import { Editor } from "../../parts/Editor";
import { Icon } from "../../parts/Icon";
import { tellTrouble } from "../../parts/tell";
import type { FieldsProps } from "./KindFields";
import { NameField } from "./NameField";
import { TargetPicker } from "./TargetPicker";

const largest = 1024 * 1024;
const interpreters = ["/bin/sh", "/bin/bash", "/usr/bin/python3", "/usr/bin/perl"];

/** A script, written here or dropped here, and where it runs. */
export function ScriptFields({ draft, set, wrong }: FieldsProps) {
  return (
    <Stack gap="sm">
      <NameField draft={draft} set={set} wrong={wrong} required />
      <ScriptText draft={draft} set={set} wrong={wrong} />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <TargetPicker value={draft.target} own={hostOf(draft.rest.target)} onChange={(target) => set({ target })} error={wrong.target} />
        <Autocomplete
          label="Interpreter"
          placeholder="by its first line, else /bin/sh"
          data={interpreters}
          value={draft.interpreter}
          error={wrong.interpreter}
          onChange={(interpreter) => set({ interpreter })}
          description={!draft.interpreter && interpreterOf(draft.script) ? `The first line names ${interpreterOf(draft.script)}` : undefined}
          inputWrapperOrder={["label", "input", "description", "error"]}
        />
      </SimpleGrid>
      <TextInput label="Arguments" placeholder='--fast "two words"' value={draft.scriptArgs} onChange={(e) => set({ scriptArgs: e.currentTarget.value })} />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <div>
          <Textarea label="Environment" placeholder={"NAME=value\nLEVEL=3"} autosize minRows={2} value={draft.env} error={wrong.env} onChange={(e) => set({ env: e.currentTarget.value })} />
          <Kept things={draft.envKept} what="variable" tell={valueOf} change={(envKept) => set({ envKept })} />
        </div>
        <Textarea label="Files to keep" placeholder={"report.csv\nlogs/*.log"} autosize minRows={2} value={draft.collect} onChange={(e) => set({ collect: e.currentTarget.value })} />
      </SimpleGrid>
      <Files files={draft.files} wrong={wrong.files} change={(files) => set({ files })} />
    </Stack>
  );
}

type KeptProps = { things: Record<string, unknown>; what: string; tell: (name: string, value: unknown) => string; change: (things: Record<string, unknown>) => void };

/** What is taken along as it is, each with a way to leave it out. */
function Kept({ things, what, tell, change }: KeptProps) {
  const entries = Object.entries(things);
  if (!entries.length) return null;
  return (
    <div className="chips" style={{ marginTop: 6 }}>
      {entries.map(([name, value]) => (
        <button key={name} type="button" className="chip" aria-label={`Leave out the ${what} ${name}`} onClick={() => change(Object.fromEntries(entries.filter(([other]) => other !== name)))}>
          {tell(name, value)} <Icon name="cross" size={10} />
        </button>
      ))}
    </div>
  );
}

const valueOf = (name: string, value: unknown): string => `${name}: ${typeof value === "string" ? "several lines" : `secret ${String((value as { secret?: string }).secret)}`}`;

/** Files that the script finds in its directory. They are brought at once, so that the job refers to them only. */
function Files({ files, wrong, change }: { files: Record<string, unknown>; wrong?: string; change: (files: Record<string, unknown>) => void }) {
  const [busy, setBusy] = useState(false);
  const bring = async (chosen: File[]) => {
    const form = new FormData();
    for (const file of chosen) form.append("file", file);
    setBusy(true);
    try {
      const { items } = await post<Uploads>("/uploads", form);
      change({ ...files, ...Object.fromEntries(items.map(({ name, id }) => [name, { upload: id }])) });
    } catch (error) {
      tellTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Input.Wrapper label="Files to bring along" description="The script finds them in the directory where it starts." labelElement="div" error={wrong}>
      <Kept things={files} what="file" tell={(name) => name} change={change} />
      <FileButton multiple onChange={(chosen) => void bring(chosen)}>
        {(props) => (
          <Button {...props} mt={6} variant="default" size="compact-xs" loading={busy} leftSection={<Icon name="upload" size={12} />}>
            Add files
          </Button>
        )}
      </FileButton>
    </Input.Wrapper>
  );
}

/** Where a target is that a job has of its own. */
const hostOf = (target: unknown): string => (typeof target === "object" && target !== null && "host" in target ? String(target.host) : "");

function ScriptText({ draft, set, wrong }: Pick<FieldsProps, "draft" | "set" | "wrong">) {
  const [over, setOver] = useState(false);
  const { script: kept, ...others } = draft.rest;
  const anew = { scriptFrom: "", rest: others };
  const take = async (file: File | null | undefined) => {
    if (!file) return;
    if (file.size > largest) return tellTrouble(new Error(`${file.name} is larger than 1 MiB.`));
    set({ script: await file.text(), ...anew, name: draft.name || file.name.replace(/\.\w+$/, "") });
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer.files[0]);
  };
  if (draft.scriptFrom || kept) {
    return (
      <Alert variant="light" color="gray" icon={<Icon name="file" />}>
        <Text size="sm">
          {draft.scriptFrom ? <>It runs the script of job <code>{draft.scriptFrom}</code>, which stays encrypted.</> : "The script stays as it is, encrypted."}{" "}
          <Anchor component="button" type="button" size="sm" onClick={() => set({ ...anew, script: "#!/bin/sh\nset -eu\n\n" })}>
            Write another one
          </Anchor>
        </Text>
      </Alert>
    );
  }
  return (
    <Input.Wrapper label="Script" error={wrong.script ?? (draft.script.length > 40 ? troubleOf(draft.script) : null)} description="Write it, or drop a file here. It is encrypted where it is kept." labelElement="div">
      <div
        data-drop={over}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDropCapture={drop}
        style={{ marginTop: 6, outline: over ? "2px dashed var(--mantine-color-anchor)" : undefined }}
      >
        <Editor label="Script" language={languageOf(draft.script, draft.interpreter)} value={draft.script} onChange={(script) => set({ script })} height={230} />
      </div>
      <FileButton onChange={(file) => void take(file)}>
        {(props) => (
          <Button {...props} mt={6} variant="default" size="compact-xs" leftSection={<Icon name="upload" size={12} />}>
            Upload a file
          </Button>
        )}
      </FileButton>
    </Input.Wrapper>
  );
}
