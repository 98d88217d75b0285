import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { Trouble } from "./Notices";

export type Question = { title: string; body: ReactNode; verb: string; danger?: boolean; act: () => Promise<unknown> };

/** Asks before something is done, stays open while it is, and says so if it could not be. */
export function useConfirm(): { ask: (question: Question) => void; dialog: ReactNode } {
  const [question, setQuestion] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>(null);
  const close = () => {
    setQuestion(null);
    setTrouble(null);
  };
  const act = async () => {
    if (!question) return;
    setBusy(true);
    setTrouble(null);
    try {
      await question.act();
      close();
    } catch (error) {
      setTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  const dialog = (
    <Modal opened={question !== null} onClose={close} title={question?.title} size="md">
      <Stack gap="md">
        <Text size="sm" component="div">
          {question?.body}
        </Text>
        {trouble !== null && <Trouble error={trouble} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close}>
            Keep as it is
          </Button>
          <Button color={question?.danger ? "red" : undefined} loading={busy} onClick={() => void act()} data-autofocus>
            {question?.verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
  return { ask: setQuestion, dialog };
}
