import { createBrowserRouter } from "react-router";

import { Crash } from "./Crash";
import { Shell } from "./Shell";

/** What is seen until the first page has come. */
const Skeleton = () => null;

/** Pages are loaded when they are first looked at. */
export const router = createBrowserRouter([
  {
    path: "/",
    element: <Shell />,
    errorElement: <Crash />,
    HydrateFallback: Skeleton,
    children: [
      { index: true, lazy: async () => ({ Component: (await import("../pages/overview/Overview")).Overview }) },
      { path: "jobs", lazy: async () => ({ Component: (await import("../pages/jobs/Jobs")).Jobs }) },
      { path: "jobs/:id", lazy: async () => ({ Component: (await import("../pages/job/JobPage")).JobPage }) },
      { path: "submit", lazy: async () => ({ Component: (await import("../pages/submit/Submit")).Submit }) },
      { path: "schedules", lazy: async () => ({ Component: (await import("../pages/schedules/Schedules")).Schedules }) },
      { path: "schedules/new", lazy: async () => ({ Component: (await import("../pages/schedules/NewSchedule")).NewSchedule }) },
      { path: "schedules/:id", lazy: async () => ({ Component: (await import("../pages/schedules/SchedulePage")).SchedulePage }) },
      { path: "queues", lazy: async () => ({ Component: (await import("../pages/queues/Queues")).Queues }) },
      { path: "workers", lazy: async () => ({ Component: (await import("../pages/workers/Workers")).Workers }) },
      { path: "targets", lazy: async () => ({ Component: (await import("../pages/targets/Targets")).Targets }) },
      { path: "secrets", lazy: async () => ({ Component: (await import("../pages/secrets/Secrets")).Secrets }) },
      { path: "alerts", lazy: async () => ({ Component: (await import("../pages/alerts/Alerts")).Alerts }) },
      { path: "access", lazy: async () => ({ Component: (await import("../pages/access/Access")).Access }) },
      { path: "audit", lazy: async () => ({ Component: (await import("../pages/audit/Audit")).Audit }) },
      { path: "*", lazy: async () => ({ Component: (await import("./NotFound")).NotFound }) },
    ],
  },
]);
