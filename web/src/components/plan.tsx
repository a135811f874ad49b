// What a plan would do: before and after, the estimate, the statement that comes nearest.

import type { Plan } from "../api/queries";
import { bytes, count, duration, plural } from "../lib/format";
import { amount, beforeAfter, nameOf, otherFigures } from "../lib/predictions";
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
