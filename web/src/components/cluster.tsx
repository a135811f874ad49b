// The servers of one store: which of them looks at which tables, and what moves between them.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client";
import * as queries from "../api/queries";
import { differsSaid, lastMoves, onTheirWay, type ServerRow, serversOf, whyMoved } from "../lib/cluster";
import { count, percent, plural } from "../lib/format";
import { type Column, DataTable } from "./data-table";
import { Badge, Button, Card, classes, Loaded, Name, Time } from "./ui";

const SERVERS: Column<ServerRow>[] = [
  {
    id: "server",
    heading: "Server",
    by: (row) => row.serverId,
    cell: (row) => (
      <>
        <Name className="font-medium">{row.serverId}</Name>{" "}
        <Badge tone={row.isSilent ? "bad" : row.leads ? "good" : "plain"}>
          {row.isSilent ? "silent" : row.leads ? "leads" : "follows"}
        </Badge>
        {row.url ? (
          <div className="text-soft">
            <Name>{row.url}</Name>
          </div>
        ) : null}
        {row.differs.length > 0 ? <div className="text-bad">{differsSaid(row.differs)}</div> : null}
      </>
    ),
  },
  { id: "buckets", heading: "Buckets", numeric: true, by: (row) => row.buckets, cell: (row) => count(row.buckets) },
  {
    id: "tables",
    heading: "Tables",
    numeric: true,
    by: (row) => row.tables,
    cell: (row) => `${count(row.tables)}${row.share === null ? "" : ` (${percent(row.share)})`}`,
  },
  {
    id: "coming",
    heading: "Coming",
    numeric: true,
    from: "md",
    by: (row) => row.coming,
    cell: (row) => count(row.coming),
  },
  {
    id: "cpu",
    heading: "CPU",
    numeric: true,
    from: "md",
    by: (row) => row.cpu,
    cell: (row) => (row.cpu === null ? <span className="text-soft">unknown</span> : percent(row.cpu)),
  },
  {
    id: "seen",
    heading: "Last heartbeat",
    from: "sm",
    by: (row) => row.seenAt,
    cell: (row) => <Time at={row.seenAt} relative />,
  },
  {
    id: "joined",
    heading: "Shares tables since",
    from: "lg",
    by: (row) => row.joinedAt,
    cell: (row) => (row.joinedAt === null ? <span className="text-soft">not yet</span> : <Time at={row.joinedAt} />),
  },
  {
    id: "release",
    heading: "Release",
    from: "lg",
    by: (row) => row.release,
    cell: (row) => <Name>{row.release}</Name>,
  },
];

const WAY: Column<ReturnType<typeof onTheirWay>[number]>[] = [
  { id: "from", heading: "From", cell: (row) => <Name>{row.from ?? "no server"}</Name> },
  { id: "to", heading: "To", cell: (row) => <Name>{row.to}</Name> },
  { id: "buckets", heading: "Buckets", numeric: true, cell: (row) => count(row.buckets) },
  { id: "tables", heading: "Tables", numeric: true, cell: (row) => count(row.tables) },
];

const MOVES: Column<ReturnType<typeof lastMoves>[number]>[] = [
  { id: "to", heading: "To", cell: (row) => <Name>{row.to ?? "no server"}</Name> },
  { id: "why", heading: "Why", cell: (row) => row.why },
  { id: "buckets", heading: "Buckets", numeric: true, cell: (row) => count(row.buckets) },
  { id: "tables", heading: "Tables", numeric: true, from: "sm", cell: (row) => count(row.tables) },
  { id: "at", heading: "The last one", from: "sm", cell: (row) => <Time at={row.at} relative /> },
];

const BUCKETS: Column<Schemas["BucketView"]>[] = [
  { id: "bucket", heading: "Bucket", numeric: true, by: (row) => row.bucket, cell: (row) => row.bucket },
  {
    id: "server",
    heading: "Server",
    by: (row) => row.server_id,
    cell: (row) => <Name>{row.server_id ?? "none"}</Name>,
  },
  { id: "tables", heading: "Tables", numeric: true, by: (row) => row.tables, cell: (row) => count(row.tables) },
  { id: "why", heading: "Why there", from: "md", by: (row) => row.moved_by, cell: (row) => whyMoved(row.moved_by) },
  {
    id: "at",
    heading: "Since",
    from: "sm",
    by: (row) => row.moved_at,
    cell: (row) => <Time at={row.moved_at} relative />,
  },
  {
    id: "next",
    heading: "Moves to",
    from: "lg",
    by: (row) => row.moves_to,
    cell: (row) => <Name>{row.moves_to ?? ""}</Name>,
  },
];

export function Cluster() {
  const cluster = useQuery(queries.cluster);
  const status = useQuery(queries.status);
  return (
    <Loaded query={status} what="the servers">
      {({ servers }) => (
        <Loaded query={cluster} what="the shares of the servers">
          {(found) => (
            <div className="flex flex-col gap-4">
              <Card title="Servers">
                {found.coordinator ? <Coordinator link={found.coordinator} /> : null}
                {found.servers.length === 0 ? (
                  <p className="mb-2">One server looks at all tables: on SQLite there is no other.</p>
                ) : null}
                <DataTable
                  label="Servers"
                  rows={serversOf(found, servers)}
                  columns={found.servers.length === 0 ? SERVERS.filter((each) => ALONE.has(each.id)) : SERVERS}
                  keyOf={(row) => row.serverId}
                />
              </Card>
              {found.buckets.length === 0 ? null : <Shares found={found} />}
            </div>
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

function Coordinator({ link }: { link: NonNullable<Schemas["Cluster"]["coordinator"]> }) {
  const isConnected = link.state === "connected";
  return (
    <p className={classes("mb-2 text-sm", isConnected ? "text-soft" : "text-bad")}>
      Coordinator: <Name>{link.coordinator}</Name>, {link.state}
      {link.since === null ? null : (
        <>
          {" "}
          since <Time at={link.since} />
        </>
      )}
      {isConnected ? "." : ": no bucket is assigned until it is connected."}
    </p>
  );
}

/** What is known of a server that shares its tables with no other. */
const ALONE: ReadonlySet<string> = new Set(["server", "seen", "release"]);

function Shares({ found }: { found: Schemas["Cluster"] }) {
  const [isShown, setShown] = useState(false);
  const way = onTheirWay(found.buckets);
  const without = found.buckets.filter((each) => each.server_id === null).length;
  return (
    <>
      {without > 0 ? (
        <p role="status" className="text-bad">
          {plural(without, "bucket")} without a server: the leader assigns {without === 1 ? "it" : "them"} within
          seconds.
        </p>
      ) : null}
      {way.length === 0 ? null : (
        <Card title="On their way">
          <p className="mb-2 text-sm text-soft">Each bucket moves when its server has ended what it is at there.</p>
          <DataTable label="Buckets on their way" rows={way} columns={WAY} keyOf={(row) => `${row.from} ${row.to}`} />
        </Card>
      )}
      <Card
        title="Buckets"
        actions={
          <Button aria-expanded={isShown} onClick={() => setShown(!isShown)}>
            {isShown ? "Hide the buckets" : "Show the buckets"}
          </Button>
        }
      >
        <p className="mb-2 text-sm text-soft">
          Tables are in {plural(found.buckets.length, "bucket")}, by a hash of their names. This is why each is where it
          is.
        </p>
        <DataTable
          label="Last moves of buckets"
          rows={lastMoves(found.buckets)}
          columns={MOVES}
          keyOf={(row) => `${row.to} ${row.why}`}
        />
        {isShown ? (
          <div className="mt-3">
            <DataTable label="All buckets" rows={found.buckets} columns={BUCKETS} keyOf={(row) => String(row.bucket)} />
          </div>
        ) : null}
      </Card>
    </>
  );
}
