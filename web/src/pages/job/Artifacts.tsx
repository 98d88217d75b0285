import { Button, Text } from "@mantine/core";

import { useJobPart } from "../../api/jobs";
import type { Artifact, Job, Page } from "../../api/types";
import { bytes } from "../../lib/numbers";
import { Icon } from "../../parts/Icon";
import { Ask, Empty } from "../../parts/Notices";

/** Files that a job left for people. */
export function Artifacts({ job }: { job: Job }) {
  const artifacts = useJobPart<Page<Artifact>>(job.id, "artifacts");
  return (
    <Ask of={artifacts} rows={2}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty icon="file" title="No artifacts">
            Scripts name files to keep with <code>collect</code>; they show here when the job has ended.
          </Empty>
        ) : (
          <table className="grid">
            <thead>
              <tr>
                <th scope="col">File</th>
                <th scope="col" className="num">
                  Size
                </th>
                <th scope="col">
                  <span className="mantine-visually-hidden">Download</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((file) => (
                <tr key={file.name}>
                  <td className="mono">{file.name}</td>
                  <td className="num">{bytes(file.size)}</td>
                  <td className="num">
                    {file.url ? <Button
                      component="a"
                      href={file.url}
                      download={file.name.split("/").at(-1)}
                      variant="default"
                      size="compact-xs"
                      leftSection={<Icon name="download" size={12} />}
                    >
                      Download
                    </Button> : <Text size="xs" c="dimmed">{file.note ?? "not kept"}</Text>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      }
    </Ask>
  );
}
