import { notifications } from "@mantine/notifications";

import { Problem } from "../api/problem";

/** A short word that something was done. */
export const tell = (message: string): void => void notifications.show({ message, autoClose: 4_000, withBorder: true });

/** A short word that something could not be done, and why. */
export function tellTrouble(error: unknown): void {
  const problem = Problem.of(error);
  notifications.show({ title: problem.title, message: problem.advice, color: "red", autoClose: 10_000, withBorder: true });
}
