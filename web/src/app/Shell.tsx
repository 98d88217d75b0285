import { AppShell, Burger, Group, Loader, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { Link, Outlet, useLocation, useNavigation } from "react-router";

import { ended } from "../api/client";
import { useLive } from "../live/Live";
import { Empty, Trouble } from "../parts/Notices";
import { Page } from "../parts/Page";
import { Keys } from "./Keys";
import { LiveLight } from "./LiveLight";
import { Login, LoginPanel, takeCode } from "./Login";
import { guarded, Nav } from "./Nav";
import { Person } from "./Person";
import { Search } from "./Search";
import { useMay, useSession } from "./session";

/** What every page stands in: who looks, where to go, what is live. */
export function Shell() {
  const session = useSession();
  const queries = useQueryClient();
  const [expired, setExpired] = useState(false);
  useLive(Boolean(session.data) && !expired);
  useEffect(() => {
    const cover = () => setExpired(Boolean(queries.getQueryData(["session"])));
    ended.addEventListener("ended", cover);
    return () => ended.removeEventListener("ended", cover);
  }, [queries]);
  if (session.isPending) return <Loader m="xl" size="sm" aria-label="Loading" />;
  if (session.data === undefined) return <main style={{ padding: 24 }}><Trouble error={session.error} again={() => void session.refetch()} /></main>;
  if (session.data === null) return <Login />;
  return (
    <>
      <Frame />
      {/* Over the frame, not in its place: what somebody was writing when their session ended is still there. */}
      <Modal opened={expired} onClose={() => undefined} closeOnEscape={false} withCloseButton={false} fullScreen zIndex={1000} title="Log in again">
        <LoginPanel done={() => setExpired(false)}>Your session has ended. Log in again to go on where you were.</LoginPanel>
      </Modal>
    </>
  );
}

function Closed({ name }: { name: string }) {
  return (
    <Page title={name}>
      <Empty icon="access" title="Your role has no access to this page">Ask an admin for a role that does.</Empty>
    </Page>
  );
}

function Frame() {
  const [open, { toggle, close }] = useDisclosure(false);
  const place = useLocation();
  const may = useMay();
  const closed = guarded(place.pathname);
  const moving = useNavigation().state !== "idle";
  useEffect(close, [place.pathname, close]);
  useEffect(() => {
    if (place.hash.startsWith("#code=")) takeCode(); // a login link that was not needed
  }, [place.hash]);
  return (
    <AppShell header={{ height: 48 }} navbar={{ width: 204, breakpoint: "sm", collapsed: { mobile: !open } }} padding="md">
      <a className="skip-link" href="#content">
        Skip to content
      </a>
      <AppShell.Header style={{ background: "var(--surface)", borderColor: "var(--line)" }}>
        <Group h="100%" px="sm" gap="sm" wrap="nowrap">
          <Burger opened={open} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={open ? "Close the menu" : "Open the menu"} />
          <Link to="/" className="brand" aria-label="Headway, to the overview">
            <img src="/assets/icon.svg" alt="" width={24} height={24} />
            <span className="brand-word">Headway</span>
          </Link>
          <Search />
          <Group gap={4} ml="auto" wrap="nowrap">
            <LiveLight />
            <Person />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar style={{ background: "var(--surface)", borderColor: "var(--line)", overflowY: "auto" }} aria-label="Pages">
        <Nav />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} aria-busy={moving} data-place={place.pathname + place.search} style={{ outline: "none" }}>
        <div className="content">
          <Suspense fallback={<Loader size="sm" aria-label="Loading" />}>
            {closed && !may(closed.needs!) ? <Closed name={closed.name} /> : <Outlet />}
          </Suspense>
        </div>
      </AppShell.Main>
      <Keys />
    </AppShell>
  );
}
