import { hostname, userInfo } from "node:os";

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
