import { Text } from "@mantine/core";

import type { ErrorInfo } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { Panel } from "../../parts/Panel";
import { Copy } from "../../parts/Ident";

/** What went wrong last: the sentence first, the traceback for those who want it. */
export function ErrorPanel({ error }: { error: ErrorInfo }) {
  return (
    <Panel
      title={
        <span className="tone-failed tone-text" style={{ display: "inline-flex", gap: 6, alignItems: "center" }}>
          <Icon name="bang" size={14} /> {error.type || "Error"}
        </span>
      }
      aside={<Copy value={[error.type, error.message, error.traceback].filter(Boolean).join("\n")} label="Copy the error" />}
    >
      <Text size="sm" style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {error.message || "No message was given."}
      </Text>
      {error.traceback && <Traceback text={error.traceback} />}
    </Panel>
  );
}

export function Traceback({ text }: { text: string }) {
  return (
    <details style={{ marginTop: 8 }}>
      <summary style={{ cursor: "pointer", fontSize: "0.8125rem" }}>Traceback</summary>
      <pre className="block" tabIndex={0}>{text}</pre>
    </details>
  );
}
