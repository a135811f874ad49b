import { expect, test } from "vitest";
import { type NewCatalog, written } from "./catalog-toml";

const REST: NewCatalog = {
  name: "prod",
  kind: "rest",
  uri: "https://catalog.example.org/iceberg",
  warehouse: "analytics",
  properties:
    "credential = file:/run/secrets/catalog\noauth2-server-uri = https://login.example.org/token\nscope = catalog",
};

test("a catalog becomes the section that the documentation has", () => {
  expect(written(REST)).toEqual({
    problems: [],
    toml: `[[catalogs]]
name = "prod"
type = "rest"
uri = "https://catalog.example.org/iceberg"
warehouse = "analytics"
mode = "observe"

[catalogs.properties]
"credential" = "file:/run/secrets/catalog"
"oauth2-server-uri" = "https://login.example.org/token"
"scope" = "catalog"
`,
  });
});

test.each([
  ["credential = id:very-secret"],
  ["token = abc"],
  ["jdbc.password = abc"],
  ["s3.secret-access-key=abc"],
  ["header.Authorization = Bearer abc"],
  ["token = file:///etc/passwd"],
  ["token = env:NOT A NAME"],
])("a secret is a reference, and never written out: %s", (properties) => {
  const { toml, problems } = written({ ...REST, properties });
  expect(toml).toBe("");
  expect(problems).toHaveLength(1);
  expect(problems[0]).not.toMatch(/very-secret|abc|passwd/);
});

test.each(["postgresql://user:hunter2@db/iceberg", "postgresql://user@db/iceberg?password=hunter2"])(
  "nor is one that stands in an address: %s",
  (uri) => {
    const { toml, problems } = written({ ...REST, kind: "sql", uri, properties: "" });
    expect(toml).toBe("");
    expect(problems.join()).toContain("has a secret");
    expect(problems.join()).not.toContain("hunter2");
  },
);

test("an address that is a reference, or of another kind of catalog, is told apart", () => {
  expect(written({ ...REST, uri: "env:LAKE_URI" }).problems).toEqual([]);
  expect(written({ ...REST, uri: "thrift://metastore:9083" }).toml).toBe("");
  expect(written({ ...REST, name: "a b" }).problems).toHaveLength(1);
});

test("what somebody types cannot leave its quotes", () => {
  const { toml } = written({ ...REST, warehouse: 'x"\nmode = "auto', properties: 'a"b = c\\' });
  expect(toml).toContain(String.raw`warehouse = "x\"\u000amode = \"auto"`);
  expect(toml).toContain(String.raw`"a\"b" = "c\\"`);
  expect(toml.match(/^mode/gm)).toHaveLength(1);
});
