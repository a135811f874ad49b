// What states are called, and how they look. Pure.

const TONES: Record<string, "good" | "bad" | "busy" | "fair" | "plain"> = {
  succeeded: "good",
  failed: "bad",
  in_doubt: "bad",
  running: "busy",
  committed: "busy",
  conflict: "fair",
  unknown: "bad",
  lost: "bad",
};

export function stateTone(state: string): "good" | "bad" | "busy" | "fair" | "plain" {
  return TONES[state] ?? "plain";
}
