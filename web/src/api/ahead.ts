// Reads whose shapes are not in the generated schema yet.
import { answer, api } from "./client";

type Get = (path: string, options: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

export function read<T>(path: string, query: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
  const asked = (api.GET as unknown as Get)(path, { params: { query: given }, signal });
  return answer(asked as Promise<{ data?: T; response: Response }>) as Promise<T>;
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}
export interface HealthSummary {
  score: number;
  grade: "good" | "fair" | "poor";
  worst?: string;
}
export interface Totals {
  tables: number;
  bytes: number;
  files: number;
  small_files: number;
  delete_files: number;
  health: number | null;
  health_min: number | null;
  unknown: number;
  failing: number;
  grades?: { good: number; fair: number; poor: number };
}
export interface Place {
  name: string;
  catalog: string;
  totals: Totals;
}
export interface HealthPart {
  part: string;
  score: number;
  weight: number;
  reason: { code: string; text: string };
  action: { kind: string | null; text: string } | null;
}
export interface TableHealth {
  at: number;
  health: { score: number; grade: "good" | "fair" | "poor"; parts: HealthPart[] } | null;
  change: { at: number; before: number; after: number; text: string } | null;
}
export interface Sample {
  at: number;
  files: number;
  bytes: number;
  records: number;
  small_files: number;
  delete_files: number;
  snapshots: number;
  health: number | null;
}
export interface DataFile {
  path: string;
  partition: string;
  spec_id: number;
  format: string;
  size_bytes: number;
  records: number;
  is_small: boolean;
  snapshot_id: string;
  data_sequence_number: number;
}
export interface FilesPage extends Page<DataFile> {
  snapshot_id: string | null;
  files_read: number;
  files_total: number;
  truncated: boolean;
}
export interface Metadata {
  schema_id: number;
  columns: { field_id: number; name: string; type: string; required: boolean; doc: string | null }[];
  partition_specs: { spec_id: number; is_default: boolean; text: string }[];
  sort_order: { order_id: number; text: string };
  properties: Record<string, string>;
}
export interface Bucket {
  from_bytes: number;
  to_bytes: number;
  files: number;
  bytes: number;
}
export interface Histogram {
  snapshot_id: string | null;
  target_file_size_bytes: number;
  small_file_size_bytes: number;
  buckets: Bucket[];
  partitions_read: number;
  truncated: boolean;
}
export interface Bounds {
  snapshot_id: string | null;
  columns: { name: string; type: string }[];
  files_total: number;
  files_read: number;
  sampled: boolean;
  truncated: boolean;
  unknown_files: number;
  overlap: { column: string; files: number; depth_max: number; depth_mean: number }[];
  items: BoundsItem[];
}
export interface BoundsItem {
  path: string;
  partition: string;
  size_bytes: number;
  records: number;
  bounds: { min: string | null; max: string | null; lower: number | null; upper: number | null }[];
}
export interface Amount {
  files: number;
  size_bytes: number;
}
export interface Storage {
  complete: boolean;
  gaps_count: number;
  observed_at: number;
  snapshots: number;
  total: Amount;
  classes: { file_class: string; live: Amount; by_refs: Amount; by_history: Amount }[];
  refs: { name: string; type: string; snapshot_id: string; reachable: Amount; only_here: Amount }[];
  refs_left_out: number;
  expiries: { rule: { older_than_ms: number; retain_last: number | null }; snapshots: number; freed: Amount }[];
}
