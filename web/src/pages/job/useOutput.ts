import { useEffect, useRef, useState } from "react";

import { address } from "../../api/client";
import { Problem } from "../../api/problem";

/** Of long output the page fetches the end; all of it is in the download. */
const most = 900_000;
const lookEvery = 1_000;

type State = { text: string; skipped: boolean; loaded: boolean; error: unknown };

/** What an attempt has written, and while it runs what it goes on to write: only what is new is fetched. */
export function useOutput(jobId: string, attempt: number, live: boolean): State {
  const [state, setState] = useState<State>({ text: "", skipped: false, loaded: false, error: null });
  const running = useRef(live);
  running.current = live;

  useEffect(() => {
    const tail = new Tail(jobId, attempt);
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      const last = !running.current; // looked at before it is read: what was written before the end is then surely read
      try {
        await tail.read(stop.signal);
        setState({ text: tail.text, skipped: tail.skipped, loaded: true, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        setState((before) => ({ ...before, loaded: true, error }));
        if (isFinal(Problem.of(error).status)) return;
      }
      if (!last && !stop.signal.aborted) timer = setTimeout(() => void look(), lookEvery);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
    // Looked at anew when a job ends, so that nothing of its last second is missed.
  }, [jobId, attempt, live]);
  return state;
}

/** Whether asking again would bring the same answer; a service that is busy or just starting is asked again. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && status !== 429;

/** The output of an attempt from where the last look ended. */
class Tail {
  text = "";
  skipped = false;
  private offset = 0;
  private readonly decoder = new TextDecoder("utf-8", { fatal: false });

  constructor(
    private readonly jobId: string,
    private readonly attempt: number,
  ) {}

  async read(signal: AbortSignal): Promise<void> {
    const range = this.offset === 0 ? `bytes=-${most}` : `bytes=${this.offset}-`;
    const answer = await fetch(address(`/jobs/${this.jobId}/output`, { attempt: this.attempt }), { headers: { Range: range }, signal, cache: "no-store" });
    if (answer.status === 416 || answer.status === 204) return;
    if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})) as Record<string, unknown>);
    const data = new Uint8Array(await answer.arrayBuffer());
    const from = start(answer.headers.get("content-range"));
    if (answer.status === 206) this.take(data, from);
    else this.take(data.subarray(this.offset), this.offset);
  }

  private take(data: Uint8Array, from: number): void {
    if (this.offset === 0 && from > 0) this.skipped = true;
    this.offset = from + data.length;
    this.text = (this.text + this.decoder.decode(data, { stream: true })).slice(-2 * most);
  }
}

const start = (range: string | null): number => Number(/bytes (\d+)-/.exec(range ?? "")?.[1] ?? 0);
