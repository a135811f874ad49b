// What waits for a person.

import { useQuery } from "@tanstack/react-query";
import * as queries from "../api/queries";
import { PlanLink, TableLink } from "../components/links";
import { Refuse } from "../components/refuse";
import { Badge, Card, Empty, Loaded, Name, PageHeading, Time } from "../components/ui";
import { words } from "../lib/format";
import { useTitle } from "../lib/title";

export function InboxPage() {
  useTitle("Inbox");
  const waiting = useQuery(queries.waiting);
  return (
    <>
      <PageHeading title="Inbox" />
      <p className="mb-3 text-soft">Plans that nothing carries out before somebody approves them.</p>
      <Loaded query={waiting} what="what waits">
        {({ items, next_cursor: more }) =>
          items.length === 0 ? (
            <Empty>
              Nothing waits for you. Tables in the mode <code>approve</code> put their plans here; a mode is set by a
              policy, or by the table property <code>icewright.mode</code>.
            </Empty>
          ) : (
            <ul className="flex flex-col gap-3">
              {items.map((each) => (
                <li key={each.plan_id}>
                  <Card>
                    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
                      <Badge>{words(each.kind)}</Badge>
                      <TableLink table={{ name: each.table, catalog: each.catalog, uuid: each.uuid }} />
                      <span className="flex-1" />
                      <Time at={each.since} relative />
                    </div>
                    <p className="my-1">
                      <Name>{each.reason.text}</Name>
                    </p>
                    <div className="flex flex-wrap items-center gap-3">
                      <PlanLink id={each.plan_id}>Look at it and decide</PlanLink>
                      <Refuse
                        planId={each.plan_id}
                        table={each.table}
                        of={`the plan to ${words(each.kind)} of ${each.table}`}
                      />
                    </div>
                  </Card>
                </li>
              ))}
              {more ? (
                <li className="text-soft">The first {items.length}; others follow when these are decided.</li>
              ) : null}
            </ul>
          )
        }
      </Loaded>
    </>
  );
}
