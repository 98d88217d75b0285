import { ActionIcon, Button, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { memo, useEffect, useMemo, useRef, useState, type CSSProperties, type ReactNode } from "react";

import { lastOverwrite, plain, spans, type Span, type Style } from "../../lib/ansi";
import { plural } from "../../lib/numbers";
import { Icon } from "../../parts/Icon";

/** More lines than this a browser draws slowly; the rest is in the download. */
const shownLines = 5_000;

type Line = { number: number; spans: Span[]; text: string };

/** A job's output as a terminal would show it: colours, search, follow and pause. It draws text nodes only, so nothing
 * that a job writes can become markup. */
export function Terminal({ text, live, skipped, aside }: { text: string; live: boolean; skipped: boolean; aside?: ReactNode }) {
  const [following, setFollowing] = useState(true);
  const [wanted, setWanted] = useState("");
  const [hit, setHit] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => read(text), [text]);
  const hits = useMemo(() => find(lines, wanted), [lines, wanted]);
  const current = hits.length ? hits[hit % hits.length] : undefined;

  useEffect(() => {
    const element = box.current;
    if (following && live && element && !wanted) element.scrollTop = element.scrollHeight;
  }, [lines, following, live, wanted]);
  useEffect(() => {
    if (current !== undefined) box.current?.querySelector(`[data-line="${current}"]`)?.scrollIntoView({ block: "nearest" });
  }, [current]);

  const scrolled = () => {
    const element = box.current;
    if (!element || !live) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 24;
    if (following && !atEnd) setFollowing(false);
  };
  const step = (by: number) => setHit((now) => (hits.length ? (now + by + hits.length) % hits.length : 0));

  return (
    <div>
      <Group gap="xs" px="sm" py={6} className="terminal-bar">
        <TextInput
          size="xs"
          w={180}
          placeholder="Search the output"
          aria-label="Search the output"
          value={wanted}
          leftSection={<Icon name="search" size={14} />}
          onChange={(event) => {
            setWanted(event.currentTarget.value);
            setHit(0);
          }}
          onKeyDown={(event) => event.key === "Enter" && step(event.shiftKey ? -1 : 1)}
        />
        {wanted && <Matches at={hit} of={hits.length} step={step} />}
        <Group gap="xs" ml="auto">
          <Text size="xs" c="dimmed">
            {plural(lines.length, "line")}
          </Text>
          {live && (
            <Tooltip label={following ? "Stay where you are while output comes in" : "Go along with the end of the output"}>
              <Button variant="default" size="compact-xs" leftSection={<Icon name={following ? "pause" : "play"} size={12} />} onClick={() => setFollowing(!following)}>
                {following ? "Pause" : "Follow"}
              </Button>
            </Tooltip>
          )}
          {aside}
        </Group>
      </Group>
      <div className="terminal" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="Output" aria-live="off">
        {(skipped || (lines[0]?.number ?? 1) > 1) && <Aside>… what came before is in the download</Aside>}
        {lines.length === 0 && <Aside>{live ? "Nothing written so far." : "It wrote nothing."}</Aside>}
        {lines.map((line) => (
          <Row key={line.number} line={line} wanted={wanted} isHit={line.number === current} />
        ))}
      </div>
    </div>
  );
}

function Matches({ at, of, step }: { at: number; of: number; step: (by: number) => void }) {
  return (
    <>
      <Text size="xs" c="dimmed" role="status">
        {of ? `${(at % of) + 1} of ${of}` : "not found"}
      </Text>
      <ActionIcon size="sm" aria-label="Previous match" onClick={() => step(-1)}>
        <Icon name="left" size={14} />
      </ActionIcon>
      <ActionIcon size="sm" aria-label="Next match" onClick={() => step(1)}>
        <Icon name="right" size={14} />
      </ActionIcon>
    </>
  );
}

function Aside({ children }: { children: ReactNode }) {
  return (
    <div className="line">
      <span className="text ansi-dim">{children}</span>
    </div>
  );
}

const Row = memo(function Row({ line, wanted, isHit }: { line: Line; wanted: string; isHit: boolean }) {
  return (
    <div className="line" data-line={line.number} data-hit={isHit}>
      <span className="gutter">{line.number}</span>
      <span className="text">
        {line.spans.map((span, i) => (
          <Piece key={i} span={span} wanted={wanted} />
        ))}
      </span>
    </div>
  );
});

function Piece({ span, wanted }: { span: Span; wanted: string }) {
  const names = [span.bold && "ansi-bold", span.dim && "ansi-dim", span.italic && "ansi-italic", span.underline && "ansi-underline"].filter(Boolean).join(" ");
  const style: CSSProperties = {};
  if (span.color) style.color = span.color;
  if (span.background) style.backgroundColor = span.background;
  return (
    <span className={names || undefined} style={style}>
      {wanted ? marked(span.text, wanted) : span.text}
    </span>
  );
}

function marked(text: string, wanted: string): ReactNode[] {
  const parts: ReactNode[] = [];
  const lower = text.toLowerCase();
  const seek = wanted.toLowerCase();
  let at = 0;
  for (let found = lower.indexOf(seek); found >= 0; found = lower.indexOf(seek, at)) {
    parts.push(text.slice(at, found), <mark key={found}>{text.slice(found, found + seek.length)}</mark>);
    at = found + seek.length;
  }
  return [...parts, text.slice(at)];
}

/** The last lines of a text, styled; a style goes on from line to line as it does in a terminal. */
function read(text: string): Line[] {
  const raw = text.split("\n");
  if (raw.at(-1) === "") raw.pop();
  const from = Math.max(0, raw.length - shownLines);
  let style: Style = plain;
  return raw.slice(from).map((line, i) => {
    const done = spans(lastOverwrite(line), style);
    style = done.style;
    return { number: from + i + 1, spans: done.spans, text: done.spans.map((span) => span.text).join("") };
  });
}

function find(lines: Line[], wanted: string): number[] {
  if (!wanted) return [];
  const seek = wanted.toLowerCase();
  return lines.filter((line) => line.text.toLowerCase().includes(seek)).map((line) => line.number);
}
