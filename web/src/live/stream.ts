/** One event stream per browser: the tab that holds the lock listens and tells the others. A browser opens only six
 * connections to one place, so a stream for each tab would soon leave none for anything else. */

import { address } from "../api/client";

/** What happened to a job; without one, that something may have happened which is not told. */
export type News = { job_id?: string };
export type Health = "connecting" | "live" | "lost";
type Told = { type: "event"; event: News } | { type: "health"; health: Health } | { type: "asked" };

const channelName = "headway-events";
const retryAfter = 2_000;

export class Stream {
  private readonly hearers = new Set<(event: News) => void>();
  private readonly watchers = new Set<() => void>();
  private readonly channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(channelName);
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private release: (() => void) | null = null;
  private stopped = false;
  health: Health = "connecting";

  start(): void {
    this.stopped = false;
    if (this.channel) this.channel.onmessage = (message: MessageEvent<Told>) => this.heard(message.data);
    if (this.channel && navigator.locks) {
      this.channel.postMessage({ type: "asked" } satisfies Told);
      void navigator.locks.request(channelName, () => this.lead());
    } else this.connect();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.release?.();
    if (this.channel) this.channel.onmessage = null;
  }

  onEvent(hearer: (event: News) => void): () => void {
    this.hearers.add(hearer);
    return () => this.hearers.delete(hearer);
  }

  onHealth(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Holds the lock, and the stream, until this tab goes. */
  private lead(): Promise<void> {
    if (this.stopped) return Promise.resolve();
    this.connect();
    return new Promise((resolve) => {
      this.release = resolve;
    });
  }

  private connect(): void {
    const source = new EventSource(address("/events"));
    this.source = source;
    source.onopen = () => {
      this.feel("live");
      this.share({}); // what happened before it opened is told to nobody
    };
    source.onmessage = (message) => this.take(message);
    for (const name of eventNames) source.addEventListener(name, (message) => this.take(message));
    source.onerror = () => {
      source.close();
      if (this.stopped) return;
      this.feel("lost");
      this.timer = setTimeout(() => this.connect(), retryAfter);
    };
  }

  private take(message: MessageEvent<string>): void {
    let event: News;
    try {
      event = JSON.parse(message.data) as News;
    } catch {
      return; // a comment or a keep-alive: nothing that a person waits for
    }
    this.share(event);
  }

  private share(event: News): void {
    this.channel?.postMessage({ type: "event", event } satisfies Told);
    this.tell(event);
  }

  private heard(told: Told): void {
    if (told.type === "event") this.tell(told.event);
    else if (told.type === "health" && !this.source) this.become(told.health);
    else if (told.type === "asked" && this.source) this.feel(this.health);
  }

  private tell(event: News): void {
    for (const hearer of this.hearers) hearer(event);
  }

  private feel(health: Health): void {
    this.channel?.postMessage({ type: "health", health } satisfies Told);
    this.become(health);
  }

  private become(health: Health): void {
    this.health = health;
    for (const watcher of this.watchers) watcher();
  }
}

/** Servers may name their events after what happened; each name must be listened to. */
const states = ["creating", "scheduled", "blocked", "running", "cancelling", "completed", "failed", "cancelled", "deleted", "progress", "output"];
const eventNames = ["missed", ...states.map((state) => `job.${state}`)];

export const stream = new Stream();
