// The queries of one table: which columns they filter by, what they cost, and what they recommend.

import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client";
import * as queries from "../api/queries";
import { bytes, count, percent, plural } from "../lib/format";
import { type Column, DataTable } from "./data-table";
import { Recommendation } from "./recommendations";
import { Code, Empty, Figures, Loaded, Name, Time } from "./ui";

const COLUMNS: Column<Schemas["FilteredColumnView"]>[] = [
  { id: "column", heading: "Column", cell: (row) => <Name>{row.column}</Name>, by: (row) => row.column },
  { id: "queries", heading: "Queries", cell: (row) => count(row.queries), by: (row) => row.queries, numeric: true },
  {
    id: "bytes",
    heading: "Bytes read",
    cell: (row) => bytes(row.bytes_read),
    by: (row) => row.bytes_read,
    numeric: true,
    from: "sm",
  },
  { id: "operators", heading: "Compared by", cell: (row) => Object.keys(row.operators).sort().join(", ") },
];

const TEMPLATES: Column<Schemas["TemplateView"]>[] = [
  { id: "text", heading: "Query", cell: (row) => <Name>{row.text}</Name>, by: (row) => row.text },
  {
    id: "queries",
    heading: "Queries",
    cell: (row) => count(row.sums.queries),
    by: (row) => row.sums.queries,
    numeric: true,
  },
  {
    id: "bytes",
    heading: "Bytes read",
    cell: (row) => bytes(row.sums.bytes_read),
    by: (row) => row.sums.bytes_read,
    numeric: true,
  },
  {
    id: "files",
    heading: "Files opened",
    cell: (row) => {
      const all = row.sums.files_read + row.sums.files_skipped;
      return all ? `${count(row.sums.files_read)} (${percent(row.sums.files_read / all)})` : "–";
    },
    by: (row) => row.sums.files_read,
    numeric: true,
    from: "md",
  },
  { id: "users", heading: "Users", cell: (row) => <Name>{Object.keys(row.sums.users).join(", ")}</Name>, from: "lg" },
  { id: "last", heading: "Last", cell: (row) => <Time at={row.sums.last_at} relative />, from: "lg" },
];

export function TableQueries({ table: ref }: { table: queries.TableRef }) {
  const found = useQuery(queries.tableQueries(ref));
  const recommended = useQuery(queries.recommendationsOf(ref));
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={recommended} what="recommendations">
        {({ items }) =>
          items.length === 0 ? null : (
            <section aria-label="Recommendations" className="flex flex-col gap-3">
              <h2 className="text-base font-semibold">Recommendations</h2>
              {items.map((each) => (
                <Recommendation key={each.recommendation_id} summary={each} />
              ))}
            </section>
          )
        }
      </Loaded>
      <Loaded query={found} what="its queries">
        {({ total, opened_share: opened, columns, templates, since, templates_left_out: left }) =>
          total.queries === 0 ? (
            <Empty>
              No queries of this table are known since <Time at={since} />. Engines report them by Trino's event
              listener, Spark's event logs or <Code>icewright send-queries</Code>.
            </Empty>
          ) : (
            <>
              <Figures
                items={[
                  { name: "Queries", value: count(total.queries), note: `${count(total.failed)} failed` },
                  { name: "Bytes read", value: bytes(total.bytes_read) },
                  { name: "Files opened", value: opened === null ? "–" : percent(opened), note: "of those there were" },
                  { name: "Users", value: count(Object.keys(total.users).length) },
                ]}
              />
              {columns.length > 0 ? (
                <section aria-label="Columns of filters">
                  <h2 className="mb-2 text-base font-semibold">Columns of filters</h2>
                  <DataTable label="Columns of filters" rows={columns} columns={COLUMNS} keyOf={(row) => row.column} />
                </section>
              ) : null}
              <section aria-label="Queries that differ in their values alone">
                <h2 className="mb-2 text-base font-semibold">Queries that differ in their values alone</h2>
                <DataTable
                  label="Queries that differ in their values alone"
                  rows={templates}
                  columns={TEMPLATES}
                  keyOf={(row) => row.fingerprint}
                />
                {left > 0 ? <p className="text-soft">{plural(left, "template")} more.</p> : null}
              </section>
            </>
          )
        }
      </Loaded>
    </div>
  );
}
