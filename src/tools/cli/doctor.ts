import { visible } from "../../util/visible.ts";
import { isWaited } from "../ui/survey.ts";
import { duration } from "./args.ts";
import { type Call, command } from "./command.ts";
import { type Connected, connect } from "./connection.ts";
import { DeadlockReport, type KnownDeadlocks } from "./deadlocks.ts";
import { showDuration } from "./durations.ts";
import { EXIT, ExitError, UsageError } from "./exit-codes.ts";
import { SLOW } from "./health.ts";
import { type Latency, measure } from "./latency.ts";
import { many } from "./many.ts";
import type { Output } from "./output.ts";

const FLAGS = { timeout: duration(null, "how long each check may take. Default: 5s") };

/** A hand-off takes some round trips; a lost message is detected after 1.5 s or more. */
const TRIPS = 4;
const LOST = 1_000;

/** One line of the answer: fine, wrong, a risk, or unknown. */
type Finding = readonly [keyof typeof STYLES, string];
const STYLES = { "✔": "green", "✘": "red", "!": "yellow", "?": "yellow" } as const;

async function doctor({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  if (positionals.length > 0 || rest !== null) throw new UsageError("holdfast doctor takes no names.");
  let connected: Connected | null = null;
  try {
    connected = await connect(values);
    const { locks } = connected;
    locks.on("error", () => {}); // Problems are found below.
    const timeout = values.timeout ?? 5_000;
    const check = await locks.check({ timeout });
    // Where a lock cannot be taken, or no message arrives, no hand-off can be measured.
    const latency = check.ok ? await measure(connected, timeout) : null;
    const left = await leftovers(connected, timeout);
    const deadlocks = await new DeadlockReport(connected).once();
    const findings = [
      ...ofCheck(check),
      ...(latency ? ofLatency(latency) : []),
      ...ofLeftovers(left),
      ...ofDeadlocks(deadlocks),
    ];
    const isFine = findings.every(([mark]) => mark !== "✘");
    const problems = [...check.problems, ...deadlocks.found.map(({ text }) => text)];
    const unknown = [...check.unknown, deadlocks.missing ?? []].flat();
    if (output.isJson)
      output.printJson({ ...check, ok: isFine, problems, unknown, latency, leftovers: left });
    else for (const finding of findings) print(finding, output);
    return isFine ? EXIT.ok : EXIT.unavailable;
  } catch (error) {
    if (!(error instanceof ExitError) || error.code !== EXIT.unavailable) throw error;
    if (output.isJson) output.printJson({ ...NOTHING, problems: [error.message] });
    else print(["✘", `${error.message}.`.replace("..", ".")], output);
    return error.code;
  } finally {
    await connected?.close();
  }
}

/** The report on a Redis that cannot be reached. */
const NOTHING = { ok: false, warnings: [], unknown: [], servers: [], latency: null, leftovers: null };

type Check = Awaited<ReturnType<Connected["locks"]["check"]>>;

function ofCheck({ problems, warnings, unknown, servers }: Check): Finding[] {
  const isFine = (words: RegExp) => !problems.some((problem) => words.test(problem));
  const fine: Finding[] = servers.flatMap(
    ({ place, version, evictionPolicy, clockAhead, replicas, problems }) => [
      ...(version !== null && !problems.some((one) => /needs Redis/.test(one))
        ? [["✔", `${place} is Redis ${version}.`] as const]
        : []),
      ...(evictionPolicy === "noeviction" ? [["✔", `${place} evicts nothing (noeviction).`] as const] : []),
      ...(clockAhead !== null && !problems.some((one) => /clock/.test(one))
        ? [
            [
              "✔",
              `The clock of ${place} is ${showDuration(Math.abs(clockAhead))} ${clockAhead < 0 ? "behind" : "ahead of"} this one's.`,
            ] as const,
          ]
        : []),
      ...(replicas !== null && !problems.some((one) => /replicas/.test(one))
        ? [["✔", `${place} has ${many(replicas, "replica")}.`] as const]
        : []),
    ],
  );
  if (isFine(/^A lock cannot/) && servers.length > 0)
    fine.push(["✔", "A lock can be taken and given back: the rights are there."]);
  if (isFine(/^Messages do not arrive/) && servers.length > 0)
    fine.push([
      "✔",
      "Messages arrive at this program: whether they do at another process, its own check() and its NO_MESSAGES errors say.",
    ]);
  return [
    ...fine,
    ...warnings.map((one): Finding => ["!", one]),
    ...unknown.map((one): Finding => ["?", one]),
    ...problems.map((one): Finding => ["✘", one]),
  ];
}

function ofLatency({ roundTrip, handOff, delivery }: Latency): Finding[] {
  const trip: Finding =
    roundTrip > SLOW
      ? [
          "✘",
          `A round trip takes ${ms(roundTrip)}: put Redis nearer, or look for what keeps it busy (SLOWLOG GET, LATENCY DOCTOR).`,
        ]
      : ["✔", `A round trip takes ${ms(roundTrip)} (median).`];
  const told: Finding[] =
    delivery === null
      ? []
      : [
          delivery > SLOW
            ? [
                "✘",
                `A message takes ${ms(delivery)}: other subscribers of this Redis may be slow (CLIENT LIST TYPE pubsub).`,
              ]
            : ["✔", `A message takes ${ms(delivery)}.`],
        ];
  return [trip, ofHandOff(handOff, roundTrip), ...told];
}

function ofHandOff(handOff: number | null, roundTrip: number): Finding {
  if (handOff !== null && handOff <= LOST + TRIPS * roundTrip)
    return ["✔", `A lock is handed over to a waiter in ${ms(handOff)}.`];
  if (handOff === null && roundTrip > SLOW)
    return ["?", "Hand-offs were not measured: Redis was too slow for them (--timeout)."];
  return [
    "✘",
    `A lock is not handed over by message${handOff === null ? "" : `, and took ${ms(handOff)}`}, so waiters find it late: make sure that this user may SUBSCRIBE to holdfast:client:*.`,
  ];
}

function ofLeftovers(left: Leftovers): Finding[] {
  const { heldLocks, waitedLocks, longestHeld, longestWait, endless, missing } = left;
  if (missing !== null) return [["?", `Which locks are held is unknown: ${missing}`]];
  const held =
    longestHeld && `, the oldest for ${showDuration(longestHeld.heldFor)} (${visible(longestHeld.name)})`;
  const wait =
    longestWait && `, the longest for ${showDuration(longestWait.waitedFor)} (${visible(longestWait.name)})`;
  const count: Finding = [
    "✔",
    `${many(heldLocks, "lock is", "locks are")} held${held ?? ""}; ${many(waitedLocks, "is", "are")} waited for${wait ?? ""}.`,
  ];
  const stuck = endless.map(
    (name): Finding => [
      "✘",
      `${visible(name)} has no end, so no other process ever gets it: see it with holdfast inspect, and force-release it with holdfast break.`,
    ],
  );
  return [count, ...stuck];
}

function ofDeadlocks({ found, missing }: KnownDeadlocks): Finding[] {
  const told: Finding[] = found.map(({ text }) => ["✘", text]);
  if (missing !== null) return [...told, ["?", missing]];
  return told.length > 0 ? told : [["✔", "No callers wait for each other in a deadlock."]];
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;

function print([mark, sentence]: Finding, output: Output): void {
  output.print({ style: STYLES[mark], text: mark }, ` ${sentence}`);
}

export const DOCTOR = command(
  {
    name: "doctor",
    summary: "checks whether this Redis is fit for locks, and says what to do",
    usage: ["doctor [flags]"],
    examples: [
      [
        "holdfast doctor",
        "version, rights, eviction, persistence, memory, connections, clock, replicas, messages, latency, locks without an end, deadlocks; exit code 69 if something is wrong",
      ],
      ["holdfast doctor --json", "the same as JSON, for scripts"],
    ],
    notes: [
      "It takes and releases locks of its own, whose names begin with holdfast:, and changes nothing else.",
    ],
    flags: FLAGS,
  },
  doctor,
);

/** What is stored in Redis. */
interface Leftovers {
  readonly heldLocks: number;
  readonly waitedLocks: number;
  /** Leaders do not count. */
  readonly longestHeld: { readonly name: string; readonly heldFor: number } | null;
  /** Candidates of an election do not count. */
  readonly longestWait: { readonly name: string; readonly waitedFor: number } | null;
  /** Names of locks that never end by themselves: written by hand, or by another program. */
  readonly endless: readonly string[];
  /** Why it is unknown; null: it is known. */
  readonly missing: string | null;
}

/** `timeout`: ms for all of it. */
async function leftovers({ locks }: Connected, timeout: number): Promise<Leftovers> {
  let [heldLocks, waitedLocks] = [0, 0];
  let longestHeld: Leftovers["longestHeld"] = null;
  let longestWait: Leftovers["longestWait"] = null;
  const endless: string[] = [];
  try {
    for await (const lock of locks.list({ signal: AbortSignal.timeout(timeout) })) {
      const { kind, name, holder, waiters, heldFor, remaining } = lock;
      if (holder) heldLocks++;
      if (isWaited(lock)) waitedLocks++;
      // A leader holds for long on purpose, and its candidates wait for as long.
      if (kind !== "election") {
        if (heldFor !== null && heldFor > (longestHeld?.heldFor ?? -1)) longestHeld = { name, heldFor };
        for (const { waitedFor } of waiters ?? [])
          if (waitedFor !== null && waitedFor > (longestWait?.waitedFor ?? -1))
            longestWait = { name, waitedFor };
      }
      if (remaining === Number.POSITIVE_INFINITY) endless.push(name);
    }
    return { heldLocks, waitedLocks, longestHeld, longestWait, endless, missing: null };
  } catch (error) {
    const why =
      error instanceof Error && error.name === "TimeoutError"
        ? "this Redis has too many keys to scan in time (--timeout)."
        : String((error as Error).message);
    return { heldLocks, waitedLocks, longestHeld, longestWait, endless, missing: why };
  }
}
