// What a plan would do: before and after, the estimate, the statement that comes nearest.

import type { Plan } from "../api/queries";
import { bytes, count, duration, plural } from "../lib/format";
import { amount, beforeAfter, type Change, nameOf, otherFigures } from "../lib/predictions";
import { Code, Facts, Name } from "./ui";

type Prediction = NonNullable<Plan["prediction"]>;

export function BeforeAfter({ prediction }: { prediction: object }) {
  const pairs = beforeAfter(prediction);
  if (pairs.length === 0) return null;
  return (
    <table className="self-start text-sm">
      <caption className="sr-only">Before and after</caption>
      <thead>
        <tr className="text-left text-soft">
          <th scope="col" className="pr-4 font-medium">
            <span className="sr-only">What</span>
          </th>
          <th scope="col" className="pr-4 text-right font-medium">
            Before
          </th>
          <th scope="col" className="pr-4 text-right font-medium">
            After
          </th>
          <th scope="col" className="w-40 font-medium max-sm:hidden">
            <span className="sr-only">Share that is left</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {pairs.map(({ name, before, after }) => (
          <tr key={name}>
            <th scope="row" className="pr-4 text-left font-normal first-letter:uppercase">
              {nameOf(name)}
            </th>
            <td className="pr-4 text-right tabular-nums">{amount(name, before)}</td>
            <td className="pr-4 text-right font-semibold tabular-nums">{amount(name, after)}</td>
            <td className="max-sm:hidden" aria-hidden="true">
              <span className="block h-2 w-40 rounded bg-track">
                <span
                  className="block h-2 rounded bg-accent"
                  style={{ width: `${before > 0 ? Math.min(100, (100 * after) / before) : 0}%` }}
                />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The share that is left of what there was: the lighter bar as predicted, the other one as measured. */
function Left({ change: { before, predicted, measured } }: { change: Change }) {
  const width = (value: number) => `${before > 0 ? Math.min(100, (100 * value) / before) : 0}%`;
  return (
    <span className="relative block h-3 w-40 rounded bg-track">
      {predicted === null ? null : (
        <span className="absolute inset-y-0 left-0 rounded border border-accent" style={{ width: width(predicted) }} />
      )}
      {measured === null ? null : (
        <span className="absolute inset-y-0.5 left-0 rounded bg-accent" style={{ width: width(measured) }} />
      )}
    </span>
  );
}

export function ChangesTable({ changes }: { changes: Change[] }) {
  return (
    <div className="relative overflow-x-auto">
      <table className="text-sm">
        <caption className="sr-only">Before and after</caption>
        <thead>
          <tr className="text-soft">
            <th scope="col">
              <span className="sr-only">What</span>
            </th>
            {["Before", "Predicted", "Measured"].map((name) => (
              <th key={name} scope="col" className="px-2 text-right font-medium">
                {name}
              </th>
            ))}
            <th scope="col" className="max-sm:hidden">
              <span className="sr-only">Share that is left</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.name}>
              <th scope="row" className="pr-2 text-left font-normal [overflow-wrap:anywhere] first-letter:uppercase">
                <Name>{change.name}</Name>
              </th>
              <td className="px-2 text-right tabular-nums">{change.write(change.before)}</td>
              <td className="px-2 text-right tabular-nums">
                {change.predicted === null ? "–" : change.write(change.predicted)}
              </td>
              <td className="px-2 text-right font-semibold tabular-nums">
                {change.measured === null ? "–" : change.write(change.measured)}
              </td>
              <td className="pl-2 max-sm:hidden" aria-hidden="true">
                <Left change={change} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function PredictionView({ prediction }: { prediction: Prediction }) {
  const call = "call" in prediction ? prediction.call : "";
  const undo = "undo" in prediction ? prediction.undo : "";
  const estimate = prediction.kind === "rewrite_data_files" ? prediction.estimate : null;
  return (
    <div className="flex flex-col gap-3">
      <BeforeAfter prediction={prediction} />
      <Facts items={otherFigures(prediction).map(({ name, value }) => [name, <Name key={name}>{value}</Name>])} />
      {prediction.kind === "rewrite_data_files" && prediction.layout ? (
        <p className="text-sm">
          In the order of <Name>{prediction.layout}</Name>.
        </p>
      ) : null}
      {estimate ? (
        <div className="text-sm">
          <p>
            Estimated: {bytes(estimate.output_bytes)} written, {duration(estimate.cpu_ms)} of CPU, risk of a conflict{" "}
            {estimate.risk}: <Name>{estimate.risk_reason.text}</Name>
          </p>
          <ul className="list-disc pl-5">
            {estimate.lookups.map((one) => (
              <li key={`${one.column} ${one.partition}`}>
                One value of <Name>{one.column}</Name> in <Name>{one.partition || "the table"}</Name> is in{" "}
                {one.mean_before} files now ({count(one.files_before)} at most), in {one.mean_after} afterwards (
                {count(one.files_after)} at most).
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {undo ? (
        <p className="text-sm">
          Undo: <Name>{undo}</Name>
        </p>
      ) : null}
      {call ? (
        <details className="text-sm">
          <summary>The Spark statement that comes nearest</summary>
          <pre className="mt-1 overflow-x-auto rounded bg-track p-2 whitespace-pre-wrap">
            <Code>{call}</Code>
          </pre>
        </details>
      ) : null}
    </div>
  );
}

export function verdictsLine(plan: Plan): string {
  const counts = Object.entries(plan.verdict_counts);
  return counts.map(([verdict, number]) => `${verdict}: ${plural(number, "partition")}`).join(" · ");
}
