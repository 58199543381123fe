// What arrives on a client's own channel. Words are separated by single spaces; a lock's key comes last, because names
// may contain spaces.

export type Message =
  | {
      readonly is: "grant";
      readonly token: number;
      /** The server's time in µs when the TTL was set, and the TTL in ms. */
      readonly at: number;
      readonly ttl: number;
      readonly hold: string;
      /** The lock's full key, prefix included. */
      readonly key: string;
    }
  | { readonly is: "revoked"; readonly hold: string; readonly key: string }
  | { readonly is: "probe"; readonly number: number };

/** Null: not a message of this protocol; it is ignored. */
export function decodeMessage(text: string): Message | null {
  const [word, ...rest] = text.split(" ", 5);
  if (word === "grant") {
    const [token, at, ttl, hold] = rest;
    const key = text.slice(word.length + rest.join(" ").length + 2);
    if (hold === undefined || key === "") return null;
    return { is: "grant", token: Number(token), at: Number(at), ttl: Number(ttl), hold, key };
  }
  const hold = rest[0];
  if (hold === undefined) return null;
  if (word === "revoked") return { is: "revoked", hold, key: text.slice(word.length + hold.length + 2) };
  if (word === "probe") return { is: "probe", number: Number(hold) };
  return null;
}

export function probeMessage(number: number): string {
  return `probe ${number}`;
}
