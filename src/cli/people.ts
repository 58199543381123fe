import { hostname, userInfo } from "node:os";
import { visible } from "../util/visible.ts";

// Holders and waiters as people are shown them.

/** What is known of a holder or a waiter, by whatever view. */
export interface Person {
  readonly label?: string | null;
  readonly host: string | null;
  readonly pid: number | null;
}

/** "nightly invoice (web-1:4711)", as it may be printed. `id`: what is shown where nothing else is known. */
export function showPerson(owner: Person | null, id: string): string {
  const place = owner?.host ? `${visible(owner.host)}:${owner.pid}` : null;
  if (owner?.label) return place === null ? visible(owner.label) : `${visible(owner.label)} (${place})`;
  return place ?? visible(id);
}

/** The caller of this program, as a label of a forced end: a user of a container may have no name. */
export function operator(): string {
  let user = `uid${process.getuid?.()}`;
  try {
    user = userInfo().username;
  } catch {
    // Its number is what there is.
  }
  return cutLabel(`${user}@${hostname()}`);
}

/** A label has 64 bytes at the most. */
export function cutLabel(text: string): string {
  let label = text;
  while (Buffer.byteLength(label) > 64) label = label.replace(/.$/su, "");
  return label || "command";
}
