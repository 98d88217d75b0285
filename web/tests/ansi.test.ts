import { expect, test } from "vitest";

import { lastOverwrite, plain, spans, visible } from "../src/lib/ansi";

test("colours and weights become styles", () => {
  const { spans: found } = spans("a\x1b[1;31mred\x1b[0m b");
  expect(found.map((span) => [span.text, span.bold, span.color !== null])).toEqual([
    ["a", false, false],
    ["red", true, true],
    [" b", false, false],
  ]);
});

test("a style goes on into the next line", () => {
  const { style } = spans("\x1b[32mgreen");
  expect(spans("still", style).spans[0]?.color).toBe(style.color);
  expect(style).not.toEqual(plain);
});

test("256 colours and true colours are read", () => {
  expect(spans("\x1b[38;5;196mx").spans[0]?.color).toBe("#ff0000");
  expect(spans("\x1b[48;2;1;2;3mx").spans[0]?.background).toBe("#010203");
});

test("whatever else a terminal would obey is dropped", () => {
  const hostile = "\x1b]0;title\x07\x1b[2J\x1b[10;10H\x1b]8;;javascript:alert(1)\x1b\\click\x1b]8;;\x1b\\\x1b[?1049h\x07\x08!";
  expect(visible(hostile)).toBe("click!");
});

test("markup stays text", () => {
  expect(visible("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
});

test("an unfinished escape at the end does no harm", () => {
  expect(visible("ok\x1b[")).toBe("ok");
  expect(visible("ok\x1b]0;never ended")).toBe("ok");
});

test("a carriage return begins the line anew", () => {
  expect(lastOverwrite("10%\r20%\r30%")).toBe("30%");
  expect(lastOverwrite("windows\r")).toBe("windows");
});
