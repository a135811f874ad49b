// What the work has brought, and what it cost: predicted against measured, by week, by table and by rewrite.

import { useInfiniteQuery, useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { FleetLedger } from "../components/ledger";
import { TableLink, TaskLink } from "../components/links";
import { Empty, Figures, Loaded, PageHeading, Time, Waiting } from "../components/ui";
import { bytes, count, duration, plural } from "../lib/format";
import { benefit } from "../lib/pictures";
import { useTitle } from "../lib/title";

const SHOWN = 50;
const KEPT_MS = 300_000;

type Document = queries.TaskDocument;

const COLUMNS: Column<Document>[] = [
  {
    id: "table",
    heading: "Table",
    by: (row) => row.task.table,
    cell: ({ task }) => <TableLink table={{ name: task.table, catalog: task.catalog, uuid: task.uuid }} />,
  },
  {
    id: "files",
    heading: "Files",
    numeric: true,
    by: (row) => (row.measured ? row.measured.input_files - row.measured.output_files : undefined),
    cell: ({ measured }) => (measured ? `${count(measured.input_files)} → ${count(measured.output_files)}` : "–"),
  },
  {
    id: "written",
    heading: "Written (predicted)",
    numeric: true,
    from: "md",
    by: (row) => row.measured?.output_bytes,
    cell: ({ task, measured }) =>
      measured
        ? `${bytes(measured.output_bytes)} (${task.prediction.kind === "rewrite_data_files" && task.prediction.estimate ? bytes(task.prediction.estimate.output_bytes) : "–"})`
        : "–",
  },
  {
    id: "cpu",
    heading: "CPU (predicted)",
    numeric: true,
    from: "sm",
    by: (row) => row.measured?.cpu_ms,
    cell: ({ task, measured }) =>
      measured
        ? `${duration(measured.cpu_ms)} (${task.prediction.kind === "rewrite_data_files" && task.prediction.estimate ? duration(task.prediction.estimate.cpu_ms) : "–"})`
        : "–",
  },
  {
    id: "wasted",
    heading: "Wasted",
    numeric: true,
    from: "lg",
    by: (row) => row.measured?.wasted_bytes,
    cell: ({ measured }) => (measured ? bytes(measured.wasted_bytes) : "–"),
  },
  { id: "task", heading: "Task", cell: ({ task }) => <TaskLink id={task.task_id} /> },
  {
    id: "at",
    heading: "Done",
    numeric: true,
    from: "md",
    by: (row) => row.task.updated_at,
    cell: ({ task }) => <Time at={task.updated_at} relative />,
  },
];

export function BenefitPage() {
  useTitle("Benefit");
  const list = useInfiniteQuery(queries.tasks({ state: ["succeeded"] }));
  const pages = list.data?.pages;
  const rewrites = useMemo(
    () =>
      (pages ?? [])
        .flatMap((page) => page.items)
        .filter((task) => task.action.kind === "rewrite_data_files")
        .slice(0, SHOWN),
    [pages],
  );
  const documents = useQueries({
    queries: rewrites.map((task) => ({
      ...queries.task(task.task_id),
      refetchInterval: false as const,
      staleTime: KEPT_MS,
    })),
  });
  const done = documents.flatMap((query) => (query.data ? [query.data.value] : []));
  const isWaiting = documents.some((query) => query.data === undefined && query.error === null);
  const total = benefit(done.map(({ task, measured }) => ({ prediction: { ...task.prediction }, measured })));
  return (
    <>
      <PageHeading title="Benefit" />
      <FleetLedger />
      <Loaded query={list} what="finished tasks">
        {() =>
          rewrites.length === 0 ? (
            <Empty>Nothing was rewritten yet. What it brings and costs stands here after the first task.</Empty>
          ) : (
            <div className="flex flex-col gap-4">
              <p className="text-soft">
                The latest {plural(rewrites.length, "rewrite")} of data files that{" "}
                {rewrites.length === 1 ? "was" : "were"} verified
                {list.hasNextPage || rewrites.length === SHOWN ? `; at most ${SHOWN} are summed up here` : ""}.
              </p>
              <Figures
                items={[
                  {
                    name: "Files",
                    value: `${count(total.filesBefore)} → ${count(total.filesAfter)}`,
                    note: total.filesBefore > 0 ? `${count(total.filesBefore - total.filesAfter)} fewer to open` : "",
                  },
                  { name: "Read", value: bytes(total.bytesRead) },
                  {
                    name: "Written",
                    value: bytes(total.bytesWritten),
                    note: `${bytes(total.bytesPredicted)} predicted`,
                  },
                  { name: "CPU", value: duration(total.cpuMs), note: `${duration(total.cpuPredictedMs)} predicted` },
                  { name: "Wasted", value: bytes(total.wastedBytes), note: "written by attempts that did not commit" },
                ]}
              />
              {isWaiting ? <Waiting what="what was measured" /> : null}
              <DataTable
                label="Rewrites, predicted and measured"
                rows={done}
                columns={COLUMNS}
                keyOf={(row) => row.task.task_id}
              />
            </div>
          )
        }
      </Loaded>
    </>
  );
}
