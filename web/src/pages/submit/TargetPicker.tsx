import { Button, Select } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

import { useTargets } from "../../api/targets";
import { useMay } from "../../app/session";
import { Icon } from "../../parts/Icon";
import { TargetDialog } from "../targets/TargetDialog";

/** Where a script runs: one of the targets, or a new one; `own` is one that the job has for itself. */
export function TargetPicker({ value, own = "", onChange, error }: { value: string; own?: string; onChange: (name: string) => void; error?: string }) {
  const targets = useTargets();
  const may = useMay();
  const [adding, add] = useDisclosure(false);
  const options = (targets.data?.items ?? []).map((one) => ({ value: one.name, label: one.kind === "local" ? `${one.name} (this machine)` : `${one.name} (${one.user}@${one.host})` }));
  return (
    <div>
      <Select label="Target" required searchable placeholder={own ? `${own}, its own` : options.length ? "Choose a server" : "No targets yet"} data={options} value={value || null} error={error} onChange={(name) => onChange(name ?? "")} />
      {may("manage_targets") && (
        <Button mt={6} variant="default" size="compact-xs" leftSection={<Icon name="plus" size={12} />} onClick={add.open}>
          Add a target
        </Button>
      )}
      {adding && (
        <TargetDialog
          close={add.close}
          done={(name) => {
            onChange(name);
            add.close();
          }}
        />
      )}
    </div>
  );
}
