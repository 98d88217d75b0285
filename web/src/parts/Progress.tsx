import { Text } from "@mantine/core";

type Told = { done: number; total: number | null; text: string | null };

/** How far a job has come, by its own word. */
export function Progress({ of, width }: { of: Told; width?: number | string }) {
  const percent = of.total ? Math.min(100, Math.round((of.done / of.total) * 100)) : null;
  const label = of.total ? `${of.done} of ${of.total}` : String(of.done);
  return (
    <div style={{ width, minWidth: 0 }} title={[label, of.text].filter(Boolean).join(" · ")}>
      {percent !== null && (
        <div className="bar" role="progressbar" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} aria-label={`Progress: ${label}`}>
          <div style={{ width: `${percent}%` }} />
        </div>
      )}
      {(width === undefined || typeof width === "string") && (
        <Text size="xs" c="dimmed" mt={2} className="truncate">
          {[label, of.text].filter(Boolean).join(" · ")}
        </Text>
      )}
    </div>
  );
}
