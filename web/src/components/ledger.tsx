// The ledger: by week what was saved, as measured and as predicted, and what our own work cost.

import { useQuery } from "@tanstack/react-query";
import type { EChartsOption } from "echarts";
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import * as queries from "../api/queries";
import { floating, steps } from "../lib/causes";
import { bytes, count, duration, instant } from "../lib/format";
import { signed } from "../lib/pictures";
import { type Palette, Picture, said } from "./chart";
import { type Column, DataTable } from "./data-table";
import { TableLink } from "./links";
import { Loaded } from "./ui";

type Week = Schemas["BenefitWeek"];
type Row = Schemas["BenefitRow"];

const COLUMNS: Column<Row>[] = [
  {
    id: "table",
    heading: "Table",
    by: (row) => row.table,
    cell: (row) => <TableLink table={{ name: row.table, catalog: row.catalog, uuid: row.uuid }} />,
  },
  { id: "effect", heading: "Measured", by: (row) => row.effect ?? "", cell: (row) => row.effect ?? "–" },
  {
    id: "saved",
    heading: "Saved",
    numeric: true,
    by: (row) => row.total.saved_bytes ?? undefined,
    cell: (row) => signed(row.total.saved_bytes, bytes),
  },
  {
    id: "cpu",
    heading: "CPU spent",
    numeric: true,
    by: (row) => row.total.cpu_ms,
    cell: (row) => (row.total.tasks > 0 ? duration(row.total.cpu_ms) : "–"),
  },
  {
    id: "written",
    heading: "Written",
    numeric: true,
    from: "sm",
    by: (row) => row.total.written_bytes,
    cell: (row) => (row.total.tasks > 0 ? bytes(row.total.written_bytes) : "–"),
  },
];

export function FleetLedger() {
  const found = useQuery(queries.fleetBenefit);
  return (
    <Loaded query={found} what="the ledger">
      {({ weeks, tables, notes, causes }) =>
        weeks.length === 0 ? null : (
          <div className="mb-6 flex flex-col gap-4">
            <SavedPicture weeks={weeks} />
            <CostPicture weeks={weeks} />
            {causes && causes.length > 0 ? <CausesPicture causes={causes} /> : null}
            <DataTable label="Tables, with what was saved and spent" rows={tables} columns={COLUMNS} keyOf={keyOf} />
            <ul className="list-disc pl-5 text-sm text-soft">
              {notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          </div>
        )
      }
    </Loaded>
  );
}

function keyOf(row: Row): string {
  return `${row.catalog}/${row.uuid}`;
}

function day(week: Week): string {
  return instant(week.week_at).slice(0, 10);
}

interface Bars {
  name: string;
  colour: keyof Palette;
  of: (week: Week) => number | null;
}

function option(weeks: Week[], bars: Bars[], show: (value: number) => string): (colours: Palette) => EChartsOption {
  return (colours) => ({
    tooltip: {
      trigger: "axis",
      confine: true,
      backgroundColor: colours.card,
      borderColor: colours.line,
      textStyle: { color: colours.ink, fontSize: 13 },
      formatter: (given) => {
        const index = (given as unknown as { dataIndex: number }[])[0]?.dataIndex ?? 0;
        const week = weeks[index];
        return week ? said(day(week), ...bars.map((bar) => `${bar.name}: ${signed(bar.of(week), show)}`)) : said("");
      },
    },
    legend: { textStyle: { color: colours.ink }, top: 0 },
    grid: { left: 8, right: 8, top: 36, bottom: 8, containLabel: true },
    xAxis: { type: "category", data: weeks.map(day), axisLabel: { color: colours.soft, hideOverlap: true } },
    yAxis: {
      type: "value",
      axisLabel: { color: colours.soft, formatter: (value: number) => signed(value, show) },
      splitLine: { lineStyle: { color: colours.line } },
    },
    series: bars.map((bar) => ({
      type: "bar" as const,
      name: bar.name,
      color: colours[bar.colour],
      data: weeks.map((week) => bar.of(week) ?? "-"),
    })),
  });
}

const SAVED: Bars[] = [
  { name: "measured", colour: "good", of: (week) => week.saved_bytes },
  { name: "predicted", colour: "soft", of: (week) => week.predicted_bytes?.mean ?? null },
];
const CPU: Bars[] = [
  { name: "saved, at the stated rates", colour: "good", of: (week) => week.saved_cpu_ms },
  { name: "spent, as measured", colour: "accent", of: (week) => week.cpu_ms },
];

function SavedPicture({ weeks }: { weeks: Week[] }) {
  const drawn = useMemo(() => option(weeks, SAVED, bytes), [weeks]);
  const known = weeks.filter((week) => week.saved_bytes !== null);
  const total = known.reduce((sum, week) => sum + (week.saved_bytes ?? 0), 0);
  return (
    <Picture
      title="Bytes that queries did not read"
      summary={
        known.length === 0
          ? "Not known: no queries ran both before a change and since."
          : `${signed(total, bytes)} less than the same queries read before. Below zero more was read.`
      }
      option={drawn}
      numbers={{
        head: ["Week of", "Queries", "Read", "Saved", "Predicted", "at least", "at most"],
        rows: weeks.map((week) => [
          day(week),
          week.queries,
          week.queries_with_bytes > 0 ? bytes(week.bytes_read) : "not known",
          signed(week.saved_bytes, bytes),
          signed(week.predicted_bytes?.mean, bytes),
          signed(week.predicted_bytes?.low, bytes),
          signed(week.predicted_bytes?.high, bytes),
        ]),
      }}
    />
  );
}

function CostPicture({ weeks }: { weeks: Week[] }) {
  const drawn = useMemo(() => option(weeks, CPU, duration), [weeks]);
  const spent = weeks.reduce((sum, week) => sum + week.cpu_ms, 0);
  const tasks = weeks.reduce((sum, week) => sum + week.tasks, 0);
  return (
    <Picture
      title="CPU that queries saved, and that our work took"
      summary={`Finished tasks took ${duration(spent)} of CPU (${count(tasks)} of them).`}
      option={drawn}
      numbers={{
        head: ["Week of", "CPU saved", "CPU spent", "Tasks", "Files rewritten", "Files written", "Written"],
        rows: weeks.map((week) => [
          day(week),
          signed(week.saved_cpu_ms, duration),
          duration(week.cpu_ms),
          week.tasks,
          week.rewritten_files,
          week.written_files,
          bytes(week.written_bytes),
        ]),
      }}
    />
  );
}

const COLOURS = { saved: "good", spent: "accent", net: "ink" } as const;

function CausesPicture({ causes }: { causes: Schemas["CauseBenefit"][] }) {
  const found = useMemo(() => steps(causes), [causes]);
  const drawn = useMemo(() => {
    const bars = floating(found);
    return (colours: Palette): EChartsOption => ({
      tooltip: {
        trigger: "axis",
        confine: true,
        backgroundColor: colours.card,
        borderColor: colours.line,
        textStyle: { color: colours.ink, fontSize: 13 },
        formatter: (given) => {
          const step = found[(given as unknown as { dataIndex: number }[])[0]?.dataIndex ?? 0];
          return step ? said(step.name, signed(step.value, duration)) : said("");
        },
      },
      grid: { left: 8, right: 8, top: 8, bottom: 8, containLabel: true },
      xAxis: {
        type: "category",
        data: found.map((step) => step.name),
        axisLabel: { color: colours.soft, interval: 0, rotate: 30 },
      },
      yAxis: {
        type: "value",
        axisLabel: { color: colours.soft, formatter: (value: number) => signed(value, duration) },
        splitLine: { lineStyle: { color: colours.line } },
      },
      series: (["base", "above", "below"] as const).map((part) => ({
        type: "bar" as const,
        stack: "steps",
        silent: part === "base",
        data: bars.map((bar, index) => ({
          value: bar[part],
          itemStyle: { color: part === "base" ? "transparent" : colours[COLOURS[found[index]?.kind ?? "net"]] },
        })),
      })),
    });
  }, [found]);
  const net = found.find((step) => step.kind === "net")?.value;
  return (
    <Picture
      title="CPU by cause: saved, spent and what is left"
      summary={
        net !== undefined
          ? `${signed(net, duration)} of CPU is left. Below zero more was spent than saved.`
          : "What was saved is not known: no queries ran both before a change and since."
      }
      option={drawn}
      numbers={{
        head: ["Cause", "Predicted", "CPU saved", "CPU spent", "Written", "Tasks"],
        rows: causes.map((one) => [
          one.cause,
          signed(one.predicted_cpu_ms, duration),
          signed(one.saved_cpu_ms, duration),
          one.tasks > 0 ? duration(one.cpu_ms) : "–",
          one.tasks > 0 ? bytes(one.written_bytes) : "–",
          one.tasks,
        ]),
      }}
    />
  );
}
