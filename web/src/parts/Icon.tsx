/** Sixteen by sixteen, drawn with one stroke width. */
const paths = {
  overview: "M2 13V8m4 5V4m4 9V6m4 7V2",
  jobs: "M2 3.5h12M2 8h12M2 12.5h8",
  submit: "M8 3v10M3 8h10",
  schedules: "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  queues: "M2 4h9l3 4-3 4H2l3-4Z",
  workers: "M3 6.5h10v6H3zM6 6.5v-3h4v3M5.5 9.5h.01M10.5 9.5h.01",
  targets: "M3 3h10v4H3zM3 9h10v4H3zM5 5h.01M5 11h.01",
  secrets: "M6.5 9.5a3 3 0 1 1 0-.1L14 2M11.5 4.5l2 2",
  access: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8Zm-5 6c.5-2.7 2.5-4 5-4s4.5 1.3 5 4",
  audit: "M4 2h6l3 3v9H4zM6.5 8h4M6.5 11h4",
  alerts: "M4 11V7a4 4 0 0 1 8 0v4l1 1H3Zm3 2.5h2",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm7 2-3.5-3.5",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "m3 8.5 3.2 3.2L13 5",
  cross: "m4 4 8 8m0-8-8 8",
  play: "M5 3v10l8-5Z",
  pause: "M5.5 3v10M10.5 3v10",
  clock: "M8 5v3l2 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  hourglass: "M4 2h8M4 14h8M5 2c0 4 6 4 6 12M11 2c0 4-6 4-6 12",
  retry: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  link: "M7 9a2.5 2.5 0 0 0 3.6 0l2-2A2.5 2.5 0 0 0 9 3.4M9 7a2.5 2.5 0 0 0-3.6 0l-2 2A2.5 2.5 0 0 0 7 12.6",
  slash: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0ZM4 12l8-8",
  dashed: "M8 2a6 6 0 0 1 4.2 1.7M14 8a6 6 0 0 1-1.8 4.2M8 14a6 6 0 0 1-4.2-1.8M2 8a6 6 0 0 1 1.8-4.2",
  spinner: "M8 2a6 6 0 1 1-6 6",
  bang: "M8 2 1.8 13.5h12.4ZM8 6.5v3M8 11.6v.01",
  download: "M8 2v8m0 0 3-3m-3 3L5 7M3 13.5h10",
  upload: "M8 10V2m0 0 3 3M8 2 5 5M3 13.5h10",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.7 9h5.6l.7-9",
  edit: "m3 13 .5-3L11 2.5 13.5 5 6 12.5Z",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-10v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1m8 8 1 1m0-10-1 1m-8 8-1 1",
  moon: "M13.5 9.5A6 6 0 1 1 6.5 2.5a5 5 0 0 0 7 7Z",
  question: "M6 6a2 2 0 1 1 2.8 1.8c-.5.3-.8.7-.8 1.4M8 11.5v.01M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  down: "m4 6 4 4 4-4",
  right: "m6 4 4 4-4 4",
  left: "m10 4-4 4 4 4",
  table: "M2 3h12v10H2zM2 6.5h12M6.5 6.5V13",
  plus: "M8 3v10M3 8h10",
  logout: "M6 3H3v10h3M7 8h7m0 0-2.5-2.5M14 8l-2.5 2.5",
  graph: "M4 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm8 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM4 6v3a3 3 0 0 0 3 3h3",
  live: "M5 11a4 4 0 0 1 0-6m6 0a4 4 0 0 1 0 6M8 8h.01",
  file: "M4 2h5l3 3v9H4z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16, spin = false }: { name: IconName; size?: number; spin?: boolean }) {
  return (
    <svg
      className={spin ? "icon spin" : "icon"}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.6}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
