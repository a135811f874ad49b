// Decisions about optimizers, their memory, and servers: why, from which figures, and what became of them.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { bytes, count, words } from "../lib/format";
import { Badge, Button, Card, Code, Empty, Facts, Loaded, Name, Time, Trouble } from "./ui";

type Decision = Schemas["DecisionView"];

const MOVES: Record<Decision["move"], string> = {
  "start-optimizer": "Start an optimizer",
  "end-optimizer": "End an optimizer",
  "more-memory": "More memory",
  "less-memory": "Less memory",
  "add-server": "Add a server",
  "remove-server": "Remove a server",
};
const TONES = { open: "fair", begun: "busy", done: "good", failed: "bad", lapsed: "plain" } as const;

function what(decision: Decision): string {
  const said = decision.about === "memory" ? bytes : count;
  return `${MOVES[decision.move]}: ${said(decision.before)} to ${said(decision.after)}`;
}

// Decisions about servers are of no queue.
function where(decision: Decision): string {
  return decision.queue === null ? "servers of this store" : `${decision.queue} queue of ${decision.group}`;
}

export function Autotune({ mayOperate }: { mayOperate: boolean }) {
  const decisions = useQuery(queries.decisions);
  return (
    <Card title="Optimizers, their memory, and servers">
      <Loaded query={decisions} what="decisions">
        {({ items }) =>
          items.length === 0 ? (
            <Empty>Nothing was decided yet: optimizers and servers are as many, and as large, as they should be.</Empty>
          ) : (
            <ul className="flex flex-col gap-3">
              {items.map((each) => (
                <DecisionItem key={each.decision_id} decision={each} mayOperate={mayOperate} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function DecisionItem({ decision, mayOperate }: { decision: Decision; mayOperate: boolean }) {
  const [isShown, setShown] = useState(false);
  const of = `${what(decision)}, ${where(decision)}`;
  return (
    <li className="flex flex-col gap-1">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={TONES[decision.state]}>{decision.state}</Badge>
        {decision.hold === null ? null : <Badge tone="fair">held</Badge>}
        <span className="font-medium">{what(decision)}</span>
        <span>
          <Name>{where(decision)}</Name>
        </span>
        <span className="flex-1" />
        <Time at={decision.made_at} relative />
      </div>
      <p>
        <Name>{decision.reason.text}</Name>
      </p>
      {decision.hold === null ? null : (
        <p className="text-soft">
          held by <Name>{decision.hold.by}</Name>
          {decision.hold.why ? <Name>{`: ${decision.hold.why}`}</Name> : null}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button aria-expanded={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide the evidence" : "Show the evidence"}
          <span className="sr-only"> of {of}</span>
        </Button>
        {mayOperate && decision.state !== "begun" ? <Holding decision={decision} of={of} /> : null}
      </div>
      {isShown ? <Evidence decision={decision} /> : null}
    </li>
  );
}

function Evidence({ decision }: { decision: Decision }) {
  return (
    <>
      <Facts
        items={[
          ["decision", <Name key="decision">{decision.decision_id}</Name>],
          ["mode", decision.mode],
          ...(decision.optimizer_id === null
            ? []
            : [["optimizer", <Name key="optimizer">{decision.optimizer_id}</Name>] as [string, React.ReactNode]]),
          ...Object.entries(decision.reason.figures).map(
            ([key, value]) => [words(key), <Name key={key}>{String(value)}</Name>] as [string, React.ReactNode],
          ),
          ["effect", <Name key="effect">{decision.effect?.text ?? "none yet"}</Name>],
        ]}
      />
      <p>By hand:</p>
      <Code>{decision.by_hand}</Code>
    </>
  );
}

function Holding({ decision, of }: { decision: Decision; of: string }) {
  const client = useQueryClient();
  const params = { path: { decision_id: decision.decision_id } };
  const body = { why: "" };
  const change = useMutation({
    mutationFn: () =>
      answer(
        decision.hold === null
          ? api.POST("/api/v1/autotune/{decision_id}/hold", { params, body })
          : api.POST("/api/v1/autotune/{decision_id}/release", { params, body }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["autotune"] }),
  });
  return (
    <>
      <Button disabled={change.isPending} onClick={() => change.mutate()}>
        {decision.hold === null ? "Hold" : "Release"}
        <span className="sr-only"> {of}</span>
      </Button>
      {change.error ? <Trouble error={change.error} /> : null}
    </>
  );
}
