// The API, from the document that the server gives: what can be asked, with what, and what comes back.

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import * as queries from "../api/queries";
import { Badge, Card, Code, Empty, Field, Input, Loaded, PageHeading } from "../components/ui";
import { plural } from "../lib/format";
import { type Document, found, paragraphs, type Route, routes, type Schema, typeOf } from "../lib/reference";
import { useTitle } from "../lib/title";

const referenceRoute = getRouteApi("/reference");

const TONES = { GET: "good", POST: "busy", DELETE: "bad" } as const;

export function ReferencePage() {
  useTitle("API");
  const document = useQuery(queries.openapi);
  return (
    <>
      <PageHeading title="API" />
      <Loaded query={document} what="the reference">
        {(value) => <Reference document={value} />}
      </Loaded>
    </>
  );
}

function Reference({ document }: { document: Document }) {
  const { q = "", schema } = referenceRoute.useSearch();
  const navigate = referenceRoute.useNavigate();
  const all = routes(document);
  const shown = found(all, q);
  return (
    <div className="flex flex-col gap-4">
      <p className="text-sm text-soft">
        Version {document.info.version}. The same as a document: <a href="/api/v1/openapi.json">openapi.json</a>.
      </p>
      <Card title="What holds for all of it">
        <Prose text={document.info.description} />
      </Card>
      <Field label="Find by path, name or words">
        {(id) => (
          <Input
            id={id}
            type="search"
            value={q}
            onChange={(event) =>
              void navigate({ search: (old) => ({ ...old, q: event.target.value || undefined }), replace: true })
            }
          />
        )}
      </Field>
      <p role="status" className="text-sm text-soft">
        {plural(shown.length, "request")}
      </p>
      {schema !== undefined && document.components.schemas[schema] ? (
        <SchemaCard name={schema} of={document.components.schemas[schema]} />
      ) : null}
      {shown.length === 0 ? <Empty>No request is of that path, name or words.</Empty> : null}
      {document.tags.map((tag) => {
        const own = shown.filter((one) => one.tag === tag.name);
        return own.length === 0 ? null : (
          <Card key={tag.name} title={<span className="inline-block first-letter:uppercase">{tag.name}</span>}>
            <p className="mb-2 text-sm text-soft">{tag.description}</p>
            <ul className="flex flex-col gap-2">
              {own.map((one) => (
                <li key={one.id}>
                  <Request route={one} isOpen={shown.length <= 3} />
                </li>
              ))}
            </ul>
          </Card>
        );
      })}
    </div>
  );
}

function Request({ route, isOpen }: { route: Route; isOpen: boolean }) {
  const [first] = paragraphs(route.description);
  return (
    <details open={isOpen} className="rounded-md border border-line p-2">
      <summary className="cursor-pointer [overflow-wrap:anywhere]">
        <Badge tone={TONES[route.method as keyof typeof TONES] ?? "plain"}>{route.method}</Badge>{" "}
        <Code>{route.path}</Code>{" "}
        <span className="text-sm text-soft">{first?.map((piece) => piece.text).join("")}</span>
      </summary>
      <div className="mt-2 flex flex-col gap-3 text-sm">
        <Prose text={route.description} />
        <p className="text-soft">
          Operation <Code>{route.id}</Code>
          {route.isPublic ? ", without credentials" : ""}
        </p>
        {route.parameters.length > 0 ? (
          <Rows
            caption="Parameters"
            rows={route.parameters.map((each) => ({
              name: each.name ?? "",
              of: `${each.in}${each.required ? ", required" : ""}`,
              schema: each.schema,
              said: each.description ?? "",
            }))}
          />
        ) : null}
        {route.body ? (
          <p>
            Body: <Type schema={route.body} />
          </p>
        ) : null}
        <Rows
          caption="Answers"
          rows={route.answers.map((each) => ({
            name: each.status,
            of: "",
            schema: each.schema,
            said: each.description,
          }))}
        />
      </div>
    </details>
  );
}

function Rows({
  caption,
  rows,
}: {
  caption: string;
  rows: { name: string; of: string; schema: Schema | undefined; said: string }[];
}) {
  return (
    <table className="w-full text-left text-sm">
      <caption className="text-left font-medium">{caption}</caption>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.name} ${row.of}`} className="border-t border-line align-top">
            <th scope="row" className="py-1 pr-3 font-normal">
              <Code>{row.name}</Code>
              {row.of ? <span className="block text-soft">{row.of}</span> : null}
            </th>
            <td className="py-1 pr-3">
              <Type schema={row.schema} />
            </td>
            <td className="py-1 max-sm:hidden">
              <Prose text={row.said} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A type; one that has a name leads to its fields. */
function Type({ schema }: { schema: Schema | undefined }) {
  const { text, name } = typeOf(schema);
  if (name === undefined) return <span className="[overflow-wrap:anywhere]">{text}</span>;
  return (
    <Link to="/reference" search={(old) => ({ ...old, schema: name })} className="[overflow-wrap:anywhere] underline">
      {text}
    </Link>
  );
}

function SchemaCard({ name, of }: { name: string; of: Schema }) {
  const fields = Object.entries(of.properties ?? {});
  return (
    <Card
      title={<Code>{name}</Code>}
      actions={
        <Link to="/reference" search={(old) => ({ ...old, schema: undefined })} className="text-sm underline">
          Close
        </Link>
      }
    >
      <Prose text={of.description ?? ""} />
      {fields.length === 0 ? (
        <p>
          <Type schema={{ ...of, description: "" }} />
        </p>
      ) : (
        <Rows
          caption="Fields"
          rows={fields.map(([field, schema]) => ({
            name: field,
            of: of.required?.includes(field) ? "required" : "",
            schema,
            said: schema.description ?? "",
          }))}
        />
      )}
    </Card>
  );
}

function Prose({ text }: { text: string }) {
  return (
    <div className="flex max-w-prose flex-col gap-2 text-sm">
      {paragraphs(text).map((pieces) => (
        <p key={pieces.map((piece) => piece.text).join("")} className="[overflow-wrap:anywhere]">
          {pieces.map((piece, index) =>
            piece.as === "code" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a text do not move
              <Code key={index}>{piece.text}</Code>
            ) : piece.as === "strong" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: the same
              <strong key={index}>{piece.text}</strong>
            ) : (
              piece.text
            ),
          )}
        </p>
      ))}
    </div>
  );
}
