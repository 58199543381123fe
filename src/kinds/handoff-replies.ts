import { codes } from "../redis/lua.generated.ts";
import {
  type AttemptAnswer,
  fields,
  type Placed,
  type ReleaseAnswer,
  ttl,
  type YieldAnswer,
} from "../redis/replies.ts";

// What the scripts of the hand-off protocol answer, decoded. The first item is a code of lua/constants.lua, or the reply is
// that code. The connection has made numbers of integers; a token that need not be near the time comes as text.

const { OWNER, MINE, HELD, GONE, STALE, RELEASED, TAKEN, BLOCKED } = codes;

/** `lease`: that was asked for. */
export function decodeAttempt(reply: unknown, lease: number): AttemptAnswer {
  const placed = decodePlaced(reply, lease);
  if (placed) return placed;
  const [code, micros] = fields(reply);
  const at = Number(micros);
  switch (Number(code)) {
    case GONE:
      return { is: "gone", at };
    case STALE:
      return { is: "stale", at };
    case BLOCKED:
      return { is: "blocked", at };
  }
  throw unexpected(reply);
}

export function decodeYield(reply: unknown, lease: number): YieldAnswer {
  return (Array.isArray(reply) && decodePlaced(reply, lease)) || decodeRelease(reply);
}

function decodePlaced(reply: unknown, lease: number): Placed | null {
  const [code, micros, first, second] = fields(reply);
  const at = Number(micros);
  switch (Number(code)) {
    case OWNER:
      return { is: "owner", at, token: Number(first), ttl: lease, already: false };
    case MINE:
      return { is: "owner", at, token: Number(first), ttl: ttl(second), already: true };
    case HELD:
      return { is: "held", at, ttl: ttl(first), position: Number(second) < 0 ? null : Number(second) };
  }
  return null;
}

export function decodeRelease(reply: unknown): ReleaseAnswer {
  const [code, clock] = Array.isArray(reply) ? reply : [reply, 0];
  switch (Number(code)) {
    case RELEASED:
      return { is: "released", clock: 0 };
    case TAKEN:
      return { is: "taken", clock: 0 };
    case GONE:
      return { is: "gone", clock: Number(clock) || 0 };
  }
  throw unexpected(reply);
}

const unexpected = (reply: unknown): TypeError => new TypeError(`unexpected reply ${JSON.stringify(reply)}`);
