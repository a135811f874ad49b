import { expect, test } from "vitest";
import openapi from "../../../docs/openapi.json?raw";
import { type Document, found, paragraphs, routes, typeOf } from "./reference";

const DOCUMENT = JSON.parse(openapi) as Document;

test("everything that the document has is shown, under a tag that it explains", () => {
  const all = routes(DOCUMENT);
  const count = Object.values(DOCUMENT.paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
  expect(all).toHaveLength(count);
  expect(new Set(all.map((one) => one.id)).size).toBe(count);
  const tags = new Set(DOCUMENT.tags.map((one) => one.name));
  expect(all.filter((one) => !tags.has(one.tag))).toEqual([]);
  expect(all.filter((one) => one.parameters.some((parameter) => parameter.name === undefined))).toEqual([]);
});

test("what one looks for is found by its path, its name or its words", () => {
  const all = routes(DOCUMENT);
  expect(found(all, "post refuse").map((one) => one.id)).toContain("refuse_plan");
  expect(found(all, "no-such-thing")).toEqual([]);
  expect(found(all, " ")).toEqual(all);
});

test("every type that is named is a schema of the document", () => {
  for (const one of routes(DOCUMENT))
    for (const schema of [one.body, ...one.answers.map((answer) => answer.schema)]) {
      const { name } = typeOf(schema);
      if (name !== undefined) expect(DOCUMENT.components.schemas).toHaveProperty(name);
    }
});

test("types are said in words", () => {
  expect(typeOf({ anyOf: [{ $ref: "#/components/schemas/Reason" }, { type: "null" }] })).toEqual({
    text: "Reason or null",
    name: "Reason",
  });
  expect(typeOf({ type: "array", items: { type: "string" } })).toEqual({ text: "list of string" });
  expect(typeOf({ enum: ["a", "b"] })).toEqual({ text: '"a" or "b"' });
  expect(typeOf({ type: "object", additionalProperties: { type: "integer" } })).toEqual({ text: "object of integer" });
  expect(typeOf(undefined)).toEqual({ text: "" });
});

test("a description has paragraphs, codes and emphasis, and no markup", () => {
  expect(paragraphs("**Lists** are `{}`,\n``x`` <b>.\n\nNext.")).toEqual([
    [
      { as: "strong", text: "Lists" },
      { as: "text", text: " are " },
      { as: "code", text: "{}" },
      { as: "text", text: ", " },
      { as: "code", text: "x" },
      { as: "text", text: " <b>." },
    ],
    [{ as: "text", text: "Next." }],
  ]);
});
