import { Kbd, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useLocation, useNavigate } from "react-router";

import { uuid } from "../pages/jobs/filter";
import { Icon } from "../parts/Icon";

/** Finds jobs by name, id or error text, from anywhere. */
export function Search() {
  const [text, setText] = useState("");
  const go = useNavigate();
  const place = useLocation();
  const find = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    event.currentTarget.querySelector("input")?.blur(); // so that keys lead through what was found
    const wanted = text.trim();
    if (!wanted) return;
    if (uuid.test(wanted)) return void go(`/jobs/${wanted.toLowerCase()}`);
    const params = place.pathname === "/jobs" ? new URLSearchParams(place.search) : new URLSearchParams();
    params.set("q", wanted);
    void go(`/jobs?${params.toString()}`);
  };
  return (
    <form onSubmit={find} role="search" style={{ flex: 1, maxWidth: 420, minWidth: 0 }}>
      <TextInput
        id="search"
        size="xs"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        placeholder="Find jobs"
        aria-label="Find jobs by name, id or error text"
        leftSection={<Icon name="search" size={14} />}
        rightSection={<Kbd size="xs" visibleFrom="sm">/</Kbd>}
      />
    </form>
  );
}
