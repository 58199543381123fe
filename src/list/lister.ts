import type { checkList, Listed, ListedKind } from "../api/list.ts";
import { LIST_BATCH, LISTED_REMEMBERED } from "../defaults.ts";
import type { Commands } from "../redis/commands.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import type { Place } from "../redis/driver.ts";
import type { FoundKey, GrantProtocol } from "../redis/keys.ts";
import { listLua as lua } from "../redis/lua.generated.ts";
import { inspectionOf, unavailable } from "../redis/replies.ts";
import { orAbort } from "../util/abort.ts";
import { Glob } from "./glob.ts";
import { inspectAll, type Look, ofCounted, ofExclusive } from "./inspections.ts";
import { Recent, scan } from "./scan.ts";

/** How to inspect one lock of each kind that several may hold. Each is one command. */
export interface Inspections {
  readonly readWrite: (name: string) => Promise<CountedInspection>;
  readonly semaphore: (name: string) => Promise<CountedInspection>;
}

const KINDS: Readonly<Record<GrantProtocol, ListedKind>> = {
  handoff: "lock",
  rw: "readWrite",
  semaphore: "semaphore",
  election: "election",
  remember: "remember",
};

/**
 * An owner of Redisson's plain lock: of a client and a thread, or a hold. Redisson's other hashes
 * have fields of other forms.
 */
const REDISSON_OWNER = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+$/;

/**
 * The scripts' answer for a key that is no lock of a known format. Redis 6.2 adds its own words
 * before those of a script's call.
 */
const isForeign = /^LOCKFORMAT|\bWRONGTYPE\b/;

/** Any lock, where only the fact of an answer counts. */
const ANY = { kind: "lock", name: "holdfast" } as const;

type Wanted = ReturnType<typeof checkList>;

/**
 * Finds the locks of a server or a Cluster by their keys, for people: step by step, so that no
 * client waits for it.
 */
export class Lister {
  readonly #places: () => readonly Place[];
  readonly #commands: Commands;
  readonly #inspections: Inspections;

  /** `places`: the servers whose databases together have all keys. */
  constructor(places: () => readonly Place[], commands: Commands, inspections: Inspections) {
    this.#places = places;
    this.#commands = commands;
    this.#inspections = inspections;
  }

  /** `assertOpen` throws when the client is closed. */
  async *list(wanted: Wanted, assertOpen: () => void): AsyncGenerator<Listed, void, undefined> {
    const { keys } = this.#commands;
    const glob = new Glob(wanted.match);
    const families = (["handoff", "rw", "semaphore", "election", "remember"] as const).filter((family) =>
      wanted.kinds.has(KINDS[family]),
    );
    const found = (key: string): Candidate | null => {
      const one = keys.found(key);
      return one && families.includes(one.family) ? { ...one, kind: KINDS[one.family] } : null;
    };
    if (families.length > 0)
      yield* this.#each(keys.scanned(families, glob.literals), found, glob, wanted, assertOpen);
    if (!wanted.kinds.has("redisson")) return;
    const bare = (key: string): Candidate => ({ kind: "redisson", name: keys.bare(key), isQueue: false });
    yield* this.#each(keys.scannedBare(glob.literals), bare, glob, wanted, assertOpen, "hash");
  }

  async *#each(
    pattern: string,
    found: (key: string) => Candidate | null,
    glob: Glob,
    { signal }: Wanted,
    assertOpen: () => void,
    type?: "hash",
  ): AsyncGenerator<Listed, void, undefined> {
    const recent = new Recent(LISTED_REMEMBERED);
    const check = (): void => {
      signal?.throwIfAborted();
      assertOpen();
    };
    check();
    const trouble = (): Error => this.#commands.trouble();
    const plan = { pattern, timeout: this.#commands.replyTimeout, trouble, signal, type };
    const steps = this.#steps(plan);
    try {
      for await (const step of steps) {
        const candidates = step.flatMap((key) => {
          const one = found(key);
          return one && glob.matches(one.name) ? one : [];
        });
        for (let at = 0; at < candidates.length; at += LIST_BATCH) {
          check();
          const looks = this.#lookAt(candidates.slice(at, at + LIST_BATCH));
          for (const listed of await orAbort(signal, looks)) {
            if (!recent.add(`${listed.kind} ${listed.name}`)) continue;
            yield listed;
            check();
          }
        }
        check();
      }
    } catch (error) {
      // Throw the caller's reason, or the end of the client, as it is.
      check();
      throw unavailable(null, "they could not be listed", error);
    }
  }

  async *#steps(plan: Parameters<typeof scan>[1]): AsyncGenerator<string[], void, undefined> {
    // A Cluster client knows the nodes after its first command is answered.
    if (this.#places().length === 0) await orAbort(plan.signal, inspectAll(this.#commands, [ANY]));
    for (const primary of this.#places()) yield* scan(primary, plan);
  }

  /**
   * Skips locks that are gone by now, that another of their keys shows, or that have an unknown
   * format.
   */
  async #lookAt(candidates: readonly Candidate[]): Promise<Listed[]> {
    const exclusive = candidates.filter(isExclusive);
    const [inspected, looks] = await Promise.all([
      inspectAll(this.#commands, exclusive),
      Promise.all(candidates.filter((one) => !isExclusive(one)).map((one) => this.#look(one))),
    ]);
    const listed = exclusive.map((one, i) => shown(one, inspected[i] ? ofExclusive(inspected[i]) : null));
    return [...listed, ...looks].filter((one) => one !== null);
  }

  async #look(candidate: Candidate): Promise<Listed | null> {
    try {
      return shown(candidate, await this.#inspect(candidate));
    } catch (error) {
      if (error instanceof Error && isForeign.test(error.message)) return null;
      throw error;
    }
  }

  async #inspect({ kind, name }: Candidate): Promise<Look | null> {
    if (kind === "readWrite" || kind === "semaphore")
      return ofCounted(await this.#inspections[kind](name), kind);
    const inspected = inspectionOf(await this.#commands.run(lua.redisson, [name], {}));
    return REDISSON_OWNER.test(inspected.holder?.id ?? "") ? ofExclusive(inspected) : null;
  }
}

interface Candidate extends Pick<FoundKey, "name" | "isQueue"> {
  readonly kind: ListedKind;
}

type Exclusive = Candidate & { readonly kind: "lock" | "election" | "remember" };

const isExclusive = (one: Candidate): one is Exclusive =>
  one.kind === "lock" || one.kind === "election" || one.kind === "remember";

/**
 * A held lock is found by its own key, which exists while it is held; a free one has only its
 * queue.
 */
const shown = ({ kind, name, isQueue }: Candidate, look: Look | null): Listed | null =>
  look && isQueue === (look.holder === null) ? Object.assign({ kind, name }, look) : null;
