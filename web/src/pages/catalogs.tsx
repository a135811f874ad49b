// The catalogs of the configuration: whether they answer, and the section that names another one.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import {
  Badge,
  Button,
  Card,
  Copy,
  Dialog,
  Field,
  Input,
  Name,
  Select,
  TextArea,
  Time,
  Trouble,
} from "../components/ui";
import { EXAMPLES, KINDS, type Kind, written } from "../lib/catalog-toml";
import { duration, plural } from "../lib/format";

export function Catalogs({ catalogs }: { catalogs: queries.Status["catalogs"] }) {
  const me = useQuery(queries.me);
  const [isConnecting, setConnecting] = useState(false);
  const mayAdminister = me.data?.permissions.includes("administer") ?? false;
  return (
    <Card
      title="Catalogs"
      actions={mayAdminister ? <Button onClick={() => setConnecting(true)}>Connect a catalog…</Button> : null}
    >
      <ul className="flex flex-col gap-2 text-sm">
        {catalogs.map((each) => (
          <li key={each.name} className="flex flex-wrap items-center gap-2">
            <Badge tone={each.paused_until === null ? "good" : "bad"}>
              {each.paused_until === null ? "answers" : "does not answer"}
            </Badge>
            <Name className="font-medium">{each.name}</Name>
            {each.paused_until === null ? null : (
              <span>
                left alone until <Time at={each.paused_until} />
              </span>
            )}
            {mayAdminister ? <Check catalog={each.name} /> : null}
          </li>
        ))}
      </ul>
      {isConnecting ? <Connect onClose={() => setConnecting(false)} /> : null}
    </Card>
  );
}

function Check({ catalog }: { catalog: string }) {
  const check = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/catalogs/{catalog}/check", { params: { path: { catalog } } })),
  });
  const found = check.data;
  return (
    <>
      <Button disabled={check.isPending} onClick={() => check.mutate()}>
        {check.isPending ? "Asking…" : "Test"}
        <span className="sr-only"> {catalog}</span>
      </Button>
      {found ? (
        <span role="status">
          {found.answers ? (
            `It answers, in ${duration(found.took_ms)}: ${found.has_more ? "at least " : ""}${plural(found.tables, "table")}.`
          ) : (
            <Name className="text-bad">{`It does not: ${found.problem?.text ?? ""}`}</Name>
          )}
        </span>
      ) : null}
      {check.error ? <Trouble error={check.error} /> : null}
    </>
  );
}

function Connect({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Kind>("rest");
  const [uri, setUri] = useState("");
  const [warehouse, setWarehouse] = useState("");
  const [properties, setProperties] = useState("");
  const { toml, problems } = written({ name, kind, uri: uri.trim(), warehouse: warehouse.trim(), properties });
  const isBegun = name !== "" && uri !== "";
  return (
    <Dialog title="Connect a catalog" onClose={onClose}>
      <div className="flex max-h-[80vh] flex-col gap-3 overflow-auto">
        <p className="text-sm">
          Catalogs are part of the server's configuration. This writes the section for it; nothing that you type here
          leaves this page.
        </p>
        <Field label="Name, as in lake.db.table">
          {(id) => <Input id={id} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label="Type">
          {(id) => (
            <Select id={id} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
              {KINDS.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Address">
          {(id) => (
            <Input
              id={id}
              value={uri}
              placeholder={EXAMPLES[kind].uri}
              onChange={(event) => setUri(event.target.value)}
            />
          )}
        </Field>
        <Field label="Warehouse, where the catalog needs one">
          {(id) => (
            <Input
              id={id}
              value={warehouse}
              placeholder={EXAMPLES[kind].warehouse}
              onChange={(event) => setWarehouse(event.target.value)}
            />
          )}
        </Field>
        <Field label="Further settings, a line each; secrets as env:NAME or file:/path">
          {(id) => (
            <TextArea
              id={id}
              rows={3}
              value={properties}
              placeholder="credential = file:/run/secrets/catalog"
              onChange={(event) => setProperties(event.target.value)}
            />
          )}
        </Field>
        {isBegun && problems.length > 0 ? (
          <div role="alert">
            <ul className="list-disc pl-5 text-sm text-bad">
              {problems.map((each) => (
                <li key={each}>
                  <Name>{each}</Name>
                </li>
              ))}
            </ul>
          </div>
        ) : null}
        {toml ? (
          <section aria-label="What to do" className="flex flex-col gap-2 text-sm">
            <p>1. Add this to the server's icewright.toml:</p>
            <pre className="overflow-auto rounded-md border border-line p-2">{toml}</pre>
            <div className="flex justify-end gap-2">
              <Copy text={toml} />
            </div>
            <p>
              2. Where the server runs, <code>icewright doctor</code> asks the catalog, with its secrets, and says what
              is wrong.
            </p>
            <p>3. Restart the server; then “Test” on this page asks it again.</p>
          </section>
        ) : null}
        <div className="flex justify-end">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  );
}
