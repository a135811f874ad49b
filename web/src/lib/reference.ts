// The API's own document, as the reference shows it. Pure.

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
}

export interface Parameter {
  $ref?: string;
  name?: string;
  in?: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Content {
  content?: Record<string, { schema?: Schema }>;
  description?: string;
}

interface Operation {
  operationId: string;
  tags?: string[];
  description?: string;
  parameters?: Parameter[];
  requestBody?: Content;
  responses: Record<string, Content>;
  security?: unknown[];
}

export interface Document {
  info: { version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; parameters?: Record<string, Parameter> };
}

export interface Route {
  id: string;
  tag: string;
  method: string;
  path: string;
  description: string;
  isPublic: boolean;
  parameters: Parameter[];
  body: Schema | undefined;
  answers: { status: string; description: string; schema: Schema | undefined }[];
}

/** All that can be asked, in the order of the document. */
export function routes(document: Document): Route[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId,
      tag: operation.tags?.[0] ?? "",
      method: method.toUpperCase(),
      path,
      description: operation.description ?? "",
      isPublic: operation.security?.length === 0,
      parameters: (operation.parameters ?? []).map((each) => resolved(document, each)),
      body: schemaOf(operation.requestBody),
      answers: Object.entries(operation.responses).map(([status, answer]) => ({
        status,
        description: answer.description ?? "",
        schema: schemaOf(answer),
      })),
    })),
  );
}

export function found(all: Route[], wanted: string): Route[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) => {
    const text = `${one.method} ${one.path} ${one.id} ${one.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function resolved(document: Document, parameter: Parameter): Parameter {
  const name = parameter.$ref?.split("/").at(-1);
  return (name === undefined ? undefined : document.components.parameters?.[name]) ?? parameter;
}

function schemaOf(of: Content | undefined): Schema | undefined {
  return Object.values(of?.content ?? {})[0]?.schema;
}

/** A type in words; `name` is the schema that it is of, if there is one. */
export function typeOf(schema: Schema | undefined): { text: string; name?: string } {
  if (schema === undefined) return { text: "" };
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return { text: name, name };
  }
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices !== undefined) {
    const types = choices.map(typeOf);
    const named = types.filter((each) => each.name !== undefined);
    const text = [...new Set(types.map((each) => each.text))].join(" or ");
    return named.length === 1 && named[0]?.name !== undefined ? { text, name: named[0].name } : { text };
  }
  if (schema.enum !== undefined) return { text: schema.enum.map((each) => JSON.stringify(each)).join(" or ") };
  if (schema.const !== undefined) return { text: JSON.stringify(schema.const) };
  if (schema.type === "array") {
    const item = typeOf(schema.items);
    return { ...item, text: `list of ${item.text || "anything"}` };
  }
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    const item = typeOf(schema.additionalProperties);
    return { ...item, text: `object of ${item.text || "anything"}` };
  }
  return { text: Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "anything") };
}

export type Piece = { as: "text" | "code" | "strong"; text: string };

/** A description as paragraphs of texts, codes and emphasis: all that the document has of Markdown. */
export function paragraphs(text: string): Piece[][] {
  return text
    .split(/\n\s*\n/)
    .map((one) => one.replace(/\s+/g, " ").trim())
    .filter(Boolean)
    .map((one) =>
      one
        .split(/(``[^`]+``|`[^`]+`|\*\*[^*]+\*\*)/)
        .filter(Boolean)
        .map((piece): Piece => {
          if (piece.startsWith("`")) return { as: "code", text: piece.replace(/^`+|`+$/g, "") };
          if (piece.startsWith("**")) return { as: "strong", text: piece.slice(2, -2) };
          return { as: "text", text: piece };
        }),
    );
}
