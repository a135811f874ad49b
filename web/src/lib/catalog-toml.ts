// A catalog as a section of the server's configuration. Pure.

export const KINDS = ["rest", "sql", "hive"] as const;
export type Kind = (typeof KINDS)[number];

export interface NewCatalog {
  name: string;
  kind: Kind;
  uri: string;
  warehouse: string;
  /** Settings of the catalog, a line each: `key = value`. */
  properties: string;
}

export const EXAMPLES: Record<Kind, { uri: string; warehouse: string }> = {
  rest: { uri: "https://catalog.example.org/iceberg", warehouse: "analytics" },
  sql: { uri: "postgresql://icewright@db.example.org:5432/iceberg", warehouse: "s3://bucket/warehouse" },
  hive: { uri: "thrift://metastore.example.org:9083", warehouse: "hdfs://namenode:8020/warehouse" },
};

const SCHEMES: Record<Kind, RegExp> = {
  rest: /^https?:\/\//,
  sql: /^(sqlite:\/\/\/\/|postgresql:\/\/)/,
  hive: /^thrift:\/\//,
};
const NAME = /^[A-Za-z0-9_-]+$/;
const REFERENCE = /^(env:[A-Za-z_][A-Za-z0-9_]*|file:\/(?!\/).+)$/;
/** As the server tells which settings are secrets. */
const SECRET = /password|passwd|secret|token|credential|access[-_.]?key|account[-_.]?key|sas|private|auth/i;
/** `oauth2-server-uri` says where a secret goes, and is none. */
const NO_SECRET = new Set(["oauth2-server-uri"]);
const PASSWORD_IN_URI = /:\/\/[^/@\s]*:[^/@\s]*@|[?&;](password|secret|token)=/i;

export interface Written {
  /** The section, or nothing while something is wrong. */
  toml: string;
  problems: string[];
}

/** The section that names the catalog, with secrets by reference alone: what is typed into a page is no place for one. */
export function written(asked: NewCatalog): Written {
  const problems: string[] = [];
  if (!NAME.test(asked.name)) problems.push("The name is of letters, digits, _ and -.");
  const isUriReference = REFERENCE.test(asked.uri);
  if (!isUriReference && !SCHEMES[asked.kind].test(asked.uri))
    problems.push(
      `The address of such a catalog looks like ${EXAMPLES[asked.kind].uri}, or is a reference (env:NAME).`,
    );
  if (!isUriReference && PASSWORD_IN_URI.test(asked.uri))
    problems.push("The address has a secret in it: write env:NAME or file:/path in its place.");
  const properties: [string, string][] = [];
  for (const line of asked.properties.split("\n").map((each) => each.trim())) {
    if (!line) continue;
    const at = line.indexOf("=");
    const [key, value] = [line.slice(0, Math.max(at, 0)).trim(), line.slice(at + 1).trim()];
    if (at < 1 || !value) problems.push(`A setting is a line \u201ckey = value\u201d: ${line.split("=")[0]}`);
    else if (SECRET.test(key) && !NO_SECRET.has(key) && !REFERENCE.test(value))
      problems.push(`${key} may be a secret: write env:NAME or file:/path, and keep the secret there.`);
    else properties.push([key, value]);
  }
  if (problems.length > 0) return { toml: "", problems };
  const lines = ["[[catalogs]]", `name = ${quoted(asked.name)}`, `type = ${quoted(asked.kind)}`];
  lines.push(`uri = ${quoted(asked.uri)}`);
  if (asked.warehouse) lines.push(`warehouse = ${quoted(asked.warehouse)}`);
  lines.push('mode = "observe"');
  if (properties.length > 0) lines.push("", "[catalogs.properties]");
  for (const [key, value] of properties) lines.push(`${quoted(key)} = ${quoted(value)}`);
  return { toml: `${lines.join("\n")}\n`, problems };
}

/** A basic string of TOML: whatever is in it stays in it. */
function quoted(text: string): string {
  const escaped = text.replace(/[\p{Cc}"\\]/gu, (each) =>
    each === '"' || each === "\\" ? `\\${each}` : `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${escaped}"`;
}
