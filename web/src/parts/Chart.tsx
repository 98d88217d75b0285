import "uplot/dist/uPlot.min.css";

import { ActionIcon, Tooltip, useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";

import { Icon } from "./Icon";
import { Panel } from "./Panel";

export type Series = { name: string; tone: string; values: (number | null)[]; dash?: number[] };
type Props = { title: string; times: number[]; series: Series[]; format: (value: number) => string; height?: number };

/** A chart over time, and the same figures as a table for those who can't or don't want to read a canvas. */
export function Chart(props: Props) {
  const [asTable, setAsTable] = useState(false);
  const label = asTable ? "Show as a chart" : "Show as a table";
  return (
    <Panel
      title={props.title}
      bare
      aside={
        <Tooltip label={label}>
          <ActionIcon size="sm" aria-label={`${props.title}: ${label.toLowerCase()}`} aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            <Icon name={asTable ? "overview" : "table"} size={14} />
          </ActionIcon>
        </Tooltip>
      }
    >
      <div className="chart-legend">
        <Legend {...props} />
      </div>
      {asTable ? <Figures {...props} /> : <Canvas {...props} />}
    </Panel>
  );
}

function Legend({ series, format }: Props) {
  return (
    <ul className="legend">
      {series.map((one) => {
        const last = one.values.findLast((value) => value !== null && value !== undefined);
        return (
          <li key={one.name}>
            <svg width="16" height="8" aria-hidden="true">
              <line x1="0" y1="4" x2="16" y2="4" stroke={`var(--${one.tone})`} strokeWidth="2.5" strokeDasharray={one.dash?.join(" ")} />
            </svg>
            {one.name} <b>{last === undefined || last === null ? "–" : format(last)}</b>
          </li>
        );
      })}
    </ul>
  );
}

function Canvas({ title, times, series, format, height = 150 }: Props) {
  const { ref, width } = useElementSize();
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useComputedColorScheme("light");
  const shape = series.map((one) => `${one.name}/${one.tone}`).join();
  useEffect(() => {
    if (!host.current || width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const tone = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: tone("mantine-color-dimmed"), grid: { stroke: tone("line-soft"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const made = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, points: { size: 5 } },
        padding: [10, 20, 0, 0],
        scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.15, 1)] } },
        axes: [{ ...axis, space: 64, size: 30, values: (_, all) => all.map((at) => clock(at, times)) }, { ...axis, size: 52, space: 34, values: (_, all) => all.map(format) }],
        series: [{}, ...series.map((one) => ({ label: one.name, stroke: tone(one.tone), width: 1.75, dash: one.dash, points: { show: false }, spanGaps: false }))],
      },
      [times, ...series.map((one) => one.values)] as uPlot.AlignedData,
      host.current,
    );
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
    // Data alone is handed over below, without drawing the axes anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [width, height, scheme, shape]);
  useEffect(() => {
    plot.current?.setData([times, ...series.map((one) => one.values)] as uPlot.AlignedData);
  }, [times, series]);
  return <div ref={ref} role="img" aria-label={`${title}; the button above shows the figures as a table`} style={{ height, overflow: "hidden" }}><div ref={host} /></div>;
}

/** Hours and minutes; days where more than two of them are shown. */
function clock(at: number, times: number[]): string {
  const days = ((times.at(-1) ?? at) - (times[0] ?? at)) / 86_400;
  const options: Intl.DateTimeFormatOptions = days > 2 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hour12: false };
  return new Intl.DateTimeFormat(undefined, options).format(new Date(at * 1000));
}

function Figures({ title, times, series, format, height = 150 }: Props) {
  const rows = times.map((at, i) => ({ at, i })).reverse();
  return (
    <div className="table-scroll" style={{ maxHeight: height + 40 }} tabIndex={0} role="region" aria-label={`${title}, as a table`}>
      <table className="grid">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map((one) => (
              <th key={one.name} scope="col" className="num">
                {one.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ at, i }) => (
            <tr key={at}>
              <td className="nowrap">{new Date(at * 1000).toLocaleString()}</td>
              {series.map((one) => (
                <td key={one.name} className="num">
                  {one.values[i] === null || one.values[i] === undefined ? "–" : format(one.values[i])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
