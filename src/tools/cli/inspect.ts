import type { Listed } from "../../index.ts";
import { isStandby, showParty, waitingProcesses } from "../../inside.ts";
import { visible } from "../../util/visible.ts";
import type { LeaseLengths } from "../ui/lease-lengths.ts";
import { ESCAPED, escapedHint, nameOf } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { DeadlockReport, sayDeadlocks } from "./deadlocks.ts";
import { showDuration } from "./durations.ts";
import { EXIT } from "./exit-codes.ts";
import { healthReport } from "./health.ts";
import { LISTING } from "./listing.ts";
import { type Looked, lookAt } from "./look.ts";
import { many } from "./many.ts";
import type { Painted } from "./output.ts";

const FLAGS = { kind: LISTING.kind, escaped: ESCAPED };

async function inspect({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const name = nameOf(positionals, rest, values, "holdfast inspect takes one name; holdfast ls lists them.");
  const connected = await connect(values);
  const { locks, where, close } = connected;
  const sayHealth = healthReport(connected, output);
  try {
    const isWanted = (one: Pick<Listed, "kind" | "name">) =>
      one.name === name && (values.kind === undefined || one.kind === values.kind);
    const [found, deadlocks] = await Promise.all([
      lookAt(locks, name, values.kind),
      new DeadlockReport(connected, isWanted).once(),
    ]);
    if (output.isJson) for (const one of found) output.printJson(one);
    else if (found.length === 0)
      output.print(`${visible(name)} is free ${where}.${escapedHint(name, values)}`);
    else for (const line of found.flatMap((one) => linesOf(one))) output.print(line);
    sayDeadlocks(deadlocks, output);
    return EXIT.ok;
  } finally {
    // Also if the reading failed: it may be why.
    await sayHealth();
    await close();
  }
}

/**
 * One line for the lock, one for each holder and each waiter in order. `value`: left out if it was
 * not read. `lengths`: of the leases, as far as known.
 */
export function linesOf(lock: Listed & Partial<Looked>, lengths?: LeaseLengths): (string | Painted)[] {
  const { kind, name, holders, waiters, kept, permits, value } = lock;
  const of = permits === null ? "" : ` of ${many(permits, "permit")}`;
  const lines: (string | Painted)[] = [{ style: "bold", text: `${visible(name)} (${kind}${of})` }];
  if (holders.length === 0) lines.push("  free");
  for (const one of holders) {
    const { token, heldFor, remaining, mode, units } = one;
    const what = [mode ?? "", units > 1 ? `${units} permits` : ""].filter(Boolean).join(", ");
    const how = `${kept ? "kept" : "held"}${what ? ` (${what})` : ""} for ${showDuration(heldFor)}`;
    lines.push(
      `  ${how} by ${showParty(one)}${token === null ? "" : `, token ${token}`}, lease left ${showDuration(remaining)}`,
    );
    const late = kept ? null : (lengths?.unrenewed(one.id) ?? null);
    const renewed = lengths?.renewed(one.id) ?? null;
    if (late !== null)
      lines.push({ style: "red", text: `  its lease was not renewed for ${showDuration(late)}` });
    else if (renewed !== null) {
      const ago = Math.max(1, Math.round(renewed / 1_000)); // a look comes once a second
      lines.push(`  its lease was renewed ${ago} s ago, so its process lived then`);
    }
  }
  if (value) lines.push(`  value: ${visible(value)}`);
  const standsBy = isStandby(lock);
  const painted = (text: string) => (standsBy ? text : ({ style: "yellow", text } as const));
  if (waiters?.length) lines.push(painted(`  ${waitingInWords(lock)}:`));
  for (const [i, one] of (waiters ?? []).entries()) {
    const what = [one.mode ?? "", one.units > 1 ? `${one.units} permits` : ""].filter(Boolean).join(", ");
    const text = `  ${i + 1}. ${showParty(one)} ${standsBy ? "has stood by" : "waits"} for ${showDuration(one.waitedFor)}${what ? ` (${what})` : ""}`;
    lines.push(painted(text));
  }
  return lines;
}

function waitingInWords(lock: Listed): string {
  const [processes, callers] = [waitingProcesses(lock), lock.waiters?.length ?? 0];
  const count = isStandby(lock)
    ? `${many(processes, "candidate stands", "candidates stand")} by`
    : many(processes, "waiting process", "waiting processes");
  return processes === callers ? count : `${count}, with ${many(callers, "caller")}`;
}

export const INSPECT = command(
  {
    name: "inspect",
    summary: "shows the holder of a lock and all processes that wait for it, in order",
    usage: ["inspect [flags] <name>"],
    examples: [
      [
        "holdfast inspect order:42",
        "the holder's label, host and process, since when, its token and remaining lease; the value of a leader; the queue",
      ],
      ["holdfast inspect order:42 --json | jq '.holder.token'", "for programs; times in ms"],
    ],
    flags: FLAGS,
  },
  inspect,
);
