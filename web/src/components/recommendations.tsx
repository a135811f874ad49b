// Recommendations: what the queries of a table suggest, and the decision of a person.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { bytes, count, percent, plural } from "../lib/format";
import { TableLink } from "./links";
import { Badge, Button, Card, Dialog, Facts, Field, Input, Name, Time, Trouble } from "./ui";

type Summary = Schemas["RecommendationSummary"];
type View = Schemas["RecommendationView"];

const WHY_LENGTH_MAX = 1000;
const SNOOZE_DAYS = 7;

/** One recommendation; `children` name its table where several tables are on the page. */
export function Recommendation({ summary, children }: { summary: Summary; children?: React.ReactNode }) {
  const me = useQuery(queries.me);
  const [isShown, setShown] = useState(false);
  const isOpen = summary.state === "open" && summary.verdict !== "leave";
  const of = `${summary.change} for ${summary.table}`;
  return (
    <Card>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={isOpen ? "fair" : "plain"}>{summary.state}</Badge>
        <Name className="font-medium">{summary.change}</Name>
        {children}
        <span className="flex-1" />
        <Time at={summary.made_at} relative />
      </div>
      <p className="my-1">
        <Name>{summary.reason}</Name>
        {summary.bytes_share === null
          ? null
          : ` Later queries would read ${percent(summary.bytes_share)} of their bytes.`}
      </p>
      {summary.decision ? (
        <p className="my-1 text-soft">
          {summary.decision.state} by <Name>{summary.decision.by}</Name>
          {summary.decision.why ? <Name>{`: ${summary.decision.why}`}</Name> : null}
        </p>
      ) : null}
      <div className="flex flex-wrap items-center gap-3">
        <Button aria-expanded={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide the evidence" : "Show the evidence"}
          <span className="sr-only"> of {of}</span>
        </Button>
        {isOpen && me.data?.permissions.includes("approve") ? <Decide id={summary.recommendation_id} of={of} /> : null}
      </div>
      {isShown ? <Evidence id={summary.recommendation_id} /> : null}
    </Card>
  );
}

function Decide({ id, of }: { id: string; of: string }) {
  const client = useQueryClient();
  const [isRejecting, setRejecting] = useState(false);
  const settled = () => {
    for (const key of ["recommendations", "tables"]) void client.invalidateQueries({ queryKey: [key] });
  };
  const params = { path: { recommendation_id: id } };
  const accept = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/recommendations/{recommendation_id}/accept", { params })),
    onSettled: settled,
  });
  const snooze = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/recommendations/{recommendation_id}/snooze", {
          params,
          body: { days: SNOOZE_DAYS, why: "" },
        }),
      ),
    onSettled: settled,
  });
  const error = accept.error ?? snooze.error;
  const isPending = accept.isPending || snooze.isPending;
  return (
    <>
      <Button look="main" disabled={isPending} onClick={() => accept.mutate()}>
        Accept<span className="sr-only"> {of}</span>
      </Button>
      <Button disabled={isPending} onClick={() => snooze.mutate()}>
        Snooze a week<span className="sr-only"> {of}</span>
      </Button>
      <Button look="danger" disabled={isPending} onClick={() => setRejecting(true)}>
        Reject…<span className="sr-only"> {of}</span>
      </Button>
      {error ? <Trouble error={error} /> : null}
      {isRejecting ? <Reject id={id} onClose={() => setRejecting(false)} onSettled={settled} /> : null}
    </>
  );
}

function Reject({ id, onClose, onSettled }: { id: string; onClose: () => void; onSettled: () => void }) {
  const [why, setWhy] = useState("");
  const reject = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/recommendations/{recommendation_id}/reject", {
          params: { path: { recommendation_id: id } },
          body: { why },
        }),
      ),
    onSettled,
    onSuccess: onClose,
  });
  return (
    <Dialog title="Reject this recommendation" onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          reject.mutate();
        }}
      >
        <p>Nothing is changed. A later analysis may recommend the same again.</p>
        <Field label="Why">
          {(field) => (
            <Input
              id={field}
              required
              maxLength={WHY_LENGTH_MAX}
              value={why}
              onChange={(event) => setWhy(event.target.value)}
            />
          )}
        </Field>
        {reject.error ? <Trouble error={reject.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button look="danger" type="submit" disabled={reject.isPending || !why.trim()}>
            Reject
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Evidence({ id }: { id: string }) {
  const found = useQuery(queries.recommendation(id));
  if (found.error) return <Trouble error={found.error} again={() => void found.refetch()} />;
  if (!found.data) return <p role="status">Loading…</p>;
  return <Figures view={found.data} />;
}

function Figures({ view }: { view: View }) {
  const { evidence, chosen, trials, caveats, aggregations } = view.recommendation;
  const test = chosen?.test;
  const range = ({ low, mean, high }: Schemas["Interval"]) =>
    `${mean.toFixed(1)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
  return (
    <div className="mt-3 flex flex-col gap-3">
      <Facts
        items={[
          ...Object.entries(view.properties).map(([key, value]): [string, React.ReactNode] => [
            `Sets ${key}`,
            <Name key={key}>{String(value)}</Name>,
          ]),
          ["Queries that chose it", evidence.train ? count(evidence.train.queries) : "none"],
          ["Later queries that judged it", evidence.test ? count(evidence.test.queries) : "none"],
          [
            "Sample",
            `${plural(evidence.sample_rows, "row")} of ${plural(evidence.files, "file")}, ${bytes(evidence.bytes)}`,
          ],
          ...(test && chosen
            ? ([
                [
                  "Files a later query opens",
                  `${test.files_opened_now.toFixed(1)} now, ${range(test.files_opened)} then`,
                ],
                ["CPU seconds saved a day", range(test.saved_s_per_day)],
                ["Cost, once", `${chosen.cost.cpu_s.toFixed(1)} CPU seconds for ${bytes(chosen.cost.rewrite_bytes)}`],
              ] as [string, React.ReactNode][])
            : []),
          ...(chosen?.written
            ? ([
                [
                  `Size of ${plural(chosen.written.sample_rows, "row")}, written with both settings`,
                  `${bytes(chosen.written.bytes_now)} now, ${bytes(chosen.written.bytes)} then`,
                ],
              ] as [string, React.ReactNode][])
            : []),
        ]}
        verbatim
      />
      {trials.length > 0 ? (
        <div className="overflow-x-auto">
          <table className="text-sm">
            <caption className="sr-only">All that was tried, on the queries that chose</caption>
            <thead>
              <tr className="text-left text-soft">
                {["Candidate", "Files opened", "Bytes of now", "Saved a day", "Cost"].map((heading) => (
                  <th key={heading} scope="col" className="pr-4 font-medium">
                    {heading}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {trials.map((trial) => (
                <tr key={JSON.stringify(trial.candidate)}>
                  <td className="pr-4">
                    <Name>{candidate(trial.candidate)}</Name>
                  </td>
                  <td className="pr-4 tabular-nums">{trial.train.files_opened.mean.toFixed(1)}</td>
                  <td className="pr-4 tabular-nums">
                    {trial.train.bytes_read_now
                      ? percent(trial.train.bytes_read.mean / trial.train.bytes_read_now)
                      : "–"}
                  </td>
                  <td className="pr-4 tabular-nums">{trial.train.saved_s_per_day.mean.toFixed(2)} s</td>
                  <td className="tabular-nums">{trial.cost.cpu_s.toFixed(1)} s</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {aggregations && aggregations.length > 0 ? (
        <section className="text-sm">
          <h4 className="font-medium">Sums that queries ask for: recorded, not built by icewright yet</h4>
          <ul className="list-disc pl-5">
            {aggregations.map((one) => (
              <li key={one.dimensions.join("\n")}>
                By <Name>{one.dimensions.join(", ")}</Name>
                {one.aggregates.length > 0 ? (
                  <>
                    : <Name>{one.aggregates.join(", ")}</Name>
                  </>
                ) : null}
                . Asked {plural(one.queries, "time")}; {plural(one.cells, "cell")} of {plural(one.rows, "row")}
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      <ul className="list-disc pl-5 text-sm text-soft">
        {caveats.map((caveat) => (
          <li key={caveat.code}>
            <Name>{caveat.text}</Name>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A candidate in the words in which its owner would write it. */
function candidate(found: View["recommendation"]["candidate"]): string {
  switch (found.kind) {
    case "layout":
      if (found.layout.cuts) {
        const cuts = found.layout.cuts.cuts.filter((cut) => cut !== null).length;
        return `${cuts} cuts of ${found.layout.columns.map((column) => column.path.join(".")).join(", ")}`;
      }
      return `${found.layout.curve}(${found.layout.columns.map((column) => column.path.join(".")).join(", ")})`;
    case "properties":
      return Object.entries(found.properties)
        .map(([key, value]) => `${key}=${value}`)
        .join(", ");
    case "revert":
      return `go back: ${Object.entries(found.properties)
        .map(([key, value]) => (value === null ? `unset ${key}` : `${key}=${value}`))
        .join(", ")}`;
    default:
      return "leave it as it is";
  }
}

/** Those of all tables that wait for a decision; nothing where there are none. */
export function OpenRecommendations() {
  const open = useQuery(queries.openRecommendations);
  const items = open.data?.items.filter((each) => each.state === "open") ?? [];
  if (open.error) return <Trouble error={open.error} again={() => void open.refetch()} />;
  if (items.length === 0) return null;
  return (
    <section aria-label="Recommendations" className="mt-6 flex flex-col gap-3">
      <h2 className="text-base font-semibold">Recommendations</h2>
      {items.map((each) => (
        <Recommendation key={each.recommendation_id} summary={each}>
          <TableLink table={{ name: each.table, catalog: each.catalog, uuid: each.uuid }} />
        </Recommendation>
      ))}
    </section>
  );
}
