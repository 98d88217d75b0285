import { Kbd, Modal, Table } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { useEffect } from "react";
import { useNavigate } from "react-router";

/** Opened from the menu as well as by the key. */
export const help = new EventTarget();

const keys: [string, string][] = [
  ["/", "find jobs"],
  ["j, k", "next, previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["n", "submit a job"],
  ["g o", "overview"],
  ["g j", "jobs"],
  ["g s", "schedules"],
  ["?", "this list"],
];

/** The keys that work on every page, and the list of all of them. */
export function Keys() {
  const [open, { open: show, close }] = useDisclosure(false);
  const go = useNavigate();
  useHotkeys([
    ["/", () => document.getElementById("search")?.focus()],
    ["shift+?", show],
    ["?", show],
    ["n", () => void go("/submit")],
  ]);
  useEffect(() => {
    help.addEventListener("open", show);
    return () => help.removeEventListener("open", show);
  }, [show]);
  useGoKeys((to) => void go(to));
  return (
    <Modal opened={open} onClose={close} title="Keys" size="xs">
      <Table>
        <Table.Tbody>
          {keys.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Td w={80}>
                <Kbd>{key}</Kbd>
              </Table.Td>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}

const places: Record<string, string> = { o: "/", j: "/jobs", s: "/schedules" };

/** `g` and then a letter, as mail readers have it. */
function useGoKeys(go: (to: string) => void): void {
  useEffect(() => {
    let waiting = 0;
    const press = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      const place = places[event.key];
      if (waiting && place && event.timeStamp - waiting < 1_500) {
        event.stopImmediatePropagation();
        go(place);
      }
      waiting = event.key === "g" ? event.timeStamp : 0;
    };
    window.addEventListener("keydown", press, { capture: true });
    return () => window.removeEventListener("keydown", press, { capture: true });
  });
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
