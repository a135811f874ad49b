// The pictures: data as `lib/pictures` counted it, drawn by ECharts, with the same numbers as a table.

import type {
  CustomSeriesRenderItem,
  CustomSeriesRenderItemAPI,
  CustomSeriesRenderItemParams,
  EChartsOption,
} from "echarts";
import { useMemo, useState } from "react";
import type { Bounds, Histogram, Sample } from "../api/client";
import { bytes, count, duration, instant, plural, visible, words } from "../lib/format";
import * as pictures from "../lib/pictures";
import { type Palette, Picture, said } from "./chart";
import { Button, Card } from "./ui";

export function colourOf(grade: string, colours: Palette): string {
  return grade === "good"
    ? colours.good
    : grade === "fair"
      ? colours.fair
      : grade === "poor"
        ? colours.bad
        : colours.soft;
}

/** A rectangle between two points of the axes: its values are left, bottom, right, top. */
function rectangle(colour: string, opacity = 1, leastHeight = 1, isOutlined = false): CustomSeriesRenderItem {
  return (_params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
    const [x0 = 0, y0 = 0] = api.coord([api.value(0), api.value(1)]);
    const [x1 = 0, y1 = 0] = api.coord([api.value(2), api.value(3)]);
    return {
      type: "rect" as const,
      shape: {
        x: Math.min(x0, x1),
        y: Math.min(y0, y1),
        width: Math.max(1, Math.abs(x1 - x0) - 1),
        height: Math.max(leastHeight, Math.abs(y1 - y0) - (Math.abs(y1 - y0) > 3 ? 1 : 0)),
      },
      style: isOutlined
        ? { fill: colour, fillOpacity: opacity, stroke: colour, strokeOpacity: 0.6, lineWidth: 0.5 }
        : { fill: colour, opacity },
    };
  };
}

function axis(colours: Palette) {
  return {
    axisLine: { lineStyle: { color: colours.soft } },
    axisLabel: { color: colours.soft, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.line } },
    nameTextStyle: { color: colours.soft },
  };
}

function tip(colours: Palette): EChartsOption["tooltip"] {
  return {
    confine: true,
    backgroundColor: colours.card,
    borderColor: colours.line,
    textStyle: { color: colours.ink, fontSize: 13 },
  };
}

const GRID = { left: 8, right: 16, top: 28, bottom: 8, containLabel: true };

interface Leaf {
  data: { name?: string; value: number; health?: number | null };
}

export function FleetMap({
  branches,
  left,
  onPick,
}: {
  branches: pictures.Branch[];
  /** How many tables are not in it. */
  left: number;
  onPick: (leaf: pictures.Leaf) => void;
}) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const { data } = given as unknown as Leaf;
            return said(
              data.name ?? "all",
              bytes(data.value),
              data.health === undefined ? "" : `health ${data.health ?? "not known"}`,
            );
          },
        },
        series: [
          {
            type: "treemap",
            roam: false,
            nodeClick: false,
            breadcrumb: { show: false },
            left: 0,
            right: 0,
            top: 0,
            bottom: 0,
            label: {
              color: colours.card,
              lineHeight: 16,
              overflow: "truncate",
              formatter: (given) => {
                const { data } = given as unknown as Leaf;
                const name = visible(data.name ?? ""); // the root has none
                return data.health == null ? name : `${name}\n${data.health}`;
              },
            },
            labelLayout: ({ rect }) => pictures.labelPlace(rect),
            upperLabel: { show: true, height: 20, color: colours.ink },
            itemStyle: { borderColor: colours.card, borderWidth: 1, gapWidth: 1 },
            levels: [
              { itemStyle: { borderWidth: 0, gapWidth: 3 } },
              { itemStyle: { borderColor: colours.track, borderWidth: 2, gapWidth: 1 } },
            ],
            data: branches.map((branch) => ({
              name: visible(branch.name),
              value: branch.value,
              children: branch.children.map((leaf) => ({
                ...leaf,
                itemStyle: { color: colourOf(leaf.grade, colours) },
              })),
            })),
          },
        ],
      }),
    [branches],
  );
  const leaves = branches.flatMap((branch) => branch.children.map((leaf) => ({ branch, leaf })));
  return (
    <Picture
      title="Where the bytes are, and how well they are"
      summary={
        <>
          The area is the size of a table; the colour, and the number, its health.
          {left > 0
            ? ` The ${count(leaves.length)} largest; ${plural(left, "table")} more, the smaller ones, are in the list below.`
            : ""}
        </>
      }
      option={option}
      height={300}
      onPick={(data) => {
        if (data && typeof data === "object" && "uuid" in data) onPick(data as pictures.Leaf);
      }}
      numbers={{
        head: ["Namespace", "Table", "Size", "Health"],
        rows: leaves.map(({ branch, leaf }) => [branch.name, leaf.name, bytes(leaf.value), leaf.health ?? "not known"]),
      }}
    />
  );
}

export function SizesPicture({ histogram }: { histogram: Histogram }) {
  const bars = useMemo(() => pictures.histogramBars(histogram.buckets), [histogram]);
  const total = bars.reduce((sum, bar) => sum + bar.files, 0);
  const target = histogram.target_file_size_bytes;
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => {
        const small = pictures.step(histogram.small_file_size_bytes);
        const series = (isSmall: boolean) => ({
          type: "custom" as const,
          name: isSmall ? "small" : "of a good size",
          renderItem: rectangle(isSmall ? colours.fair : colours.accent),
          itemStyle: { color: isSmall ? colours.fair : colours.accent },
          data: bars
            .filter((bar) => bar.to <= small === isSmall)
            .map((bar) => ({ value: [bar.from, 0, bar.to, bar.files], bar })),
          encode: { x: [0, 2], y: [1, 3] },
        });
        return {
          tooltip: {
            ...tip(colours),
            formatter: (given) => {
              const { bar } = (given as unknown as { data: { bar?: pictures.Bar } }).data;
              return bar
                ? said(bar.label, plural(bar.files, "file"), bytes(bar.bytes))
                : said(`target: ${bytes(target)}`);
            },
          },
          legend: { textStyle: { color: colours.ink }, top: 0 },
          grid: GRID,
          xAxis: {
            type: "value",
            min: Math.floor(Math.min(...bars.map((bar) => bar.from), pictures.step(target))),
            max: Math.ceil(Math.max(...bars.map((bar) => bar.to), pictures.step(target) + 0.5)),
            ...axis(colours),
            splitLine: { show: false },
            axisLabel: { color: colours.soft, hideOverlap: true, formatter: (at: number) => bytes(2 ** at) },
          },
          yAxis: { type: "value", name: "files", minInterval: 1, ...axis(colours) },
          series: [
            series(true),
            {
              ...series(false),
              markLine: {
                symbol: "none",
                lineStyle: { color: colours.ink, type: "dashed" },
                label: { formatter: `target ${bytes(target)}`, color: colours.ink },
                data: [{ xAxis: pictures.step(target) }],
              },
            },
          ],
        };
      },
    [bars, histogram.small_file_size_bytes, target],
  );
  return (
    <Picture
      title="File sizes"
      summary={`${plural(total, "data file")} by size; each bar is twice as large as the one before. The target is ${bytes(target)}, small is below ${bytes(histogram.small_file_size_bytes)}.${histogram.truncated ? " Not all files were read." : ""}`}
      option={option}
      numbers={{
        head: ["Size", "Files", "Bytes"],
        rows: bars.map((bar) => [bar.label, bar.files, bytes(bar.bytes)]),
      }}
    />
  );
}

const LABEL_MAX = 14;

function cut(text: string): string {
  const [...letters] = visible(text);
  return letters.length > LABEL_MAX ? `${letters.slice(0, LABEL_MAX - 1).join("")}…` : letters.join("");
}

/** The axis of a column's values: by time, by size, or by their order. */
function valueAxis(colours: Palette, { scale, names }: pictures.Laid, type: string) {
  const labels = { color: colours.soft, hideOverlap: true };
  if (scale === "time") return { ...axis(colours), type: "time" as const, axisLabel: labels };
  const formatter =
    scale === "rank"
      ? (at: number) => cut(names[at] ?? "")
      : type === "time"
        ? (micros: number) => new Date(micros / 1000).toISOString().slice(11, 19)
        : undefined;
  return {
    ...axis(colours),
    type: "value" as const,
    ...(scale === "rank"
      ? { max: Math.max(1, names.length - 1), minInterval: 1 }
      : { scale: true, max: "dataMax" as const }),
    min: scale === "rank" ? 0 : ("dataMin" as const),
    axisLabel: formatter ? { ...labels, formatter } : { ...labels, showMinLabel: true },
  };
}

/** What is not drawn stands on the picture itself. */
function note(colours: Palette, text: string): NonNullable<EChartsOption["title"]> {
  return { text, right: 8, top: 0, textStyle: { color: colours.ink, fontSize: 12, fontWeight: "normal" } };
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function Sentences({ first, others }: { first: string; others: string[] }) {
  return (
    <>
      <strong className="text-ink">{first}</strong> {others.filter(Boolean).join(" ")}
    </>
  );
}

const ORDERED = "Values stand in their order, evenly spaced.";

export function OverlapPicture({ bounds }: { bounds: Bounds }) {
  const [isEven, setEven] = useState(false);
  const { name = "", type = "" } = bounds.columns[0] ?? {};
  const laid = useMemo(() => pictures.lay(bounds.items, 0, type, isEven), [bounds, type, isEven]);
  const drawn = useMemo(() => pictures.lanes(laid.spans), [laid]);
  const depth = useMemo(() => pictures.depths(laid.spans), [laid]);
  const told = bounds.overlap[0];
  const [first = "", ...others] = told ? pictures.overlapWords(told) : [];
  const sample = pictures.sampleWords(bounds);
  /** Every lookup opens these; a sample is of the others alone. */
  const always = bounds.sampled ? 0 : (told?.unknown_files ?? 0);
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        useUTC: true,
        title: note(colours, sample),
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const item = bounds.items[(given as unknown as { data: { item?: number } }).data.item ?? -1];
            const one = item?.bounds[0];
            return item && one
              ? said(fileName(item.path), item.partition, `${one.min} to ${one.max}`, plural(item.records, "row"))
              : said("");
          },
        },
        grid: [
          { left: 48, right: 24, top: 20, height: "56%" },
          { left: 48, right: 24, bottom: 28, height: "22%" },
        ],
        xAxis: [
          { ...valueAxis(colours, laid, type), gridIndex: 0, axisLabel: { show: false } },
          { ...valueAxis(colours, laid, type), gridIndex: 1 },
        ],
        yAxis: [
          {
            ...axis(colours),
            type: "value",
            gridIndex: 0,
            min: 0,
            max: Math.max(1, drawn.lanes),
            minInterval: 1,
            splitLine: { show: false },
          },
          {
            ...axis(colours),
            type: "value",
            gridIndex: 1,
            name: bounds.sampled ? "files of the sample" : "files opened",
            nameTextStyle: { color: colours.soft, align: "left" },
            min: 0,
            minInterval: 1,
            splitNumber: 2,
          },
        ],
        series: [
          {
            type: "custom",
            xAxisIndex: 0,
            yAxisIndex: 0,
            renderItem: rectangle(colours.accent, 0.75),
            encode: { x: [0, 2], y: [1, 3] },
            data: drawn.spans.map((span) => ({
              value: [span.lower, span.lane, span.upper, span.lane + 1],
              item: span.item,
            })),
          },
          {
            type: "line",
            xAxisIndex: 1,
            yAxisIndex: 1,
            step: "end",
            symbol: "none",
            lineStyle: { color: colours.fair, width: 1 },
            itemStyle: { color: colours.fair },
            areaStyle: { color: colours.fair, opacity: 0.25 },
            data: depth.flatMap(({ at, here, after }) => [
              [at, here + always],
              [at, after + always],
            ]),
            tooltip: { show: false },
          },
        ],
      }),
    [bounds, type, laid, drawn, depth, sample, always],
  );
  const title = `Overlap of ${visible(name)}`;
  if (bounds.items.length === 0)
    return (
      <Card title={title}>
        <p className="text-sm text-soft">
          <Sentences first={first} others={[...others, pictures.readWords(bounds)]} />
        </p>
      </Card>
    );
  const nameAt = new Map(
    laid.spans.flatMap(({ lower, upper, item }) => {
      const ends = bounds.items[item]?.bounds[0];
      return ends ? [[lower, ends.min] as const, [upper, ends.max] as const] : [];
    }),
  );
  return (
    <Picture
      title={title}
      summary={
        <Sentences
          first={first}
          others={[
            "Each bar is a file from its least to its greatest value; the curve below is how many have a value.",
            laid.scale === "rank" ? ORDERED : "",
            ...others,
            sample,
            pictures.readWords(bounds),
          ]}
        />
      }
      option={option}
      height={380}
      actions={
        laid.scale !== "rank" || isEven ? (
          <Button aria-pressed={isEven} onClick={() => setEven(!isEven)}>
            Space values evenly
          </Button>
        ) : null
      }
      numbers={[
        {
          caption: "Files",
          head: ["File", "Partition", "Least", "Greatest", "Rows"],
          rows: bounds.items.map((item) => [
            fileName(item.path),
            item.partition,
            item.bounds[0]?.min ?? "",
            item.bounds[0]?.max ?? "",
            item.records,
          ]),
        },
        {
          caption: bounds.sampled ? "Files of the sample that have a value" : "Files that a lookup of a value opens",
          head: ["Value", "Files"],
          rows: depth.map(({ at, here }) => [nameAt.get(at) ?? "", here + always]),
        },
      ]}
    />
  );
}

export function RectanglesPicture({ bounds }: { bounds: Bounds }) {
  const [one, other] = bounds.columns;
  const across = useMemo(() => pictures.lay(bounds.items, 0, one?.type ?? ""), [bounds, one]);
  const up = useMemo(() => pictures.lay(bounds.items, 1, other?.type ?? ""), [bounds, other]);
  const found = useMemo(() => pictures.rectangles(across, up), [across, up]);
  const sample = pictures.sampleWords(bounds);
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        useUTC: true,
        title: note(colours, sample),
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const item = bounds.items[(given as unknown as { data: { item?: number } }).data.item ?? -1];
            return item
              ? said(
                  fileName(item.path),
                  item.partition,
                  ...item.bounds.map(({ min, max }, index) => `${bounds.columns[index]?.name}: ${min} to ${max}`),
                )
              : said("");
          },
        },
        grid: { ...GRID, bottom: 24 },
        xAxis: {
          ...valueAxis(colours, across, one?.type ?? ""),
          name: visible(one?.name ?? ""),
          nameLocation: "middle",
          nameGap: 28,
        },
        yAxis: {
          ...valueAxis(colours, up, other?.type ?? ""),
          name: visible(other?.name ?? ""),
          nameTextStyle: { color: colours.soft, align: "left" },
        },
        series: [
          {
            type: "custom",
            renderItem: rectangle(
              colours.accent,
              Math.max(0.08, Math.min(0.5, 20 / Math.max(1, found.length))),
              1,
              true,
            ),
            encode: { x: [0, 2], y: [1, 3] },
            data: found.map(({ left, bottom, right, top, item }) => ({ value: [left, bottom, right, top], item })),
          },
        ],
      }),
    [bounds, found, across, up, one, other, sample],
  );
  const title = `${visible(one?.name ?? "")} and ${visible(other?.name ?? "")} together`;
  if (found.length === 0)
    return (
      <Card title={title}>
        <p className="text-sm text-soft">No file has bounds of both columns.</p>
      </Card>
    );
  return (
    <Picture
      title={title}
      summary={
        <Sentences
          first={pictures.bothWords(bounds)}
          others={[
            "Each rectangle is a file over both columns: where many lie on each other, a lookup by both opens many.",
            across.scale === "rank" || up.scale === "rank" ? ORDERED : "",
            bounds.unknown_files > 0
              ? `${plural(bounds.unknown_files, "file")} not drawn, without bounds or with nothing but NULL in one of them.`
              : "",
            sample,
            pictures.readWords(bounds),
          ]}
        />
      }
      option={option}
      height={360}
      numbers={{
        head: [
          "File",
          `${one?.name} least`,
          `${one?.name} greatest`,
          `${other?.name} least`,
          `${other?.name} greatest`,
          "Rows",
        ],
        rows: bounds.items.map((item) => [
          fileName(item.path),
          ...[0, 1].flatMap((column) => [item.bounds[column]?.min ?? "", item.bounds[column]?.max ?? ""]),
          item.records,
        ]),
      }}
    />
  );
}

export function PartitionsPicture({
  partitions,
  what,
  now,
  more,
  actions,
}: {
  partitions: pictures.PartitionLike[];
  what: pictures.Measure;
  now: number;
  more: boolean;
  actions: React.ReactNode;
}) {
  const heat = useMemo(() => pictures.heatCells(partitions, what, now), [partitions, what, now]);
  const most = heat.cells.reduce((greatest, cell) => Math.max(greatest, cell.value), 0);
  const rows =
    heat.shape === "months" ? heat.years.length : heat.shape === "grid" ? Math.ceil(heat.cells.length / heat.width) : 0;
  const height = heat.shape === "days" ? 90 + 150 * heat.years.length : 90 + 26 * Math.max(1, rows);
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => {
        const shared = {
          tooltip: {
            ...tip(colours),
            formatter: (given: unknown) => {
              const { value, name } = (given as { data: { value: (string | number)[]; name?: string } }).data;
              return said(
                name ?? String(value[0]),
                `${what}: ${value[value.length - 1]}${what === "small share" ? " %" : ""}`,
              );
            },
          },
          visualMap: {
            min: 0,
            max: Math.max(1, most),
            calculable: false,
            orient: "horizontal" as const,
            right: 0,
            top: 0,
            itemHeight: 80,
            text: [count(most), "0"],
            textStyle: { color: colours.soft },
            inRange: { color: [colours.track, what === "files" ? colours.accent : colours.bad] },
          },
        };
        if (heat.shape === "days")
          return {
            ...shared,
            calendar: heat.years.map((year, index) => ({
              range: year,
              top: 60 + 150 * index,
              left: 60,
              right: 8,
              cellSize: ["auto", 14] as (number | "auto")[],
              itemStyle: { color: colours.card, borderColor: colours.line },
              splitLine: { lineStyle: { color: colours.soft } },
              dayLabel: { color: colours.soft },
              monthLabel: { color: colours.soft },
              yearLabel: { color: colours.soft, fontSize: 13 },
            })),
            series: heat.years.map((year, index) => ({
              type: "heatmap" as const,
              coordinateSystem: "calendar" as const,
              calendarIndex: index,
              data: heat.cells
                .filter(({ day }) => day.startsWith(year))
                .map(({ day, value }) => ({ value: [day, value] })),
            })),
          };
        const names =
          heat.shape === "months"
            ? ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            : Array.from({ length: heat.width }, (_none, index) => String(index + 1));
        return {
          ...shared,
          grid: { ...GRID, top: 50 },
          xAxis: {
            type: "category",
            data: names,
            ...axis(colours),
            splitLine: { show: false },
            axisLabel: { color: colours.soft, show: heat.shape === "months" },
          },
          yAxis: {
            type: "category",
            inverse: true,
            data: heat.shape === "months" ? heat.years : Array.from({ length: rows }, (_none, index) => String(index)),
            ...axis(colours),
            axisLine: { show: false },
            splitLine: { show: false },
            axisLabel: { color: colours.soft, show: heat.shape === "months" },
          },
          series: [
            {
              type: "heatmap",
              itemStyle: { borderColor: colours.card, borderWidth: 1 },
              data: heat.cells.map((cell) => ({ value: [cell.column, cell.row, cell.value], name: cell.name })),
            },
          ],
        };
      },
    [heat, most, rows, what],
  );
  return (
    <Picture
      title="Partitions"
      summary={[
        `${plural(partitions.length, "partition")}, by ${what}${heat.shape === "grid" ? "" : ` of each ${heat.shape === "days" ? "day" : "month"}`}.`,
        heat.shape !== "grid" && heat.undated > 0
          ? `${plural(heat.undated, "partition")} without a date: among the numbers alone.`
          : "",
        more ? `The first ${count(partitions.length)}; others are not drawn.` : "",
      ]
        .filter(Boolean)
        .join(" ")}
      option={option}
      height={height}
      actions={actions}
      numbers={{
        head: ["Partition", "Files", "Small files", "Delete files", "Size", "Last optimized"],
        rows: partitions.map((one) => [
          one.path || "(unpartitioned)",
          one.data_files,
          one.small_files,
          one.delete_files,
          bytes(one.size_bytes),
          one.optimized_at === null ? "never" : instant(one.optimized_at),
        ]),
      }}
    />
  );
}

const SYMBOLS = ["circle", "rect", "triangle", "roundRect", "pin"];

export function SnapshotsPicture({
  found,
  more,
  onPick,
}: {
  found: pictures.Timeline;
  more: boolean;
  onPick: (picked: { snapshot: string } | { task: string }) => void;
}) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => {
        const others = found.writers.filter((writer) => writer !== pictures.OURS);
        return {
          tooltip: {
            ...tip(colours),
            formatter: (given) => {
              const { commit, conflict, at, id, seriesName } = (
                given as unknown as {
                  data: {
                    commit?: pictures.Commit;
                    conflict?: pictures.Conflict;
                    at?: number;
                    id?: string;
                    seriesName?: string;
                  };
                }
              ).data;
              if (commit)
                return said(
                  `${commit.operation} by ${commit.writer}`,
                  instant(commit.at),
                  `snapshot ${commit.id}`,
                  ...(commit.refs.length > 0 ? [commit.refs.join(", ")] : []),
                );
              if (conflict) return said("a conflict: a writer committed first", conflict.said, instant(conflict.at));
              return said(seriesName ?? "", instant(at ?? 0), `snapshot ${id}`);
            },
          },
          legend: { textStyle: { color: colours.ink }, top: 0, type: "scroll" },
          grid: { ...GRID, top: 36 },
          xAxis: { type: "time", ...axis(colours) },
          yAxis: {
            ...axis(colours),
            type: "category",
            inverse: true,
            data: found.lanes,
            splitLine: { show: true, lineStyle: { color: colours.line } },
            axisLabel: { color: colours.soft, formatter: cut },
          },
          dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }],
          series: [
            ...found.writers.map((writer) => {
              const isOurs = writer === pictures.OURS;
              const colour = isOurs ? colours.good : colours.accent;
              return {
                type: "scatter" as const,
                name: visible(writer),
                symbol: isOurs ? "diamond" : SYMBOLS[others.indexOf(writer) % SYMBOLS.length],
                symbolSize: isOurs ? 14 : 9,
                itemStyle: { color: colour },
                data: found.commits
                  .filter((commit) => commit.writer === writer)
                  .map((commit) => ({
                    value: [commit.at, commit.operation],
                    commit,
                    itemStyle: { opacity: commit.isCurrentLine ? 1 : 0.4 },
                  })),
              };
            }),
            ...(found.conflicts.length > 0
              ? [
                  {
                    type: "scatter" as const,
                    name: pictures.CONFLICTS,
                    symbol: "triangle",
                    symbolSize: 12,
                    itemStyle: { color: colours.bad },
                    data: found.conflicts.map((conflict) => ({
                      value: [conflict.at, pictures.CONFLICTS],
                      conflict,
                    })),
                  },
                ]
              : []),
            ...found.refs.map(({ lane, points }) => ({
              type: "line" as const,
              symbol: "roundRect",
              symbolSize: 8,
              itemStyle: { color: colours.fair },
              lineStyle: { color: colours.fair, width: 2 },
              data: points.map(({ at, id }) => ({ value: [at, lane], at, id, seriesName: visible(lane) })),
            })),
          ],
        };
      },
    [found],
  );
  const ours = found.commits.filter(({ writer }) => writer === pictures.OURS).length;
  return (
    <Picture
      title="Commits over time"
      summary={
        <Sentences
          first={`${plural(found.commits.length, "snapshot")}, ${count(ours)} of them by icewright; ${plural(found.conflicts.length, "conflict")} of its tasks with writers.`}
          others={[
            "Each mark is a commit, by what it did and who wrote it; pale ones are not part of the current history.",
            found.refs.length > 0 ? "Branches show their own commits since they left it, tags their snapshot." : "",
            more ? "The latest 1,000." : "",
            "Press a mark to see its snapshot, or the task of a conflict; all are in the list below too.",
          ]}
        />
      }
      option={option}
      height={90 + 34 * found.lanes.length}
      onPick={(data) => {
        const { commit, conflict, id } = (data ?? {}) as {
          commit?: pictures.Commit;
          conflict?: pictures.Conflict;
          id?: string;
        };
        if (conflict) onPick({ task: conflict.task });
        else if (commit ?? id) onPick({ snapshot: commit?.id ?? id ?? "" });
      }}
      numbers={[
        {
          caption: "Commits",
          head: ["Committed", "Operation", "By", "In the current history", "Branches and tags", "Snapshot"],
          rows: found.commits.map((one) => [
            instant(one.at),
            one.operation,
            one.writer,
            one.isCurrentLine ? "yes" : "no",
            one.refs.join(", "),
            one.id,
          ]),
        },
        {
          caption: "Conflicts of tasks with writers",
          head: ["At", "What", "Task"],
          rows: found.conflicts.map((one) => [instant(one.at), one.said, one.task]),
        },
        {
          caption: "Branches and tags",
          head: ["Name", "Own commits", "Snapshot", "Committed"],
          rows: found.refs.map(({ lane, points }) => [
            lane,
            lane.startsWith("branch ") ? Math.max(0, points.length - 1) : "",
            points.at(-1)?.id ?? "",
            instant(points.at(-1)?.at ?? 0),
          ]),
        },
      ]}
    />
  );
}

function line(samples: Sample[], name: string, color: string, of: (one: Sample) => number | null) {
  return {
    type: "line" as const,
    name,
    showSymbol: samples.length < 3,
    step: "end" as const,
    color,
    data: samples.map((one) => [one.at, of(one)]),
  };
}

export function SeriesPicture({ samples }: { samples: Sample[] }) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        tooltip: {
          ...tip(colours),
          trigger: "axis",
          formatter: (given) => {
            const index = (given as unknown as { dataIndex: number }[])[0]?.dataIndex ?? 0;
            const one = samples[index];
            return one
              ? said(
                  instant(one.at),
                  `health ${one.health ?? "not known"}`,
                  plural(one.files, "file"),
                  `${count(one.small_files)} small`,
                  bytes(one.bytes),
                )
              : said("");
          },
        },
        legend: { textStyle: { color: colours.ink }, top: 0 },
        grid: GRID,
        xAxis: { type: "time", ...axis(colours) },
        yAxis: [
          { type: "value", name: "files", minInterval: 1, ...axis(colours) },
          { type: "value", name: "health", min: 0, max: 100, ...axis(colours), splitLine: { show: false } },
        ],
        series: [
          line(samples, "data files", colours.accent, (one) => one.files),
          line(samples, "small files", colours.fair, (one) => one.small_files),
          {
            ...line(samples, "health", colours.good, (one) => one.health),
            yAxisIndex: 1,
            lineStyle: { type: "dashed" },
          },
        ],
      }),
    [samples],
  );
  return (
    <Picture
      title="What was seen over time"
      summary={`${plural(samples.length, "observation")}.`}
      option={option}
      numbers={{
        head: ["Seen", "Health", "Data files", "Small files", "Delete files", "Snapshots", "Size"],
        rows: samples.map((one) => [
          instant(one.at),
          one.health ?? "not known",
          one.files,
          one.small_files,
          one.delete_files,
          one.snapshots,
          bytes(one.bytes),
        ]),
      }}
    />
  );
}

export function StoragePicture({ steps }: { steps: pictures.Step[] }) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const { name, value } = given as unknown as { name: string; value: number };
            return said(name, bytes(value));
          },
        },
        grid: GRID,
        xAxis: {
          type: "value",
          ...axis(colours),
          axisLabel: { color: colours.soft, hideOverlap: true, formatter: (value: number) => bytes(value) },
        },
        yAxis: { type: "category", inverse: true, data: steps.map((step) => step.name), ...axis(colours) },
        series: [
          {
            type: "bar",
            stack: "all",
            silent: true,
            itemStyle: { color: "transparent" },
            tooltip: { show: false },
            data: steps.map((step) => step.from),
          },
          { type: "bar", stack: "all", itemStyle: { color: colours.accent }, data: steps.map((step) => step.bytes) },
        ],
      }),
    [steps],
  );
  return (
    <Picture
      title="What needs the bytes"
      summary={`${bytes(steps.reduce((sum, step) => sum + step.bytes, 0))} in all, each file counted once: for the first that needs it.`}
      option={option}
      height={80 + 32 * steps.length}
      numbers={{ head: ["Needed by", "Size"], rows: steps.map((step) => [step.name, bytes(step.bytes)]) }}
    />
  );
}

export function QueuePicture({
  found,
  now,
  span,
  onPick,
  actions,
}: {
  found: pictures.Gantt;
  now: number;
  /** How far back and ahead it is drawn, in ms. */
  span: number;
  onPick: (task: string) => void;
  actions: React.ReactNode;
}) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => {
        const tones: Record<string, string> = {
          committed: colours.good,
          running: colours.accent,
          conflict: colours.fair,
          failed: colours.bad,
          unknown: colours.bad,
          [pictures.EXPECTED]: colours.track,
        };
        const states = [...new Set(found.bars.map(({ state }) => state))];
        return {
          tooltip: {
            ...tip(colours),
            formatter: (given) => {
              const { work } = (given as unknown as { data: { work?: pictures.Work } }).data;
              return work
                ? said(
                    `${words(work.kind)} of ${work.table}`,
                    `${words(work.state)}${work.optimizer ? ` on ${work.optimizer}` : ""}, group ${work.group}`,
                    `${instant(work.from)}, ${duration(work.to - work.from)}`,
                    ...(work.said ? [work.said] : []),
                  )
                : said("now");
            },
          },
          legend: { textStyle: { color: colours.ink }, top: 0, type: "scroll" },
          grid: { ...GRID, top: 36 },
          xAxis: {
            ...axis(colours),
            type: "time",
            min: now - span,
            axisLine: { onZero: false, lineStyle: { color: colours.soft } },
          },
          yAxis: {
            ...axis(colours),
            type: "value",
            inverse: true,
            min: 0,
            max: Math.max(1, found.rows.length),
            show: false,
          },
          dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }],
          series: [
            ...states.map((state, index) => ({
              type: "custom" as const,
              name: words(state),
              itemStyle: { color: tones[state] ?? colours.soft },
              renderItem: rectangle(tones[state] ?? colours.soft, state === pictures.WAITS ? 0.45 : 1, 3),
              encode: { x: [0, 2], y: [1, 3] },
              data: found.bars
                .filter((work) => work.state === state)
                .map((work) => ({
                  value: [
                    Math.max(work.from, now - span),
                    work.lane + 0.45,
                    Math.min(work.to, now + span),
                    work.lane + 0.95,
                  ],
                  work,
                })),
              ...(index === 0
                ? {
                    markLine: {
                      symbol: "none",
                      silent: true,
                      lineStyle: { color: colours.ink, type: "dashed" as const },
                      label: { formatter: "now", color: colours.ink, position: "start" as const },
                      data: [{ xAxis: now }],
                    },
                  }
                : {}),
            })),
            {
              type: "custom",
              silent: true,
              tooltip: { show: false },
              clip: false,
              // What a lane is of stands above its bars, at the left edge, however wide the page is.
              renderItem: (params, api) => {
                const row = found.rows[params.dataIndex];
                const [, y = 0] = api.coord([api.value(0), api.value(1)]);
                const area = params.coordSys as unknown as { x: number; width: number };
                return {
                  type: "text" as const,
                  style: {
                    text: visible(row?.label ?? ""),
                    x: area.x,
                    y,
                    width: area.width,
                    overflow: "truncate" as const,
                    fill: row?.isGroup ? colours.ink : colours.soft,
                    fontWeight: row?.isGroup ? ("bold" as const) : ("normal" as const),
                    fontSize: 11,
                  },
                };
              },
              encode: { y: 1 },
              data: found.rows.map((_row, lane) => [now, lane]),
            },
          ],
        };
      },
    [found, now, span],
  );
  const tries = found.bars.filter(({ optimizer }) => optimizer !== "");
  const waiting = found.bars.filter(({ state }) => state === pictures.WAITS);
  return (
    <Picture
      title="The queue over time"
      summary={
        <Sentences
          first={`${plural(tries.filter(({ state }) => state === "running").length, "task")} at work, ${plural(waiting.length, "task")} shown waiting.`}
          others={[
            "Tries at tasks, the latest 200 at most, by resource group and optimizer; below them what waits, from when it was queued, and about when it starts. A group says what it holds of what it may.",
            "Press a bar to see its task.",
          ]}
        />
      }
      option={option}
      actions={actions}
      height={Math.min(900, 80 + 26 * found.rows.length)}
      onPick={(data) => {
        const { work } = (data ?? {}) as { work?: pictures.Work };
        if (work) onPick(work.task);
      }}
      numbers={[
        {
          caption: "Tries at tasks",
          head: ["Group", "Optimizer", "Table", "Action", "State", "Started", "Took", "Task"],
          rows: tries.map((one) => [
            one.group,
            one.optimizer,
            one.table,
            words(one.kind),
            words(one.state),
            instant(one.from),
            duration(one.to - one.from),
            one.task,
          ]),
        },
        {
          caption: "What waits",
          head: ["Group", "Table", "Action", "Queued", "Waits since", "Why", "Starts about"],
          rows: waiting.map((one) => {
            const next = found.bars.find(({ task, state }) => task === one.task && state === pictures.EXPECTED);
            return [
              one.group,
              one.table,
              words(one.kind),
              instant(one.from),
              duration(one.to - one.from),
              one.said,
              next ? instant(next.to) : "not known",
            ];
          }),
        },
        {
          caption: "What groups hold",
          head: ["Group"],
          rows: found.rows.filter(({ isGroup }) => isGroup).map(({ label }) => [label]),
        },
      ]}
    />
  );
}
