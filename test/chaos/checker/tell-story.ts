import type { CallEvent, Event } from "../history/events.ts";
import {
  type Call,
  callKey,
  type Forget,
  type Hold,
  type Life,
  type Setting,
  type Story,
  type Trouble,
} from "./story.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** Puts the events of a history, which must be in order, together. */
export function tellStory(events: readonly Event[]): Story {
  const calls = new Map<string, Call>();
  const lives = new Map<string, Life>();
  const troubles = new Map<number, Trouble>();
  const settings = new Map<string, Setting>();
  const forgets = new Map<string, Forget>();
  const [forgettings, shown]: [Story["forgettings"], Story["shown"]] = [[], []];
  // What comes after "over" is the cleaning up.
  const end = events.findIndex(({ is }) => is === "over");
  const over = events.at(end)?.at ?? 0;
  const life = (by: string): Life => {
    const known = lives.get(by) ?? { by, dead: null, standing: [], unhandled: [] };
    lives.set(by, known);
    return known;
  };

  for (const event of end < 0 ? events : events.slice(0, end)) {
    const { at, by } = event;
    switch (event.is) {
      case "up":
        life(by);
        break;
      case "blocked":
        life(by).standing.push({ from: at, to: at + event.ms * 1_000 });
        break;
      case "stopped":
        life(event.victim).standing.push({ from: at, to: NEVER });
        break;
      case "continued": {
        const last = life(event.victim).standing.findLast(({ to }) => to === NEVER);
        if (last) last.to = at;
        break;
      }
      case "unhandled":
        life(by).unhandled.push({ at, error: event.error });
        break;
      case "dead":
        life(event.victim).dead ??= { at, meant: event.meant, how: event.how };
        break;
      case "fault":
        troubles.set(event.number, { kind: event.kind, from: at, to: NEVER });
        break;
      case "healed": {
        const trouble = troubles.get(event.number);
        if (trouble) trouble.to = at;
        break;
      }
      case "forgot":
        forgettings.push({ from: event.since, to: at, tokens: { from: event.from, to: event.to } });
        break;
      case "clock step":
        troubles.set(-troubles.size - 1, { kind: event.is, from: at, to: at });
        break;
      case "ask": {
        const { call: number, is: _, how, ...asked } = event;
        const rest = { aborted: null, answered: null, hold: null, got: null };
        calls.set(callKey(by, number), { ...asked, number, asked: at, ...rest });
        break;
      }
      case "shown": {
        const { lock, token, number } = event;
        const last = shown.findLast((one) => one.by === by && one.lock === lock);
        if (last?.to === NEVER) last.to = at;
        if (token > 0) shown.push({ by, lock, token, number, from: at, to: NEVER });
        break;
      }
      case "sets": {
        const { lock, permits } = event;
        settings.set(callKey(by, event.set), { lock, permits, asked: at, answered: NEVER, stands: false });
        break;
      }
      case "has set": {
        const setting = settings.get(callKey(by, event.set));
        if (setting) Object.assign(setting, { answered: at, stands: event.error === null });
        break;
      }
      case "forgets":
        forgets.set(callKey(by, event.forget), { by, lock: event.lock, from: at, to: NEVER, isDone: false });
        break;
      case "has forgotten": {
        const forget = forgets.get(callKey(by, event.forget));
        if (forget) Object.assign(forget, { to: at, isDone: event.error === null });
        break;
      }
      case "draining":
      case "kept":
      case "done":
      case "trouble":
      case "over":
        break;
      default:
        tellCall(calls.get(callKey(by, event.call)), event, at);
    }
  }
  for (const { hold, by } of calls.values()) if (hold) endHold(hold, lives.get(by), over);
  for (const one of [...shown, ...forgets.values()])
    one.to = Math.min(one.to, lives.get(one.by)?.dead?.at ?? over, over);
  const all = [...calls.values()].flatMap(({ hold }) => hold ?? []);
  const holds = new Map<string, Hold[]>();
  for (const hold of all.sort((one, other) => one.from - other.from)) {
    const { lock } = hold.call;
    holds
      .set(lock, holds.get(lock) ?? [])
      .get(lock)
      ?.push(hold);
  }
  return {
    calls: [...calls.values()],
    holds,
    lives,
    troubles: [...troubles.values()],
    forgettings,
    shown,
    settings: [...settings.values()],
    forgets: [...forgets.values()],
    over,
  };
}

function tellCall(call: Call | undefined, event: CallEvent, at: number): void {
  if (!call) return;
  const { hold } = call;
  if (event.is === "abort") call.aborted = at;
  else if (event.is === "busy") call.answered = { at, with: "busy" };
  else if (event.is === "failed") call.answered = { at, with: "error" };
  else if (event.is === "got") {
    const { token, value, stored } = event;
    call.answered = { at, with: "result" };
    call.got = { at, token, value, stored };
  } else if (event.is === "lease") {
    call.answered = { at, with: "lease" };
    const deadline = at + event.left * 1_000;
    const rest = { lost: null, unlock: null, unlocked: null, unheld: null, until: NEVER };
    call.hold = { call, token: event.token, from: at, deadline, claims: null, ...rest };
    if (event.held) claim(call.hold, at);
  } else if (!hold) return;
  else if (event.is === "seen" && event.held) {
    hold.deadline = Math.max(hold.deadline, at + event.left * 1_000);
    // A renewal tells it when it has happened, not before the lease is asked.
    if (event.after !== "a renewal") claim(hold, at);
  } else if (event.is === "seen") {
    hold.until = Math.min(hold.until, at);
    hold.unheld ??= at;
  } else if (event.is === "lost") hold.lost ??= { at, reason: event.reason };
  else if (event.is === "unlock") {
    hold.unlock = at;
    if (event.held) {
      hold.deadline = Math.max(hold.deadline, at);
      claim(hold, at);
    }
  } else if (event.is === "unlocked") hold.unlocked = { at, error: event.error, stored: event.stored };
}

function claim(hold: Hold, at: number): void {
  hold.claims = { first: hold.claims?.first ?? at, last: at };
}

/**
 * A holder counts on its lock until it gives the lock up, is told of the loss, dies, or its
 * deadline passes.
 */
function endHold(hold: Hold, life: Life | undefined, over: number): void {
  const { until, unlock, lost, deadline } = hold;
  hold.until = Math.min(until, unlock ?? NEVER, lost?.at ?? NEVER, life?.dead?.at ?? NEVER, deadline, over);
}
