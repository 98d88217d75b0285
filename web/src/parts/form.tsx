import { Button, Group, Modal, Stack } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { Problem } from "../api/problem";
import { Trouble } from "./Notices";

type Props = { opened: boolean; close: () => void; title: string; verb: string; save: () => Promise<unknown>; children: ReactNode; size?: string; leave?: () => void };

/** A form in a dialog. It stays open, with everything that was entered, until the service has said yes. `close` is called
 * then, `leave` when somebody gives up. */
export function FormDialog({ opened, close, title, verb, save, children, size = "md", leave = close }: Props) {
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>(null);
  const submit = async () => {
    setBusy(true);
    setTrouble(null);
    try {
      await save();
      close();
    } catch (error) {
      setTrouble(Problem.of(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal opened={opened} onClose={leave} title={title} size={size}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation();
          void submit();
        }}
      >
        <Stack gap="sm">
          {children}
          {trouble !== null && <Trouble error={trouble} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={leave}>
              Leave it
            </Button>
            <Button type="submit" loading={busy}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
