import { Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";

import { Trouble } from "../parts/Notices";
import { useLogin } from "./session";

/** The code of a login link is in the fragment, which browsers never send; it is taken out of the address at once. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (code) window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return code;
}

/** The page of whoever is not logged in. */
export function Login() {
  useDocumentTitle("Log in · Headway");
  return (
    <main>
      <LoginPanel />
    </main>
  );
}

/** The way in: a link from the terminal, or user and password. */
export function LoginPanel({ done, children }: { done?: () => void; children?: ReactNode }) {
  const login = useLogin();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const [byToken, setByToken] = useState(false);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const tried = useRef(false);

  const enter = async (credentials: Parameters<typeof login>[0]) => {
    setBusy(true);
    setTrouble(null);
    try {
      await login(credentials);
      done?.();
    } catch (error) {
      setTrouble(error);
    } finally {
      setBusy(false);
    }
  };

  useEffect(() => {
    const arrive = () => {
      const code = takeCode();
      if (code) void enter({ code });
    };
    if (!tried.current) {
      tried.current = true;
      arrive();
    }
    window.addEventListener("hashchange", arrive);
    return () => window.removeEventListener("hashchange", arrive);
  });

  const submit = (event: FormEvent) => {
    event.preventDefault();
    void enter(byToken ? { token } : { name, password });
  };

  return (
    <Center mih={done ? "80vh" : "100vh"} p="md">
      <Paper className="panel" p="xl" w="100%" maw={380}>
        <Stack gap="md">
          <div className="brand">
            <img src="/assets/icon.svg" alt="" width={28} height={28} />
            <Title order={1}>Headway</Title>
          </div>
          {children && <Text size="sm">{children}</Text>}
          {trouble !== null && <Trouble error={trouble} />}
          <form onSubmit={submit}>
            <Stack gap="sm">
              {byToken ? (
                <PasswordInput label="API token" value={token} onChange={(e) => setToken(e.currentTarget.value)} required autoComplete="off" />
              ) : (
                <>
                  <TextInput label="User" value={name} onChange={(e) => setName(e.currentTarget.value)} required autoComplete="username" autoFocus />
                  <PasswordInput label="Password" value={password} onChange={(e) => setPassword(e.currentTarget.value)} required autoComplete="current-password" />
                </>
              )}
              <Button type="submit" size="sm" loading={busy}>
                Log in
              </Button>
            </Stack>
          </form>
          <Text size="sm" c="dimmed">
            No account yet? The terminal where <Code>headway up</Code> runs printed a link that logs you in once.{" "}
            <Anchor component="button" type="button" size="sm" onClick={() => setByToken(!byToken)}>
              {byToken ? "Use a password instead" : "Use an API token instead"}
            </Anchor>
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}
