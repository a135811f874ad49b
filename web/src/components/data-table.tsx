// Rows and columns: sorted by their headings, virtual where there are many, a real table for who hears it read.

import {
  createColumnHelper,
  createSortedRowModel,
  type RowData,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Button, classes } from "./ui";

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });
const VIRTUAL_FROM = 100;
const ROW_HEIGHT = 44;

export interface Column<T extends RowData> {
  id: string;
  heading: string;
  cell: (row: T) => ReactNode;
  /** By what it is sorted; without, it is not. */
  by?: (row: T) => number | string | null | undefined;
  numeric?: boolean;
  /** From which width on it is shown: narrower pages have the most important columns alone. */
  from?: "sm" | "md" | "lg" | "xl";
}

const FROM = {
  sm: "max-sm:hidden",
  md: "max-md:hidden",
  lg: "max-lg:hidden",
  xl: "max-xl:hidden",
};

/** `sort` is the address's, as in `-bytes`. With `bySever` the rows come sorted, and only the wish is told. */
export function DataTable<T extends RowData>({
  label,
  rows,
  columns,
  keyOf,
  sort,
  onSort,
  byServer = false,
  sortable,
  total,
  more,
}: {
  label: string;
  rows: T[];
  columns: Column<T>[];
  keyOf: (row: T) => string;
  sort?: string | undefined;
  onSort?: (sort: string) => void;
  byServer?: boolean;
  /** With `byServer`: the columns by which it can sort. */
  sortable?: readonly string[];
  total?: number | undefined;
  more?: { load: () => void; isLoading: boolean } | undefined;
}) {
  const [own, setOwn] = useState<string | undefined>(undefined);
  const wish = sort ?? own;
  const sorting = useMemo(() => (wish ? [{ id: wish.replace(/^-/, ""), desc: wish.startsWith("-") }] : []), [wish]);
  const defined = useMemo(() => {
    const helper = createColumnHelper<typeof features, T>();
    return columns.map((column) =>
      helper.accessor((row: T): unknown => column.by?.(row) ?? undefined, {
        id: column.id,
        enableSorting: byServer ? (sortable?.includes(column.id) ?? false) : column.by !== undefined,
        sortFn: (a, b, id) => compare(a.getValue<number | string>(id), b.getValue<number | string>(id)),
        sortUndefined: "last",
      }),
    );
  }, [columns, byServer, sortable]);
  const table = useTable({
    features,
    data: rows,
    columns: defined,
    getRowId: keyOf,
    state: { sorting },
    manualSorting: byServer,
    enableSortingRemoval: false,
  });
  const shown = table.getRowModel().rows;
  const byId = useMemo(() => new Map(columns.map((column) => [column.id, column])), [columns]);

  const change = (column: Column<T>) => {
    const isSame = wish?.replace(/^-/, "") === column.id;
    const next = isSame
      ? wish?.startsWith("-")
        ? column.id
        : `-${column.id}`
      : column.numeric
        ? `-${column.id}`
        : column.id;
    if (onSort) onSort(next);
    else setOwn(next);
  };

  const body = useRef<HTMLTableSectionElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    if (body.current) setOffset(body.current.getBoundingClientRect().top + window.scrollY);
  }, []);
  const isVirtual = shown.length > VIRTUAL_FROM;
  const virtual = useWindowVirtualizer({
    count: shown.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: offset,
    enabled: isVirtual,
  });
  const items = isVirtual ? virtual.getVirtualItems() : [];
  const drawn = isVirtual ? items.flatMap((item) => shown[item.index] ?? []) : shown;
  const first = items[0];
  const last = items[items.length - 1];
  const before = first ? first.start - offset : 0;
  const after = last ? virtual.getTotalSize() - (last.end - offset) : 0;

  const isNearEnd = isVirtual ? (last?.index ?? 0) > shown.length - 40 : false;
  const load = more && !more.isLoading ? more.load : undefined;
  useEffect(() => {
    if (isNearEnd) load?.();
  }, [isNearEnd, load]);

  return (
    <div className="min-w-0">
      <section
        className="relative overflow-x-auto rounded-lg border border-line bg-card"
        aria-label={`${label}, scrolls sideways`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
      >
        <table className="w-full border-collapse text-sm" aria-rowcount={(total ?? shown.length) + 1}>
          <caption className="sr-only">{label}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {table.getFlatHeaders().map((header) => {
                const column = byId.get(header.column.id);
                if (!column) return null;
                const isBy = wish?.replace(/^-/, "") === column.id;
                return (
                  <th
                    key={header.id}
                    scope="col"
                    aria-sort={isBy ? (wish?.startsWith("-") ? "descending" : "ascending") : undefined}
                    className={classes(
                      "border-b border-line px-3 py-2 text-left font-medium whitespace-nowrap text-soft",
                      column.numeric && "text-right",
                      column.from && FROM[column.from],
                    )}
                  >
                    {header.column.getCanSort() ? (
                      <button type="button" className="font-medium hover:text-ink" onClick={() => change(column)}>
                        {column.heading}
                        <span aria-hidden="true">{isBy ? (wish?.startsWith("-") ? " ↓" : " ↑") : ""}</span>
                      </button>
                    ) : (
                      column.heading
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody ref={body}>
            {before > 0 ? (
              // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it has nothing in it but height
              <tr aria-hidden="true">
                <td colSpan={columns.length} style={{ height: before, padding: 0 }} />
              </tr>
            ) : null}
            {drawn.map((row, position) => {
              const index = isVirtual ? (items[position]?.index ?? 0) : position;
              return (
                <tr
                  key={row.id}
                  data-index={index}
                  ref={isVirtual ? virtual.measureElement : undefined}
                  aria-rowindex={index + 2}
                  className="border-b border-line last:border-0 hover:bg-track/50"
                >
                  {columns.map((column) => (
                    <td
                      key={column.id}
                      className={classes(
                        "px-3 py-2 align-top",
                        column.numeric && "text-right tabular-nums whitespace-nowrap",
                        column.from && FROM[column.from],
                      )}
                    >
                      {column.cell(row.original)}
                    </td>
                  ))}
                </tr>
              );
            })}
            {after > 0 ? (
              // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it has nothing in it but height
              <tr aria-hidden="true">
                <td colSpan={columns.length} style={{ height: after, padding: 0 }} />
              </tr>
            ) : null}
          </tbody>
        </table>
      </section>
      {more ? (
        <div className="mt-2">
          <Button onClick={more.load} disabled={more.isLoading}>
            {more.isLoading ? "Loading…" : "Show more"}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

export function compare(one: number | string, other: number | string): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
