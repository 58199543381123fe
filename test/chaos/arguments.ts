import { parseArgs } from "node:util";
import type { TopologyName } from "./arenas/arena.ts";
import { type Plant, plants } from "./worker/plants.ts";

export interface Arguments {
  readonly seconds: number;
  readonly seed: number;
  readonly topologies: readonly TopologyName[];
  readonly workers: number;
  readonly callers: number;
  /** Percent of all calls. */
  readonly shared: number;
  readonly plant: Plant | null;
  readonly only: readonly string[] | null;
  readonly keep: boolean;
  readonly porcupine: boolean;
  /** Looks for what a long run leaves behind. */
  readonly soak: boolean;
}

const TOPOLOGIES: readonly TopologyName[] = ["standalone", "sentinel", "cluster", "quorum"];

export const USAGE = `tsx test/chaos/index.ts [options]

  --seconds 60       how long faults happen, over all topologies together
  --seed 42          which faults; a random one when left out
  --topology all     ${TOPOLOGIES.join(", ")} or all; several with commas
  --workers 4        processes, 1 to 16
  --callers 5        callers in each of them, 1 to 100
  --shared 35        percent of all calls that are for what several share, or one of many does; 0 to 100
  --only "a, b"      only faults of these kinds
  --plant "name"     a bug for every worker: ${Object.keys(plants).join(", ")}
  --keep             keep the history also when nothing is wrong
  --soak 25          minutes of one run on one server, which is to leave nothing behind: heap, files, timers, keys, channels
  --porcupine        has Porcupine check the histories, too, where Go is installed`;

/** @throws Error that says what is wrong with the command line */
export function readArguments(args: readonly string[]): Arguments {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: withMinutes(args),
    options: {
      seconds: { ...text, default: "60" },
      seed: { ...text, default: `${Math.floor(Math.random() * 1e9)}` },
      topology: { ...text, default: "all" },
      workers: { ...text, default: "4" },
      callers: { ...text, default: "5" },
      shared: { ...text, default: "35" },
      plant: text,
      only: text,
      keep: { type: "boolean", default: false },
      porcupine: { type: "boolean", default: false },
      soak: text,
    },
  });
  const { plant } = values;
  if (plant !== undefined && !isPlant(plant)) throw new Error(`--plant: there is no '${plant}'`);
  const soaks = values.soak === undefined ? null : whole("soak", values.soak, 1, 1_440);
  return {
    seconds: soaks === null ? whole("seconds", values.seconds, 1, 86_400) : 60 * soaks,
    seed: whole("seed", values.seed, 0, 2 ** 31),
    topologies: soaks === null ? topologies(values.topology) : ["standalone"],
    workers: whole("workers", values.workers, 1, 16),
    callers: whole("callers", values.callers, 1, 100),
    shared: whole("shared", values.shared, 0, 100),
    plant: plant ?? null,
    only: values.only === undefined ? null : list(values.only),
    keep: values.keep,
    porcupine: values.porcupine,
    soak: soaks !== null,
  };
}

/** `--soak` may stand alone. */
function withMinutes(args: readonly string[]): string[] {
  return args.flatMap((arg, place) =>
    arg === "--soak" && !/^\d/.test(args[place + 1] ?? "") ? [arg, "25"] : [arg],
  );
}

function whole(name: string, value: string, low: number, high: number): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= low && number <= high) return number;
  throw new Error(`--${name} must be a whole number from ${low} to ${high}, received '${value}'`);
}

function topologies(value: string): readonly TopologyName[] {
  if (value === "all") return TOPOLOGIES;
  return list(value).map((name) => {
    const known = TOPOLOGIES.find((topology) => topology === name);
    if (!known) throw new Error(`--topology must be ${TOPOLOGIES.join(", ")} or all, received '${name}'`);
    return known;
  });
}

const list = (value: string): string[] => value.split(",").map((part) => part.trim());
const isPlant = (name: string): name is Plant => Object.hasOwn(plants, name);
