export const roles = [
  { value: "viewer", label: "viewer: looks at jobs, output and schedules" },
  { value: "operator", label: "operator: also submits, cancels, manages" },
  { value: "admin", label: "admin: also users, tokens, alerts, audit log" },
];
