import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Event } from "./events.ts";

/** All events of a history folder in the order in which they happened. */
export function readHistory(folder: string): Event[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".jsonl"));
  const events = files.flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n").flatMap(parse));
  return events.sort((one, other) => one.at - other.at);
}

/** Nothing for the empty end of a file, and for a line that its writer did not live to end. */
function parse(line: string): Event[] {
  try {
    return [JSON.parse(line) as Event];
  } catch {
    return [];
  }
}
