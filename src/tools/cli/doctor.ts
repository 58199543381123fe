import { visible } from "../../util/visible.ts";
import { duration } from "./args.ts";
import { type Call, command } from "./command.ts";
import { type Connected, connect } from "./connection.ts";
import { showDuration } from "./durations.ts";
import { EXIT, ExitError, UsageError } from "./exit-codes.ts";
import { type Latency, measure } from "./latency.ts";
import type { Output } from "./output.ts";

const FLAGS = { timeout: duration(null, "how long each check may take. Default: 5s") };

/**
 * More than this, in ms, is worth a look; a message that does not arrive is found out after 1.5 s
 * and more.
 */
const SLOW = 50;
const LOST = 1_000;

/** One line of the answer: fine, wrong, or not known. */
type Finding = readonly ["✔" | "✘" | "?", string];

async function doctor({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  if (positionals.length > 0 || rest !== null) throw new UsageError("holdfast doctor takes no names.");
  let connected: Connected | null = null;
  try {
    connected = await connect(values);
    const { locks } = connected;
    locks.on("error", () => {}); // What is wrong is found below.
    const timeout = values.timeout ?? 5_000;
    const check = await locks.check({ timeout });
    const [latency, left] = check.ok ? await look(connected, timeout) : [null, null];
    const findings = [
      ...ofCheck(check),
      ...(latency ? ofLatency(latency) : []),
      ...(left ? ofLeftovers(left) : []),
    ];
    const isFine = findings.every(([mark]) => mark !== "✘");
    if (output.isJson) output.printJson({ ...check, ok: isFine, latency, leftovers: left });
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

/** What is told of a Redis that cannot be reached. */
const NOTHING = { ok: false, unknown: [], servers: [], latency: null, leftovers: null };

const look = async (connected: Connected, timeout: number) =>
  [await measure(connected, timeout), await leftovers(connected, timeout)] as const;

type Check = Awaited<ReturnType<Connected["locks"]["check"]>>;

function ofCheck({ problems, unknown, servers }: Check): Finding[] {
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
        ? [["✔", `${place} has ${replicas} replicas.`] as const]
        : []),
    ],
  );
  if (isFine(/^A lock cannot/) && servers.length > 0)
    fine.push(["✔", "A lock can be taken and given back: the rights are there."]);
  if (isFine(/^Messages are not/) && servers.length > 0)
    fine.push(["✔", "Messages arrive, so waiters are woken at once."]);
  return [
    ...fine,
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
      : ["✔", `A round trip takes ${ms(roundTrip)} (median of 20).`];
  const handed: Finding =
    handOff === null || handOff > LOST
      ? [
          "✘",
          `A lock is not handed over by message${handOff === null ? "" : `, and took ${ms(handOff)}`}, so waiters find it late: see that this user may SUBSCRIBE to holdfast:client:*.`,
        ]
      : ["✔", `A lock is handed over to a waiter in ${ms(handOff)}.`];
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
  return [trip, handed, ...told];
}

function ofLeftovers({ heldLocks, waitedLocks, longestHeld, endless, missing }: Leftovers): Finding[] {
  if (missing !== null) return [["?", `What is held is not known: ${missing}`]];
  const oldest =
    longestHeld === null
      ? ""
      : `; the longest for ${showDuration(longestHeld.heldFor)} (${visible(longestHeld.name)})`;
  const count: Finding = ["✔", `${heldLocks} locks are held, ${waitedLocks} waited for${oldest}.`];
  const stuck = endless.map(
    (name): Finding => [
      "✘",
      `${visible(name)} has no end, so no other process ever gets it: look with holdfast inspect, and end it with holdfast break.`,
    ],
  );
  return [count, ...stuck];
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;

function print([mark, sentence]: Finding, output: Output): void {
  const style = mark === "✔" ? "green" : mark === "✘" ? "red" : "yellow";
  output.print({ style, text: mark }, ` ${sentence}`);
}

export const DOCTOR = command(
  {
    name: "doctor",
    summary: "checks whether this Redis is fit for locks, and says what to do",
    usage: ["doctor [flags]"],
    examples: [
      [
        "holdfast doctor",
        "version, rights, eviction, clock, replicas, messages, latency, locks without an end; exit code 69 if something is wrong",
      ],
      ["holdfast doctor --json", "the same for a readiness probe"],
    ],
    notes: [
      "It takes and releases locks of its own, whose names begin with holdfast:, and changes nothing else.",
    ],
    flags: FLAGS,
  },
  doctor,
);

/** What is in Redis. */
interface Leftovers {
  readonly heldLocks: number;
  readonly waitedLocks: number;
  readonly longestHeld: { readonly name: string; readonly heldFor: number } | null;
  /** Names of locks that never end by themselves: written by hand, or by another program. */
  readonly endless: readonly string[];
  /** Why it is not known; null: it is. */
  readonly missing: string | null;
}

/** `timeout`: ms for all of it. */
async function leftovers({ locks }: Connected, timeout: number): Promise<Leftovers> {
  let [heldLocks, waitedLocks] = [0, 0];
  let longestHeld: Leftovers["longestHeld"] = null;
  const endless: string[] = [];
  try {
    for await (const { name, holder, waiters, heldFor, remaining } of locks.list({
      signal: AbortSignal.timeout(timeout),
    })) {
      if (holder) heldLocks++;
      if (waiters?.length) waitedLocks++;
      if (heldFor !== null && heldFor > (longestHeld?.heldFor ?? -1)) longestHeld = { name, heldFor };
      if (remaining === Number.POSITIVE_INFINITY) endless.push(name);
    }
    return { heldLocks, waitedLocks, longestHeld, endless, missing: null };
  } catch (error) {
    const why =
      error instanceof Error && error.name === "TimeoutError"
        ? "there is too much in this Redis to look at in time (--timeout)."
        : String((error as Error).message);
    return { heldLocks, waitedLocks, longestHeld, endless, missing: why };
  }
}
