// A picture, with its numbers as a table. ECharts draws on a canvas, and comes with the first picture only.

import type { EChartsOption } from "echarts";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { visible } from "../lib/format";
import { Button, Card } from "./ui";

export interface Palette {
  ink: string;
  soft: string;
  line: string;
  card: string;
  track: string;
  accent: string;
  good: string;
  fair: string;
  bad: string;
}

const NAMES = ["ink", "soft", "line", "card", "track", "accent", "good", "fair", "bad"] as const;

function palette(): Palette {
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = Object.fromEntries(
    NAMES.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  probe.remove();
  return found as unknown as Palette;
}

/** What is said beside the pointer: an element of texts, never markup. */
export function said(...lines: string[]): HTMLElement {
  const whole = document.createElement("div");
  for (const line of lines) {
    const one = document.createElement("div");
    one.textContent = visible(line);
    whole.append(one);
  }
  return whole;
}

export interface Numbers {
  /** What this table is of, where a picture has several. */
  caption?: string;
  head: string[];
  rows: (string | number)[][];
}

const ROWS_MAX = 500;

export function Picture({
  title,
  summary,
  option,
  numbers,
  height = 260,
  onPick,
  actions,
}: {
  title: string;
  /** What is seen, in a sentence. */
  summary: ReactNode;
  option: (colours: Palette) => EChartsOption;
  numbers: Numbers | Numbers[];
  height?: number;
  onPick?: (data: unknown) => void;
  actions?: ReactNode;
}) {
  const [isTable, setTable] = useState(false);
  const id = useId();
  return (
    <Card
      title={title}
      actions={
        <>
          {actions}
          <Button aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? "Show the picture" : "Show the numbers"}
          </Button>
        </>
      }
    >
      <p id={id} className="mb-2 text-sm text-soft">
        {summary}
      </p>
      {isTable ? (
        <section
          className="relative max-h-96 overflow-auto"
          aria-label={`Numbers of: ${title}`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
          tabIndex={0}
        >
          {[numbers].flat().map((each) => (
            <NumbersTable key={each.caption ?? title} title={title} numbers={each} />
          ))}
        </section>
      ) : (
        <Canvas
          label={`${title}. The numbers are in a table: press Show the numbers.`}
          describedBy={id}
          option={option}
          height={height}
          onPick={onPick}
        />
      )}
    </Card>
  );
}

function NumbersTable({ title, numbers }: { title: string; numbers: Numbers }) {
  return (
    <>
      <table className="w-full text-sm">
        <caption className={numbers.caption === undefined ? "sr-only" : "pt-2 text-left font-medium"}>
          {numbers.caption ?? `Numbers of: ${title}`}
        </caption>
        <thead>
          <tr>
            {numbers.head.map((name) => (
              <th key={name} scope="col" className="px-2 py-1 text-left font-medium text-soft">
                {visible(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {numbers.rows.slice(0, ROWS_MAX).map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows of numbers have no other name, and do not move
            <tr key={index} className="border-t border-line">
              {row.map((cell, column) => (
                <td key={numbers.head[column]} className="px-2 py-1 tabular-nums [overflow-wrap:anywhere]">
                  {visible(String(cell))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {numbers.rows.length > ROWS_MAX ? (
        <p className="text-sm text-soft">
          The first {ROWS_MAX} of {numbers.rows.length}.
        </p>
      ) : null}
    </>
  );
}

function Canvas({
  label,
  describedBy,
  option,
  height,
  onPick,
}: {
  label: string;
  describedBy: string;
  option: (colours: Palette) => EChartsOption;
  height: number;
  onPick: ((data: unknown) => void) | undefined;
}) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<import("echarts/core").ECharts | null>(null);
  const latest = useRef({ option, onPick });
  latest.current = { option, onPick };

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let isGone = false;
    const draw = () => {
      const colours = palette();
      chart.current?.setOption(
        {
          animation: false,
          textStyle: { color: colours.ink, fontFamily: "system-ui, sans-serif" },
          ...latest.current.option(colours),
        },
        { notMerge: true },
      );
    };
    void import("../lib/echarts").then(({ echarts }) => {
      if (isGone) return;
      chart.current = echarts.init(element, null, { renderer: "canvas" });
      chart.current.on("click", (event) => latest.current.onPick?.(event.data));
      draw();
      element.dataset.drawn = "yes";
    });
    const sized = new ResizeObserver(() => chart.current?.resize());
    sized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      isGone = true;
      sized.disconnect();
      themed.disconnect();
      scheme.removeEventListener("change", draw);
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    const colours = palette();
    chart.current?.setOption(
      { animation: false, textStyle: { color: colours.ink, fontFamily: "system-ui, sans-serif" }, ...option(colours) },
      { notMerge: true },
    );
  }, [option]);

  return (
    <div ref={box} role="img" aria-label={label} aria-describedby={describedBy} className="w-full" style={{ height }} />
  );
}
