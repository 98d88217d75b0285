import { useEffect, useState } from "react";

import { remember, remembered } from "../../app/drafts";
import { blank, type Draft, type Kind } from "./draft";

/** What is entered survives a failure and a reload; it goes when the job is accepted. A job that is made `from` another has
 * a draft of its own, which begins with what that one was. */
export function useDraft(from: string | null, kind: Kind | null) {
  const [fresh, setFresh] = useState<Draft>(() => ({ ...blank(), ...(kind && { kind }) }));
  const [draft, setDraft] = useState<Draft>(() => {
    const before = remembered(from);
    return before ? { ...fresh, ...before, ...(kind && { kind }) } : fresh;
  });
  useEffect(() => remember(from, draft === fresh ? null : draft), [from, draft, fresh]);
  return {
    draft,
    set: (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part })),
    /** Another beginning; what somebody has entered already stays. */
    begin: (with_: Draft) => {
      setFresh(with_);
      setDraft((now) => (now === fresh ? with_ : now));
    },
    /** Back to the beginning. */
    clear: (kind: Kind) => {
      const again = from ? fresh : { ...blank(), kind };
      setFresh(again);
      setDraft(again);
    },
  };
}
