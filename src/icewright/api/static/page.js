// The plain page: reads the API every second and shows what it says. All text from outside goes through text nodes.

const API = "/api/v1";
const REWRITE = "rewrite_data_files";
const PERIOD_MS = 1000;
const PERIOD_MAX_MS = 15000;
const AWAY_AFTER_MS = 30000;
const TABLES_SHOWN = 200;
const PARTITIONS_SHOWN = 100;
const TASKS_SHOWN = 25;
const WAITING_SHOWN = 25;
const WHY_MS = 5000;
const MESSAGES_MS = 5000;
const LETTERS_SHOWN = 10;

const $ = (id) => document.getElementById(id);
const opened = new Set();
const planCache = new Map();
const taskStates = new Map();
const measuredCache = new Map();
const whyCache = new Map();
let now = 0;
let halts = [];

class LoggedOut extends Error {}
class Refused extends Error {}

// Asking by itself keeps no session alive: only somebody who does something on the page does.
const ATTENDED_MS = 60000;
let attendedAt = Date.now();
for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) addEventListener(kind, () => { attendedAt = Date.now(); }, { passive: true });
const asking = () => (Date.now() - attendedAt < ATTENDED_MS ? {} : { "Icewright-Unattended": "1" });

// 64-bit numbers keep their digits: those that JavaScript cannot hold stay text.
const digits = (_key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context ? context.source : value;

async function get(path) {
  const response = await fetch(API + path, { cache: "no-store", headers: asking(), signal: AbortSignal.timeout(10000) });
  if (response.status === 401) throw new LoggedOut();
  const data = JSON.parse(await response.text(), digits);
  if (!response.ok) throw new (response.status === 403 ? Refused : Error)(data.detail);
  return data;
}

// Characters that would hide or re-order what stands around them are shown by their code.
const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (hidden) => `\\u{${hidden.codePointAt(0).toString(16)}}`);

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : visible(String(child)))));
  return element;
}

// Children by key, so that what stands stays where it is: focus, selection and scrolling survive each update.
function keyed(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const after = items.map((item) => {
    const key = keyOf(item);
    let child = before.get(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    update(child, item);
    return child;
  });
  after.forEach((child, index) => parent.children[index] !== child && parent.insertBefore(child, parent.children[index] ?? null));
  while (parent.children.length > after.length) parent.lastElementChild.remove();
}

function fill(parent, ...children) {
  const fresh = el("div", {}, ...children);
  const same = parent.childNodes.length === fresh.childNodes.length
    && [...parent.childNodes].every((node, index) => node.isEqualNode(fresh.childNodes[index]));
  if (!same) parent.replaceChildren(...fresh.childNodes);
}

const count = (number) => Number(number).toLocaleString("en");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) [bytes, unit] = [bytes / 1024, unit + 1];
  return `${bytes.toLocaleString("en", { maximumFractionDigits: unit && bytes < 100 ? 1 : 0 })} ${units[unit]}`;
}

function ago(at) {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

function timeOf(at, words = ago(at)) {
  const stamp = new Date(at).toISOString();
  return el("time", { datetime: stamp, title: stamp }, words);
}

const named = (text) => el("span", { class: "name", title: visible(text.slice(0, 500)) }, text);
const tag = (text, tone) => el("span", { class: "tag", "data-tone": tone }, text);

function bar(...parts) {
  const whole = el("span", { class: "bar", "aria-hidden": "true" });
  for (const [share, kind] of parts.filter(([each]) => each > 0)) {
    const part = el("span", { class: kind });
    part.style.setProperty("--share", Math.min(1, Math.max(0, share)).toFixed(4));
    whole.append(part);
  }
  return whole;
}

function showEmpty(id, isEmpty, ...words) {
  $(id).hidden = !isEmpty;
  fill($(id), ...words);
}

// A halt that lets less go on comes later.
const HALT_STATES = ["paused", "draining", "stopped"];
const haltedPart = (halt) => (halt.kind === "all" ? "everything" : `${halt.kind} ${halt.name}`);
const haltSaid = (halt) => `${haltedPart(halt)} is ${halt.state} by ${halt.by}${halt.why ? `: ${halt.why}` : ""}`;

function covers(halt, { catalog, uuid, resource_group: group }) {
  if (halt.kind === "table") return halt.catalog === catalog && halt.uuid === uuid;
  return halt.kind === "all" || halt.name === (halt.kind === "group" ? group : catalog);
}

// What a person has halted that a table or a task is in: of several halts the one that lets least go on.
function haltOver(what) {
  const over = halts.filter((halt) => covers(halt, what));
  return over.sort((one, other) => HALT_STATES.indexOf(other.state) - HALT_STATES.indexOf(one.state))[0] ?? null;
}

function resumeCommand({ kind, name }) {
  if (kind === "all") return "icewright queue resume all";
  return `icewright queue resume --${kind} ${/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`}`;
}

function showHalts() {
  $("halts-section").hidden = !halts.length;
  keyed($("halts"), halts, (halt) => `${halt.kind} ${halt.catalog ?? ""} ${halt.uuid ?? halt.name ?? ""}`, () => el("li"), (item, halt) =>
    fill(item, el("div", { class: "line" }, tag(halt.state, "bad"), named(haltedPart(halt)), el("span", { class: "note" }, `by ${halt.by}`), timeOf(halt.since)),
      halt.why ? el("p", { class: "why" }, halt.why) : null,
      el("p", { class: "note" }, halt.running ? `${plural(halt.running, "attempt")} still at work` : "Nothing is at work here",
        ". It goes on by: ", el("code", {}, resumeCommand(halt)))));
}

function showTotals(tables, status) {
  const sum = (name) => tables.reduce((total, table) => total + (table.figures?.[name] ?? 0), 0);
  const totals = [
    ["Tables", count(tables.length)],
    ["Data files", count(sum("data_files"))],
    ["Small files", count(sum("small_files"))],
    ["Running", count(status.tasks.running + status.tasks.committed + status.tasks.in_doubt)],
    ["Queued", count(status.tasks.queued)],
    ["Done and verified", count(status.tasks.succeeded)],
  ];
  keyed($("totals"), totals, ([name]) => name, ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
    (box, [, value]) => fill(box.lastElementChild, value));
}

function tableRow(table) {
  const button = el("button", { class: "open", type: "button", "aria-expanded": "false", "aria-controls": `p-${table.uuid}` }, named(table.name));
  button.addEventListener("click", () => {
    if (!opened.delete(table.uuid)) opened.add(table.uuid);
    tick();
  });
  const row = el("tr", {}, el("th", { scope: "row" }, button));
  for (const kind of ["", "number", "number", "number", "", "why"]) row.append(el("td", { class: kind }));
  return row;
}

function updateTableRow(row, table) {
  row.querySelector("button").setAttribute("aria-expanded", String(opened.has(table.uuid)));
  const [mode, files, small, bytes, ratio, why] = [...row.children].slice(1);
  const figures = table.figures;
  fill(mode, table.mode ? tag(table.mode, table.mode === "auto" ? "good" : "plain") : "");
  fill(files, figures ? count(figures.data_files) : "–");
  fill(small, figures ? count(figures.small_files) : "–");
  fill(bytes, figures ? size(figures.size_bytes) : "–");
  const share = figures ? figures.optimization_ratio : 0;
  fill(ratio, figures ? el("span", { class: "ratio" }, bar([share, share >= 0.995 ? "good" : "small"]), `${Math.floor(share * 100)} %`) : "–");
  const said = table.problem?.text ?? table.plan?.reason.text ?? "not planned yet";
  const waits = table.plan?.can_apply && table.mode !== "auto" && !table.problem;
  const halt = haltOver(table);
  fill(why, halt ? el("div", { class: "bad" }, haltSaid(halt)) : null, el("span", { class: table.problem ? "bad" : "" }, said),
    waits ? el("div", {}, el("code", {}, table.mode === "approve" ? `icewright apply ${table.plan.plan_id}` : "only observed: set icewright.mode to approve or auto")) : null);
}

// What became of partitions: the plans of the latest verified tasks say what was there before.
async function rewritten(table) {
  const of = `table=${encodeURIComponent(table.uuid)}&catalog=${encodeURIComponent(table.catalog)}`;
  const done = (await get(`/tasks?${of}&state=succeeded&limit=20`)).items;
  const before = new Map();
  for (const task of done) {
    for (const verdict of (await planOf(task.plan_id)).verdicts) {
      const key = `${verdict.spec_id} ${verdict.values}`;
      if (verdict.verdict === "rewrite" && !before.has(key)) before.set(key, verdict.files_before);
    }
  }
  return before;
}

async function planOf(planId) {
  if (!planCache.has(planId)) planCache.set(planId, await get(`/plans/${encodeURIComponent(planId)}`));
  return planCache.get(planId);
}

// What a plan takes: exact figures, then estimates that say so, then the statement that comes nearest.
function planLines(plan) {
  const { prediction, executors, actions } = plan;
  const by = Object.entries(executors).map(([name, groups]) => `${name} ${plural(groups, "group")}`).join(", ");
  const words = [`Planned: ${actions.map((action) => action.level).join(", ")}`, `${plural(prediction.input_files, "file")} become ${count(prediction.output_files)}`];
  if (prediction.layout) words.push(`in the order of ${prediction.layout}`);
  words.push(`${size(prediction.input_bytes)} read`, by);
  const lines = [el("p", { class: "note" }, words.join(" · "))];
  const guess = prediction.estimate;
  if (guess) lines.push(el("p", { class: "note" }, `Estimated: ${size(guess.output_bytes)} written · ${Math.ceil(guess.cpu_ms / 1000)} s of CPU · conflict risk ${guess.risk}: ${guess.risk_reason.text}`));
  for (const one of guess?.lookups ?? []) lines.push(el("p", { class: "note" }, `Estimated: one value of ${one.column} in ${one.partition || "the table"} is in ${one.mean_before} of these files now (${count(one.files_before)} at most), in ${one.mean_after} afterwards (${count(one.files_after)} at most)`));
  if (prediction.call) lines.push(el("p", { class: "note" }, "The Spark statement that comes nearest: ", el("code", {}, prediction.call)));
  return lines;
}

// Why something happens to a table, or nothing: asked for every few seconds, since that reads more than a list does.
async function whyOf(table, of) {
  const key = `${table.catalog} ${table.uuid}`;
  const known = whyCache.get(key);
  if (known && Date.now() - known.at < WHY_MS) return known.why;
  const why = await get(`/tables/${encodeURIComponent(table.uuid)}/why?${of}`);
  whyCache.set(key, { at: Date.now(), why });
  return why;
}

function whyLines(why) {
  const told = why.kinds.filter((each) => each.stance !== "off" && each.stance !== "nothing-to-do");
  return [el("p", { class: "note" }, why.answer), ...why.says.map((line) => el("p", { class: "note" }, line)),
    ...told.flatMap((each) => [el("p", { class: "note" }, tag(each.stance.replaceAll("-", " "), "plain"), " ", each.kind.replaceAll("_", " ")),
      ...each.says.map((line) => el("p", { class: "note" }, line))])];
}

function unneededLines({ orphans, quarantine }) {
  const lines = [];
  if (orphans?.files) {
    const may = orphans.seen?.removable.files ? `, ${count(orphans.seen.removable.files)} of them for long enough to go` : "";
    lines.push(`Seen without anything that needs it: ${plural(orphans.files, "file")} (${size(orphans.size_bytes)})${may}`);
  }
  if (quarantine.files) lines.push(`In quarantine: ${plural(quarantine.files, "file")} (${size(quarantine.size_bytes)})`);
  return lines.map((line) => el("p", { class: "note" }, line));
}

async function partitionsOf(table) {
  const [uuid, catalog] = [encodeURIComponent(table.uuid), encodeURIComponent(table.catalog)];
  const [page, plan, before, place, unneeded, why] = await Promise.all([
    get(`/tables/${uuid}/partitions?catalog=${catalog}&limit=${PARTITIONS_SHOWN}`), table.plan ? planOf(table.plan.plan_id) : null,
    rewritten(table), get(`/tables/${uuid}/place?catalog=${catalog}`), get(`/tables/${uuid}/unneeded?catalog=${catalog}`),
    whyOf(table, `catalog=${catalog}`)]);
  const verdicts = new Map((plan?.verdicts ?? []).map((verdict) => [`${verdict.spec_id} ${verdict.values}`, verdict]));
  const rows = page.items.map((partition) => {
    const key = `${partition.spec_id} ${partition.values}`;
    return { ...partition, verdict: verdicts.get(key), before: partition.optimized_at === null ? undefined : before.get(key) };
  });
  const most = Math.max(1, ...rows.map((row) => Math.max(row.data_files, row.before ?? 0)));
  const grid = el("div", { class: "partitions" });
  grid.append(...whyLines(why));
  grid.append(...place.findings.map((reason) => el("p", { class: "note" }, `Nothing may be deleted here: ${reason.text}`)));
  if (place.unknown_count) grid.append(el("p", { class: "note" }, `Nothing may be deleted here as long as it is not known where these have files: ${place.unknown.map((gap) => gap.what).join(", ")}${place.unknown_count > place.unknown.length ? ", ..." : ""}`));
  grid.append(...unneededLines(unneeded));
  if (plan?.prediction?.kind === REWRITE) grid.append(...planLines(plan));
  for (const row of rows) grid.append(...partitionCells(row, most));
  if (page.next_cursor) grid.append(el("p", { class: "note" }, `The first ${PARTITIONS_SHOWN} partitions; the API has the rest.`));
  if (!rows.length) grid.append(el("p", { class: "note" }, "No data files."));
  return grid;
}

function partitionCells(row, most) {
  // Small files with nothing left to gain from them are no reason for a warning colour.
  const small = row.optimization_ratio < 0.995 ? row.small_files : 0;
  const present = bar([(row.data_files - small) / most, row.before ? "good" : ""], [small / most, "small"]);
  const planned = row.verdict?.verdict === "rewrite" ? row.verdict.files_after : undefined;
  const bars = el("div", { class: "pair" });
  if (row.before) bars.append(bar([row.before / most, "small"]), present);
  else if (planned !== undefined) bars.append(present, bar([planned / most, "good"]));
  else bars.append(present);
  const words = [row.before ? `${plural(row.before, "file")} before, ${count(row.data_files)} now` : plural(row.data_files, "file")];
  if (row.small_files) words.push(`${count(row.small_files)} small`);
  if (row.delete_files) words.push(plural(row.delete_files, "delete file"));
  if (planned !== undefined) words.push(`${count(planned)} after the plan`);
  else if (row.verdict && row.verdict.verdict !== "leave") words.push(row.verdict.reason.text);
  words.push(size(row.size_bytes));
  if (row.optimized_at) words.push(`optimized ${ago(row.optimized_at)}`);
  return [named(row.path || "(unpartitioned)"), bars, el("span", { class: "said" }, words.join(" · "))];
}

async function showTables(tables, nextCursor) {
  const grids = new Map();
  for (const table of tables.filter((each) => opened.has(each.uuid))) {
    grids.set(table.uuid, await partitionsOf(table).catch((error) => {
      if (error instanceof LoggedOut) throw error;
      return el("p", { class: "bad" }, error.message);
    }));
  }
  const rows = tables.flatMap((table) => (grids.has(table.uuid) ? [{ table }, { table, grid: grids.get(table.uuid) }] : [{ table }]));
  keyed($("tables"), rows, (row) => `${row.table.catalog} ${row.table.uuid} ${row.grid ? "open" : ""}`,
    (row) => (row.grid ? el("tr", { id: `p-${row.table.uuid}` }, el("td", { colspan: "7" })) : tableRow(row.table)),
    (element, row) => (row.grid ? fill(element.firstElementChild, row.grid) : updateTableRow(element, row.table)));
  $("tables-frame").hidden = !tables.length;
  $("tables-more").hidden = !nextCursor;
  fill($("tables-more"), `The first ${TABLES_SHOWN} tables; the API has the rest.`);
}

const TONES = { succeeded: "good", failed: "bad", in_doubt: "bad", running: "busy", committed: "busy" };

// What a task took beside what its plan predicted; asked for once a change of a task that was tried.
async function fetchMeasured(tasks) {
  const tried = tasks.filter((task) => task.attempt > 0 && task.state !== "running");
  await Promise.all(tried.map(async (task) => {
    const key = `${task.task_id} ${task.updated_at}`;
    if (!measuredCache.has(key)) measuredCache.set(key, (await get(`/tasks/${encodeURIComponent(task.task_id)}`)).measured);
  }));
}

function measuredWords({ input_files: files, estimate }, measured) {
  const cpu = (ms) => `${(ms / 1000).toFixed(1)} s of CPU`;
  const words = [`${count(measured.input_files)} of ${plural(files, "file")} replaced`,
    size(measured.output_bytes) + " written" + (estimate ? ` (${size(estimate.output_bytes)} predicted)` : ""),
    cpu(measured.cpu_ms) + (estimate ? ` (${cpu(estimate.cpu_ms)} predicted)` : "")];
  if (measured.proof_cpu_ms) words.push(`${cpu(measured.proof_cpu_ms)} of it for proof`);
  if (measured.wasted_bytes) words.push(`${size(measured.wasted_bytes)} wasted`);
  return `Measured: ${words.join(" · ")}`;
}

function updateTask(item, task) {
  const figures = task.outcome?.reason.figures ?? {};
  const progress = task.state === "running" ? task.progress : null;
  const [was, is] = [figures.data_files_removed, figures.data_files_added];
  const parts = [
    el("div", { class: "line" }, tag(task.state.replace("_", " "), TONES[task.state] ?? "plain"), named(task.table),
      task.action.kind === REWRITE ? null : el("span", { class: "note" }, task.action.kind.replaceAll("_", " ")), timeOf(task.updated_at)),
    el("p", { class: "why" }, task.reason.text),
  ];
  const halt = haltOver(task);
  const isHeld = task.state === "queued" || (task.state === "running" && halt?.state === "stopped");
  if (halt && isHeld) parts.push(el("p", { class: "bad" }, haltSaid(halt)));
  if (progress) {
    const said = `${progress.phase}, ${count(progress.groups_done)} of ${plural(progress.groups_total, "group")}`;
    parts.push(el("progress", { max: Math.max(1, progress.groups_total), value: progress.groups_done, "aria-label": said }), el("p", { class: "note" }, said));
  }
  if (task.outcome && task.state !== "running") parts.push(el("p", { class: task.state === "failed" ? "bad" : "" }, task.outcome.reason.text));
  if (task.state === "succeeded" && was) parts.push(el("div", { class: "pair" }, bar([1, "small"]), bar([is / was, "good"])));
  const measured = measuredCache.get(`${task.task_id} ${task.updated_at}`);
  if (measured && task.prediction.kind === REWRITE) parts.push(el("p", { class: "note" }, measuredWords(task.prediction, measured)));
  fill(item, ...parts);
}

function showTasks(tasks) {
  keyed($("tasks"), tasks, (task) => task.task_id, () => el("li"), updateTask);
  showEmpty("tasks-empty", !tasks.length, "No tasks yet. Plans of tables in mode auto are queued by themselves; others with ",
    el("code", {}, "icewright apply PLAN_ID"), ".");
  for (const task of tasks) {
    const before = taskStates.get(task.task_id);
    if (before && before !== task.state) fill($("news"), `${task.table}: ${task.state.replace("_", " ")}. ${task.outcome?.reason.text ?? ""}`);
    taskStates.set(task.task_id, task.state);
  }
}

function showWaiting({ items, next_cursor: more }) {
  $("waiting-section").hidden = !items.length;
  keyed($("waiting"), items, (each) => each.plan_id, () => el("li"), (item, each) =>
    fill(item, el("div", { class: "line" }, tag(each.kind.replaceAll("_", " "), "plain"), named(each.table), timeOf(each.since)),
      el("p", { class: "why" }, each.reason.text),
      el("p", { class: "note" }, "Look, then let it go: ", el("code", {}, `icewright approve ${each.plan_id} --show`))));
  if (more) $("waiting").append(el("li", { class: "note", "data-key": "more" }, `The first ${WAITING_SHOWN}; icewright approve lists all.`));
}

function showOptimizers(optimizers) {
  keyed($("optimizers"), optimizers, (each) => each.hello.optimizer_id, () => el("li"), (item, { hello, seen_at: seenAt }) => {
    const away = now - seenAt > AWAY_AFTER_MS;
    fill(item, el("div", { class: "line" }, tag(away ? "away" : "ready", away ? "bad" : "good"), named(hello.optimizer_id),
      el("span", { class: "note" }, `${plural(hello.slots, "slot")} · Spark ${hello.spark_version} · Iceberg ${hello.iceberg_version} · group ${hello.resource_group}`),
      timeOf(seenAt, `heard of ${ago(seenAt)}`)));
  });
  showEmpty("optimizers-empty", !optimizers.length, "No optimizer has introduced itself yet. ", el("code", {}, "icewright optimizer"),
    " starts one; Spark needs some seconds to come up. Tables are observed and planned without it.");
}

// Who is told by messages, and which did not arrive: for those alone who may read everything.
let messages = null;
let messagesAt = -MESSAGES_MS;

async function fetchMessages() {
  if (performance.now() - messagesAt < MESSAGES_MS) return;
  try {
    const [receivers, letters] = await Promise.all([get("/notifications"), get(`/notifications/dead-letters?limit=${LETTERS_SHOWN}`)]);
    messages = { receivers: receivers.items, letters: letters.items, more: letters.next_cursor };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    messages = null;
  }
  messagesAt = performance.now();
}

function showMessages() {
  const { receivers, letters, more } = messages ?? { receivers: [], letters: [], more: null };
  $("messages-section").hidden = !receivers.length && !letters.length;
  keyed($("receivers"), receivers, (each) => each.name, () => el("li"), (item, each) =>
    fill(item, el("div", { class: "line" }, tag(each.trouble ? "trouble" : "well", each.trouble ? "bad" : "good"), named(each.name),
      el("span", { class: "note" }, `${each.kind} · ${count(each.sent)} sent · ${count(each.waiting)} waiting · ${count(each.dead_letters)} did not arrive`)),
    each.trouble ? el("p", { class: "why" }, each.trouble) : null));
  keyed($("letters"), letters, (each) => each.message_id, () => el("li"), (item, each) =>
    fill(item, el("div", { class: "line" }, tag("did not arrive", "bad"), named(each.title), timeOf(each.given_up_at)),
      el("p", { class: "why" }, `${each.receiver}, ${plural(each.attempts, "attempt")}: ${each.problem}`)));
  if (more) $("letters").append(el("li", { class: "note", "data-key": "more" }, `The latest ${LETTERS_SHOWN}; icewright notifications deadletters lists all.`));
}

function showStatus(status) {
  fill($("about"), `version ${status.version} · ` + status.catalogs.map((each) => `catalog ${each.name}${each.paused_until ? " (does not answer)" : ""}`).join(", "));
  keyed($("unreadable"), status.unreadable, (each) => each.name, () => el("li"), (item, each) =>
    fill(item, el("div", { class: "line" }, tag("cannot be read", "bad"), named(each.name)), el("p", { class: "why" }, each.reason.text)));
}

async function show() {
  const [status, tables, tasks, waiting] = await Promise.all([get("/status"), get(`/tables?limit=${TABLES_SHOWN}`),
    get(`/tasks?limit=${TASKS_SHOWN}`), get(`/plans/waiting?limit=${WAITING_SHOWN}`)]);
  now = status.now;
  halts = status.halts;
  showStatus(status);
  showHalts();
  showTotals(tables.items, status);
  await showTables(tables.items, tables.next_cursor);
  showEmpty("tables-empty", !tables.items.length, "No tables yet: the server looks for them in ", status.catalogs.map((each) => each.name).join(", ") || "no catalog",
    " every minute, and at once when it is told of a commit: ", el("code", {}, "icewright notify NAME --snapshot-id N"), ".");
  showWaiting(waiting);
  await fetchMeasured(tasks.items);
  showTasks(tasks.items);
  showOptimizers(status.optimizers);
  await fetchMessages();
  showMessages();
}

let timer = 0;
let pauseMs = PERIOD_MS;
let busy = false;

function connection(state, words) {
  $("connection").dataset.state = state;
  if ($("connection").textContent !== words) $("connection").textContent = words;
  document.querySelector("main").toggleAttribute("data-stale", state === "away");
}

async function tick() {
  if (busy) return;
  busy = true;
  clearTimeout(timer);
  try {
    await show();
    pauseMs = PERIOD_MS;
    connection("live", "live");
  } catch (error) {
    if (error instanceof LoggedOut) {
      connection("away", "your log-in has ended: load the page anew to log in, or icewright login gives a link");
      return;
    }
    pauseMs = Math.min(PERIOD_MAX_MS, pauseMs * 2);
    connection("away", "the server does not answer; what is shown may be old");
  } finally {
    busy = false;
  }
  timer = setTimeout(tick, document.hidden ? PERIOD_MAX_MS : pauseMs);
}

async function showWho() {
  const me = await get("/me");
  fill($("who"), el("span", { class: "name" }, me.shown || me.name));
  const roles = me.grants.map(({ role, scope }) => `${role} on ${[scope.catalog, ...scope.namespace].join(".") || "everything"}`);
  $("who").title = visible(`${me.name}: ${roles.join(", ")}`);
  $("logout").hidden = false;
}

$("logout").addEventListener("click", async () => {
  const response = await fetch(`${API}/logout`, { method: "POST", cache: "no-store" });
  const { further } = response.ok ? JSON.parse(await response.text(), digits) : {};
  if (further) location.assign(further);
  else if (response.ok || response.status === 401) location.reload();
  else connection("away", "nobody was logged out: the server does not answer");
});

showWho().catch(() => { $("logout").hidden = true; });
document.addEventListener("visibilitychange", () => document.hidden || tick());
tick();
