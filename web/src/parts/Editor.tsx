import { Skeleton } from "@mantine/core";
import { lazy, Suspense, type ComponentProps } from "react";

const CodeEditor = lazy(() => import("./CodeEditor"));

/** The editor, fetched when it is first needed. */
export function Editor(props: ComponentProps<typeof CodeEditor>) {
  return (
    <Suspense fallback={<Skeleton height={props.height ?? 180} />}>
      <CodeEditor {...props} />
    </Suspense>
  );
}
