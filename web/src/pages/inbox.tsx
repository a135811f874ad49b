// What waits for a person.

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as queries from "../api/queries";
import { PlanLink, TableLink } from "../components/links";
import { OpenRecommendations } from "../components/recommendations";
import { Refuse, RefuseDialog } from "../components/refuse";
import { Badge, Button, Card, Empty, Loaded, Name, PageHeading, Time } from "../components/ui";
import { count, words } from "../lib/format";
import { useTitle } from "../lib/title";

export function InboxPage() {
  useTitle("Inbox");
  const waiting = useInfiniteQuery(queries.waiting);
  const items = waiting.data?.pages.flatMap((page) => page.items) ?? [];
  const [refusing, setRefusing] = useState<(typeof items)[number] | null>(null);
  return (
    <>
      <PageHeading title="Inbox" />
      <p className="mb-3 text-soft">Plans that wait for a person's approval.</p>
      <Loaded query={waiting} what="what waits">
        {() =>
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
                        onOpen={() => setRefusing(each)}
                        of={`the plan to ${words(each.kind)} of ${each.table}`}
                      />
                    </div>
                  </Card>
                </li>
              ))}
              {waiting.hasNextPage ? (
                <li className="flex flex-wrap items-center gap-3 text-soft">
                  The first {count(items.length)}, the oldest.
                  <Button onClick={() => void waiting.fetchNextPage()} disabled={waiting.isFetchingNextPage}>
                    {waiting.isFetchingNextPage ? "Loading…" : "Show more"}
                  </Button>
                </li>
              ) : null}
            </ul>
          )
        }
      </Loaded>
      {refusing ? (
        <RefuseDialog
          plan={refusing}
          isWaiting={items.some((each) => each.plan_id === refusing.plan_id)}
          onClose={() => setRefusing(null)}
        />
      ) : null}
      <OpenRecommendations />
    </>
  );
}
