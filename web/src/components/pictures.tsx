// The pictures: data as `lib/pictures` counted it, drawn by ECharts, with the same numbers as a table.

import type {
  CustomSeriesRenderItem,
  CustomSeriesRenderItemAPI,
  CustomSeriesRenderItemParams,
  EChartsOption,
} from "echarts";
import { useMemo } from "react";
import type { Bounds, Histogram, Sample } from "../api/client";
import { bytes, count, duration, instant, plural, visible } from "../lib/format";
import * as pictures from "../lib/pictures";
import { type Palette, Picture, said } from "./chart";

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
function rectangle(colour: string, opacity = 1, leastHeight = 1): CustomSeriesRenderItem {
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
      style: { fill: colour, opacity },
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

export function OverlapPicture({ bounds, column, label }: { bounds: Bounds; column: number; label: string }) {
  const found = useMemo(() => pictures.overlap(bounds.items, column), [bounds, column]);
  const told = bounds.overlap[column];
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const item = bounds.items[(given as unknown as { data: { item?: number } }).data.item ?? -1];
            const one = item?.bounds[column];
            return item && one
              ? said(
                  item.path.slice(item.path.lastIndexOf("/") + 1),
                  item.partition,
                  `${one.min} to ${one.max}`,
                  plural(item.records, "row"),
                )
              : said("");
          },
        },
        grid: [
          { left: 8, right: 16, top: 8, height: "62%", containLabel: true },
          { left: 8, right: 16, bottom: 4, height: "24%", containLabel: true },
        ],
        xAxis: [
          { type: "value", gridIndex: 0, scale: true, ...axis(colours), axisLabel: { show: false } },
          {
            type: "value",
            gridIndex: 1,
            scale: true,
            ...axis(colours),
            axisLabel: { color: colours.soft, hideOverlap: true, show: !found.isRanked },
          },
        ],
        yAxis: [
          {
            type: "value",
            gridIndex: 0,
            min: 0,
            max: Math.max(1, found.lanes),
            minInterval: 1,
            ...axis(colours),
            splitLine: { show: false },
          },
          { type: "value", gridIndex: 1, min: 0, minInterval: 1, splitNumber: 2, ...axis(colours) },
        ],
        series: [
          {
            type: "custom",
            xAxisIndex: 0,
            yAxisIndex: 0,
            renderItem: rectangle(colours.accent, 0.75),
            encode: { x: [0, 2], y: [1, 3] },
            data: found.spans.map((span) => ({
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
            data: found.depth,
            tooltip: { show: false },
          },
        ],
      }),
    [bounds, column, found],
  );
  return (
    <Picture
      title={`Overlap of ${label}`}
      summary={
        <>
          <strong className="text-ink">
            {told
              ? `A lookup opens ${count(told.depth_max)} of ${plural(told.files, "file")} at the worst value, ${told.depth_mean.toLocaleString("en", { maximumFractionDigits: 1 })} on the mean.`
              : null}
          </strong>{" "}
          Each bar is a file from its least to its greatest value; below is how many files overlap there.
          {found.isRanked ? " Values are texts and stand in their order." : ""}
          {bounds.sampled
            ? ` Drawn is a sample: ${count(bounds.items.length)} of ${count(bounds.files_total)} files.`
            : ""}
          {bounds.truncated ? ` Only ${count(bounds.files_read)} of ${count(bounds.files_total)} files were read.` : ""}
          {bounds.unknown_files > 0
            ? ` ${plural(bounds.unknown_files, "file")} without bounds: every lookup opens them.`
            : ""}
        </>
      }
      option={option}
      height={360}
      numbers={{
        head: ["File", "Partition", "Least", "Greatest", "Rows"],
        rows: bounds.items.map((item) => [
          item.path.slice(item.path.lastIndexOf("/") + 1),
          item.partition,
          item.bounds[column]?.min ?? "",
          item.bounds[column]?.max ?? "",
          item.records,
        ]),
      }}
    />
  );
}

export function RectanglesPicture({ bounds }: { bounds: Bounds }) {
  const { found } = useMemo(() => pictures.rectangles(bounds.items), [bounds]);
  const [across, up] = bounds.columns;
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        grid: GRID,
        xAxis: {
          type: "value",
          name: across?.name ?? "",
          nameLocation: "middle",
          nameGap: 28,
          scale: true,
          ...axis(colours),
        },
        yAxis: { type: "value", name: up?.name ?? "", scale: true, ...axis(colours) },
        series: [
          {
            type: "custom",
            renderItem: rectangle(colours.accent, Math.max(0.06, Math.min(0.5, 6 / Math.max(1, found.length)))),
            encode: { x: [0, 2], y: [1, 3] },
            data: found.map((one) => [one.left, one.bottom, one.right, one.top]),
          },
        ],
      }),
    [found, across, up],
  );
  return (
    <Picture
      title={`${across?.name ?? ""} and ${up?.name ?? ""} together`}
      summary="Each rectangle is a file over both columns: where many lie on each other, a lookup by both opens many."
      option={option}
      height={340}
      numbers={{
        head: [
          "File",
          `${across?.name} least`,
          `${across?.name} greatest`,
          `${up?.name} least`,
          `${up?.name} greatest`,
        ],
        rows: bounds.items.map((item) => [
          item.path.slice(item.path.lastIndexOf("/") + 1),
          ...[0, 1].flatMap((column) => [item.bounds[column]?.min ?? "", item.bounds[column]?.max ?? ""]),
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
      summary={`${plural(partitions.length, "partition")}, by ${what}.${more ? " The first 1,000; others are not drawn." : ""}`}
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

export function SnapshotsPicture({ found, more }: { found: pictures.Commit[]; more: boolean }) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => ({
        tooltip: {
          ...tip(colours),
          formatter: (given) => {
            const one = (given as unknown as { data: { commit: pictures.Commit } }).data.commit;
            return said(`snapshot ${one.id}`, instant(one.at), one.isOurs ? "by icewright" : "by a writer", one.refs);
          },
        },
        legend: { textStyle: { color: colours.ink }, top: 0 },
        grid: GRID,
        xAxis: { type: "time", ...axis(colours) },
        yAxis: { type: "category", data: [...pictures.OPERATIONS], ...axis(colours) },
        dataZoom: [{ type: "inside", xAxisIndex: 0 }],
        series: [false, true].map((isOurs) => ({
          type: "scatter" as const,
          name: isOurs ? "icewright" : "writers",
          symbol: isOurs ? "diamond" : "circle",
          symbolSize: isOurs ? 13 : 8,
          itemStyle: { color: isOurs ? colours.good : colours.accent },
          label: {
            show: true,
            position: "top" as const,
            color: colours.ink,
            formatter: (given: unknown) => visible((given as { data: { commit: pictures.Commit } }).data.commit.refs),
          },
          data: found
            .filter((one) => one.isOurs === isOurs)
            .map((commit) => ({
              value: [commit.at, commit.lane],
              commit,
              itemStyle: { opacity: commit.isCurrentLine ? 1 : 0.35 },
            })),
        })),
      }),
    [found],
  );
  return (
    <Picture
      title="Commits over time"
      summary={`${plural(found.length, "snapshot")}, ${count(found.filter((one) => one.isOurs).length)} of them by icewright. Pale ones are not part of the current history.${more ? " The latest 1,000." : ""}`}
      option={option}
      numbers={{
        head: ["Committed", "Operation", "By", "Branches and tags", "Snapshot"],
        rows: found.map((one) => [
          instant(one.at),
          pictures.OPERATIONS[one.lane] ?? "",
          one.isOurs ? "icewright" : "a writer",
          one.refs,
          one.id,
        ]),
      }}
    />
  );
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
          {
            type: "line",
            name: "data files",
            showSymbol: samples.length < 3,
            step: "end",
            color: colours.accent,
            data: samples.map((one) => [one.at, one.files]),
          },
          {
            type: "line",
            name: "small files",
            showSymbol: samples.length < 3,
            step: "end",
            color: colours.fair,
            data: samples.map((one) => [one.at, one.small_files]),
          },
          {
            type: "line",
            name: "health",
            showSymbol: samples.length < 3,
            step: "end",
            yAxisIndex: 1,
            color: colours.good,
            lineStyle: { type: "dashed" },
            data: samples.map((one) => [one.at, one.health]),
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

export function RunsPicture({ found }: { found: pictures.Run[] }) {
  const option = useMemo(
    () =>
      (colours: Palette): EChartsOption => {
        const tones: Record<string, string> = {
          succeeded: colours.good,
          failed: colours.bad,
          in_doubt: colours.bad,
          queued: colours.soft,
        };
        const states = [...new Set(found.map((one) => one.state))];
        return {
          tooltip: {
            ...tip(colours),
            formatter: (given) => {
              const one = (given as unknown as { data: { run: pictures.Run } }).data.run;
              return said(
                one.table,
                `${one.state.replaceAll("_", " ")}, group ${one.group}`,
                `${instant(one.from)}, ${duration(one.to - one.from)}`,
              );
            },
          },
          legend: { textStyle: { color: colours.ink }, top: 0 },
          grid: GRID,
          xAxis: { type: "time", ...axis(colours) },
          yAxis: { type: "value", inverse: true, min: 0, max: Math.max(1, found.length), show: false },
          series: states.map((state) => ({
            type: "custom" as const,
            name: state.replaceAll("_", " "),
            itemStyle: { color: tones[state] ?? colours.accent },
            renderItem: rectangle(tones[state] ?? colours.accent, 1, 3),
            encode: { x: [0, 2], y: [1, 3] },
            data: found
              .filter((one) => one.state === state)
              .map((run) => ({ value: [run.from, run.lane, run.to, run.lane + 0.8], run })),
          })),
        };
      },
    [found],
  );
  return (
    <Picture
      title="The latest tasks"
      summary={`${plural(found.length, "task")}, each from being queued to its end or until now, by resource group.`}
      option={option}
      height={Math.min(420, 80 + 12 * found.length)}
      numbers={{
        head: ["Group", "Table", "State", "Queued", "Took"],
        rows: found.map((one) => [
          one.group,
          one.table,
          one.state.replaceAll("_", " "),
          instant(one.from),
          duration(one.to - one.from),
        ]),
      }}
    />
  );
}
