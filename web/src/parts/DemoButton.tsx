import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../api/client";
import { useMay } from "../app/session";
import { tell, tellTrouble } from "./tell";

/** Fills an empty service with something to look at. */
export function DemoButton() {
  const [busy, setBusy] = useState(false);
  const queries = useQueryClient();
  const may = useMay();
  if (!may("administer")) return null;
  const seed = async () => {
    setBusy(true);
    try {
      await post("/demo");
      tell("Jobs and schedules of the demo are on their way.");
      await queries.invalidateQueries();
    } catch (error) {
      tellTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button variant="default" loading={busy} onClick={() => void seed()}>
      Show me a demo
    </Button>
  );
}
