import { Title } from "@mantine/core";
import type { ReactNode } from "react";

/** A titled surface; what a page is made of. */
export function Panel(props: { title?: ReactNode; aside?: ReactNode; bare?: boolean; children: ReactNode; id?: string }) {
  return (
    <section className="panel" id={props.id}>
      {props.title !== undefined && (
        <div className="panel-head">
          <Title order={2} style={{ flex: 1, minWidth: "fit-content" }}>
            {props.title}
          </Title>
          {props.aside}
        </div>
      )}
      <div className={props.bare ? undefined : "panel-body"}>{props.children}</div>
    </section>
  );
}
