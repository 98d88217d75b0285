import { CallFields } from "./CallFields";
import type { Draft, Wrong } from "./draft";
import { FetchFields } from "./FetchFields";
import { HttpFields } from "./HttpFields";
import { ScriptFields } from "./ScriptFields";
import type { FunctionInfo } from "../../api/types";

export type FieldsProps = { draft: Draft; set: (part: Partial<Draft>) => void; wrong: Wrong; functions: FunctionInfo[] };

/** The fields of the kind that is chosen. */
export function KindFields(props: FieldsProps) {
  switch (props.draft.kind) {
    case "script":
      return <ScriptFields {...props} />;
    case "http":
      return <HttpFields {...props} />;
    case "fetch":
      return <FetchFields {...props} />;
    case "call":
      return <CallFields {...props} />;
  }
}
