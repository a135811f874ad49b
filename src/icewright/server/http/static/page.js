// The plain page: reads the API every second and shows what it says. All text from outside goes through text nodes.

import { bar, count, digits, el, fill, keyed, named, plural, size, tag, visible } from "./parts.js";

const API = "/api/v1";
const REWRITE = "rewrite_data_files";
const PERIOD_MS = 1000;
const PERIOD_MAX_MS = 15000;
const AWAY_AFTER_MS = 30000;
const TABLES_SHOWN = 200;
const PARTITIONS_SHOWN = 100;
const TASKS_SHOWN = 25;
const FAILED_SHOWN = 5;
const WAITING_SHOWN = 25;
const WAITS_SHOWN = 5;
const FIND_FROM = 10;
const WHY_MS = 5000;
const MESSAGES_MS = 5000;
const LETTERS_SHOWN = 10;

const $ = (id) => document.getElementById(id);
const opened = new Set();
const planCache = new Map();
const taskStates = new Map();
const measuredCache = new Map();
const whyCache = new Map();
const waitsCache = new Map();
let now = 0;
let halts = [];
let haltsTold = null;
let news = [];

class LoggedOut extends Error {}
class Away extends Error {}
class Answered extends Error {}
class Refused extends Answered {}
class NotThere extends Answered {}
const REFUSALS = { 400: NotThere, 403: Refused, 404: NotThere };

// Asking by itself keeps no session alive: only somebody who does something on the page does.
const ATTENDED_MS = 60000;
let attendedAt = Date.now();
for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) addEventListener(kind, () => { attendedAt = Date.now(); }, { passive: true });
const asking = () => (Date.now() - attendedAt < ATTENDED_MS ? {} : { "Icewright-Unattended": "1" });

async function get(path) {
  const options = { cache: "no-store", headers: asking(), signal: AbortSignal.timeout(10000) };
  const [response, text] = await fetch(API + path, options).then(async (found) => [found, await found.text()])
    .catch((error) => { throw new Away(error.message); });
  if (response.status === 401) throw new LoggedOut();
  if (!response.headers.get("content-type")?.includes("json")) throw new Away(`status ${response.status}`);
  const data = JSON.parse(text, digits);
  if (!response.ok) throw new (REFUSALS[response.status] ?? Answered)(data.detail);
  return data;
}

function ago(at) {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

const instant = (at) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

function timeOf(at, words = ago(at)) {
  const stamp = new Date(at).toISOString();
  return el("time", { datetime: stamp, title: stamp }, words);
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
  const told = new Set(halts.map(haltSaid));
  if (haltsTold) news.push(...[...told].filter((said) => !haltsTold.has(said)), ...[...haltsTold].filter((said) => !told.has(said)).map((said) => `No longer: ${said}`));
  haltsTold = told;
}

// What needs somebody, in the words of `icewright status`.
function showTroubles(status) {
  const troubles = [
    ...status.catalogs.filter((each) => each.paused_until !== null).map((each) => ["catalog", each.name, `It does not answer, and is left alone until ${instant(each.paused_until)}.`]),
    ...status.doing.filter((each) => each.is_silent).map((each) => ["thread", each.thread, `It hangs: no sign of life since ${instant(each.heard_at)}; see the server's log, and restart it.`]),
    ...status.servers.filter((each) => each.is_silent).map((each) => ["server", each.server_id, `It is silent since ${instant(each.seen_at)}: it has died, or the store does not answer it.`]),
    ...[status.history].filter((each) => each?.is_late).map((each) => ["history", "history of tasks", `It is ${Math.floor(each.lag_ms / 3600000)} h behind.`]),
    ...status.receivers.filter((each) => each.trouble).map((each) => ["receiver", each.name, each.trouble]),
    ...status.unreadable.map((each) => ["unreadable", each.name, each.reason.text]),
  ];
  $("troubles-section").hidden = !troubles.length;
  keyed($("troubles"), troubles, ([kind, name]) => `${kind} ${name}`, () => el("li"), (item, [kind, name, said]) =>
    fill(item, el("div", { class: "line" }, tag(kind, "bad"), named(name)), el("p", { class: "why" }, said)));
}

function showTotals({ items: tables, next_cursor: more }, status) {
  const sum = (name) => tables.reduce((total, table) => total + (table.figures?.[name] ?? 0), 0);
  const ofTables = (number) => (more ? `${count(number)} +` : count(number));
  const totals = [
    ["Tables", ofTables(tables.length)],
    ["Data files", ofTables(sum("data_files"))],
    ["Small files", ofTables(sum("small_files"))],
    ["Running", count(status.tasks.running + status.tasks.committed + status.tasks.in_doubt)],
    ["Queued", count(status.tasks.queued)],
    ["Done and verified", count(status.tasks.succeeded)],
    ["Failed", count(status.tasks.failed), status.tasks.failed ? "bad" : ""],
  ];
  keyed($("totals"), totals, ([name]) => name, ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
    (box, [, value, tone = ""]) => fill(box.lastElementChild, el("span", { class: tone }, value)));
}

const keyOf = (table) => `${table.catalog} ${table.uuid}`;
const partId = (table) => `p-${encodeURIComponent(table.catalog)}-${table.uuid}`;
const COLUMNS = [["Mode", ""], ["Files", "number"], ["Small", "number"], ["Size", "number"], ["Optimized", ""], ["What is to be done, and why", "why"]];

function tableRow(table) {
  const button = el("button", { class: "open", type: "button", "aria-expanded": "false", "aria-controls": partId(table) }, named(table.name));
  button.addEventListener("click", () => {
    if (!opened.delete(keyOf(table))) opened.add(keyOf(table));
    button.setAttribute("aria-expanded", String(opened.has(keyOf(table))));
    tick();
  });
  // Roles are said, since the narrow page lays rows out as cards and browsers then forget what they are.
  const row = el("tr", { role: "row" }, el("th", { scope: "row", role: "rowheader" }, button));
  for (const [name, kind] of COLUMNS) row.append(el("td", { role: "cell", class: kind, "data-label": name }));
  return row;
}

function updateTableRow(row, table, task) {
  row.querySelector("button").setAttribute("aria-expanded", String(opened.has(keyOf(table))));
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
  fill(why, halt ? el("div", { class: "bad" }, haltSaid(halt)) : null,
    task ? el("div", {}, tag(task.state.replace("_", " "), TONES[task.state] ?? "plain"), " ", task.task_id) : null,
    el("span", { class: table.problem ? "bad" : "" }, said),
    waits ? el("div", {}, el("code", {}, table.mode === "approve" ? `icewright approve ${table.plan.plan_id}` : "only observed: set icewright.mode to approve or auto")) : null);
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
  const key = keyOf(table);
  const known = whyCache.get(key);
  if (known && Date.now() - known.at < WHY_MS) return known.why;
  const why = await get(`/tables/${encodeURIComponent(table.uuid)}/why?${of}`);
  whyCache.set(key, { at: Date.now(), why });
  return why;
}

function whyLines(why) {
  const told = why.kinds.filter((each) => each.stance !== "off" && each.stance !== "nothing-to-do");
  return [el("h3", {}, "Why"), el("p", { class: "answer" }, why.answer), ...why.says.map((line) => el("p", { class: "note" }, line)),
    ...told.flatMap((each) => [el("p", { class: "note" }, tag(each.stance.replaceAll("-", " "), "plain"), " ", each.kind.replaceAll("_", " ")),
      ...each.says.map((line) => el("p", { class: "note" }, line))])];
}

function unneededLines({ orphans, quarantine }) {
  const lines = [];
  if (orphans?.files) {
    const may = orphans.seen?.removable.files ? `, ${count(orphans.seen.removable.files)} of them for long enough to be removed` : "";
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
  const deletes = place.findings.map((reason) => el("p", { class: "note" }, `Nothing may be deleted here: ${reason.text}`));
  if (place.unknown_count) deletes.push(el("p", { class: "note" }, `Nothing may be deleted here as long as it is not known where these have files: ${place.unknown.map((gap) => gap.what).join(", ")}${place.unknown_count > place.unknown.length ? ", ..." : ""}`));
  deletes.push(...unneededLines(unneeded));
  if (deletes.length) grid.append(el("h3", {}, "What may be deleted"), ...deletes);
  if (plan?.prediction?.kind === REWRITE) grid.append(el("h3", {}, "Plan"), ...planLines(plan));
  grid.append(el("h3", {}, "Partitions"));
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

// Tables whose names have in them what somebody looks for; one that is not among the first by its full name.
async function found({ items, next_cursor: more }) {
  const wanted = $("find").value.trim();
  $("find-line").hidden = !wanted && !more && items.length < FIND_FROM;
  const here = items.filter((table) => table.name.toLowerCase().includes(wanted.toLowerCase()));
  let said = wanted ? `${count(here.length)} of ${plural(items.length, "table")} ${more ? "here " : ""}have that in their names.` : "";
  if (more) said = `${said} Here are the first ${TABLES_SHOWN} tables; others are found by their full names.`.trim();
  fill($("tables-more"), said);
  if (here.length || !more || !wanted.includes(".")) return here;
  return get(`/tables?name=${encodeURIComponent(wanted)}`).then((page) => page.items, (error) => {
    if (error instanceof NotThere) return [];
    throw error;
  });
}

async function showTables(page, tasks) {
  const grids = new Map();
  const tables = await found(page);
  for (const table of tables.filter((each) => opened.has(keyOf(each)))) {
    grids.set(keyOf(table), await partitionsOf(table).catch((error) => {
      if (!(error instanceof Answered)) throw error;
      return el("p", { class: "bad" }, error.message);
    }));
  }
  const working = tasksOfTables(tasks);
  const rows = tables.flatMap((table) => (grids.has(keyOf(table)) ? [{ table }, { table, grid: grids.get(keyOf(table)) }] : [{ table }]));
  keyed($("tables"), rows, (row) => `${keyOf(row.table)} ${row.grid ? "open" : ""}`,
    (row) => (row.grid ? el("tr", { id: partId(row.table), role: "row" }, el("td", { colspan: "7", role: "cell" })) : tableRow(row.table)),
    (element, row) => (row.grid ? fill(element.firstElementChild, row.grid) : updateTableRow(element, row.table, working.get(keyOf(row.table)))));
  $("tables-frame").hidden = !tables.length;
}

// Of each table the task that is at work or waits, else its latest if that failed, as far as they are shown.
function tasksOfTables({ urgent, latest }) {
  const working = new Map();
  for (const task of latest) if (!working.has(keyOf(task))) working.set(keyOf(task), task);
  for (const task of urgent) if (task.state !== "failed") working.set(keyOf(task), task);
  for (const [key, { state }] of working) if (["succeeded", "cancelled", "superseded"].includes(state)) working.delete(key);
  return working;
}

const TONES = { succeeded: "good", failed: "bad", in_doubt: "bad", running: "busy", committed: "busy" };

// Tasks at work and those that failed, then the latest: a long queue hides none of them.
async function fetchTasks() {
  const [working, failed, latest] = await Promise.all([
    get(`/tasks?state=running&state=in_doubt&state=committed&limit=${TASKS_SHOWN}`),
    get(`/tasks?state=failed&limit=${FAILED_SHOWN}`), get(`/tasks?limit=${TASKS_SHOWN}`)]);
  const urgent = [...working.items, ...failed.items];
  const shown = new Set(urgent.map((task) => task.task_id));
  return { urgent, latest: latest.items, shown: [...urgent, ...latest.items.filter((task) => !shown.has(task.task_id))] };
}

// What the first tasks of those that are queued wait for, and about when they start; asked for every few seconds.
async function fetchWaits(tasks) {
  const first = tasks.filter((task) => task.state === "queued").slice(0, WAITS_SHOWN);
  for (const id of waitsCache.keys()) if (!first.some((task) => task.task_id === id)) waitsCache.delete(id);
  await Promise.all(first.filter(({ task_id: id }) => Date.now() - (waitsCache.get(id)?.at ?? 0) >= WHY_MS).map(async ({ task_id: id }) => {
    const { waits, start } = await get(`/tasks/${encodeURIComponent(id)}`);
    waitsCache.set(id, { at: Date.now(), lines: waitLines(waits ?? [], start) });
  }));
}

// In the words of `icewright tasks show`.
function waitLines(waits, start) {
  const lines = waits.map(({ reason, until }) => `Waits: ${reason.text}${until === null ? "" : `, until ${instant(until)}`}.`);
  if (!start) return lines;
  const soonest = start.soonest_at === null ? "" : `, not before ${instant(start.soonest_at)}`;
  const when = start.at === null ? `it is not known when${soonest}` : `about ${instant(start.at)}, by an estimate`;
  const isSaid = waits.some(({ reason }) => reason.text === start.reason.text);
  return [...lines, `Starts: ${when}${isSaid ? "" : `: ${start.reason.text}`}.`];
}

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
  const waits = task.state === "queued" ? waitsCache.get(task.task_id)?.lines ?? [] : [];
  const isHeld = (task.state === "queued" && !waits.length) || (task.state === "running" && halt?.state === "stopped");
  parts.push(...waits.map((line) => el("p", { class: "why" }, line)));
  if (task.state === "in_doubt") parts.push(el("p", { class: "why" }, "Nobody heard whether its attempt committed: the table is asked next."));
  if (halt && isHeld) parts.push(el("p", { class: "bad" }, haltSaid(halt)));
  if (progress) {
    const said = `${progress.phase}, ${count(progress.groups_done)} of ${plural(progress.groups_total, "group")}`;
    parts.push(el("progress", { max: Math.max(1, progress.groups_total), value: progress.groups_done, "aria-label": said }), el("p", { class: "note" }, said));
  }
  if (task.outcome && task.state !== "running") parts.push(el("p", { class: task.state === "failed" ? "bad" : "" }, task.outcome.reason.text));
  if (task.state === "succeeded" && was) parts.push(el("div", { class: "pair" }, bar([1, "small"]), bar([is / was, "good"])));
  const measured = measuredCache.get(`${task.task_id} ${task.updated_at}`);
  if (measured && task.prediction.kind === REWRITE) parts.push(el("p", { class: "note" }, measuredWords(task.prediction, measured)));
  parts.push(el("p", { class: "note" }, task.task_id, task.attempt ? ` · try ${task.attempt} of ${task.attempts_max}` : "",
    ...(task.state === "failed" ? [" · It is queued again by: ", el("code", {}, `icewright tasks retry ${task.task_id}`)] : [])));
  fill(item, ...parts);
}

function showTasks(tasks) {
  keyed($("tasks"), tasks, (task) => task.task_id, () => el("li"), updateTask);
  showEmpty("tasks-empty", !tasks.length, "No tasks yet. Plans of tables in mode auto are queued by themselves; those that wait for a person with ",
    el("code", {}, "icewright approve PLAN_ID"), ".");
  for (const task of tasks) {
    const before = taskStates.get(task.task_id);
    if (before && before !== task.state) news.push(`${task.table}: ${task.state.replace("_", " ")}. ${task.outcome?.reason.text ?? ""}`);
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

function showOptimizers({ optimizers, submitters = [] }) {
  keyed($("optimizers"), optimizers, (each) => each.hello.optimizer_id, () => el("li"), (item, { hello, seen_at: seenAt }) => {
    const away = now - seenAt > AWAY_AFTER_MS;
    fill(item, el("div", { class: "line" }, tag(away ? "away" : "ready", away ? "bad" : "good"), named(hello.optimizer_id),
      el("span", { class: "note" }, `${plural(hello.slots, "slot")} · Spark ${hello.spark_version} · Iceberg ${hello.iceberg_version} · group ${hello.resource_group}`),
      timeOf(seenAt, `heard of ${ago(seenAt)}`)));
  });
  keyed($("submitters"), submitters, ({ submitter: { submitting } }) => submitting.submitter_id, () => el("li"), (item, { submitter, asked_at: askedAt }) => {
    const one = submitter.submitting;
    fill(item, el("div", { class: "line" }, tag("submitter", "plain"), named(`${one.submitter_id} on ${one.host}`),
      el("span", { class: "note" }, `${count(one.applications)} of at most ${plural(one.applications_max, "application")} · group ${submitter.resource_group}`),
      timeOf(askedAt, `asked ${ago(askedAt)}`)));
  });
  showEmpty("optimizers-empty", !optimizers.length && !submitters.length, "No optimizer has introduced itself yet. ", el("code", {}, "icewright optimizer"),
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
  showTroubles(status);
}

async function show() {
  const [status, tables, tasks, waiting] = await Promise.all([get("/status"), get(`/tables?limit=${TABLES_SHOWN}`),
    fetchTasks(), get(`/plans/waiting?limit=${WAITING_SHOWN}`)]);
  now = status.now;
  halts = status.halts;
  showStatus(status);
  showHalts();
  showTotals(tables, status);
  await showTables(tables, tasks);
  showEmpty("tables-empty", !tables.items.length, "No tables yet: the server looks for them in ", status.catalogs.map((each) => each.name).join(", ") || "no catalog",
    " every minute, and at once when it is told of a commit: ", el("code", {}, "icewright notify NAME --snapshot-id N"), ".");
  showWaiting(waiting);
  await Promise.all([fetchMeasured(tasks.shown), fetchWaits(tasks.shown)]);
  showTasks(tasks.shown);
  showOptimizers(status);
  await fetchMessages();
  showMessages();
  if (news.length) fill($("news"), news.join(" "));
  news = [];
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
    if (error instanceof Away) connection("away", "the server does not answer; what is shown may be old");
    else if (error instanceof Answered) connection("away", `the server answers with an error; what is shown may be old: ${visible(error.message)}`);
    else {
      connection("away", "this page has failed; what is shown may be old: load it anew");
      console.error(error);
    }
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
$("find").addEventListener("input", tick);
addEventListener("online", tick);
document.addEventListener("visibilitychange", () => document.hidden || tick());
tick();
